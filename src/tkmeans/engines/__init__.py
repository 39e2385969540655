"""Engines turn a block of rows into statistics: `reference` defines the numbers."""
