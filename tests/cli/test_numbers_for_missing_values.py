"""Numbers such as -999 that stand for a missing value."""

import numpy as np
import pytest


@pytest.fixture
def notes(run, table):
    def found(values, *options, name="b"):
        rows = zip(values, np.random.default_rng(1).normal(size=len(values)).round(2), strict=True)
        file = table(f"{name},x", *(f"{value},{x}" for value, x in rows))
        return " ".join(run("fit", file, "-k", 2, *options).stderr.split())

    return found


def measured(word, n, seed=0):
    values = [str(x) for x in np.random.default_rng(seed).integers(0, 54, 40)]
    values[3 : 3 + n] = [word] * n
    return values


@pytest.mark.parametrize("word", ["-999", "-99", "9999", "999"])
def test_nines_far_from_all_others_that_repeat_are_mentioned_with_the_option_to_add(notes, word):
    text = notes(measured(word, 8))
    assert f"8 values of b are {word}, far from all others; add --missing {word} if that stands for" in text


def test_a_number_that_is_given_as_missing_is_not_mentioned(notes):
    assert "far from all others; add" not in notes(measured("-999", 8), "--missing", "-999")


@pytest.mark.parametrize(
    "values", [measured("-999", 1), measured("52", 9), measured("99", 3), [99, 98, 97, 99, 60] * 8]
)
def test_a_single_nine_and_nines_near_other_values_are_not_mentioned(notes, values):
    assert "far from all others; add" not in notes(values)
