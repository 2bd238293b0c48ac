"""Stage 3: the candidate families of each class variable."""
