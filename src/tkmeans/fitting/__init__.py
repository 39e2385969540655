"""From a plan to a fit: where runs start, which one is kept, and who is told."""
