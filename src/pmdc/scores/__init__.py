"""Stage 4: the scores of families (phase P1)."""
