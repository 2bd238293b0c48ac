"""Stage 4: what a family scores (phase P1)."""
