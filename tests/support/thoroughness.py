"""Which cases plain pytest leaves to `pytest -m thorough`."""

import pytest


def thorough(*cases):
    """Parameters of tests that carry the marker."""
    return [pytest.param(case, marks=pytest.mark.thorough) for case in cases]
