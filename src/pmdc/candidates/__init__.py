"""Stage 3: which families are worth a score."""
