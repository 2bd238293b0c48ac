"""What every stage uses and no stage owns: checks, compilation, workers, progress, files."""
