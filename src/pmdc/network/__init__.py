"""Stage 6: the fitted network."""
