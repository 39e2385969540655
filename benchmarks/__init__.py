"""Measurements: every speed is a ratio taken in one run, by CPU time, as the least of interleaved repeats."""
