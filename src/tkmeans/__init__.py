"""Robust k-means from a Student-t mixture."""
