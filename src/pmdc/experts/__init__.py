"""Stage 2: the experts, classifiers of the features alone."""
