"""Running a fit: starts, restarts, observers and checkpoints."""
