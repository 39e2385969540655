"""A few of the random shapes and values that `tools/fuzz` tries by the thousand, without the sanitizers."""

from collections import Counter

from support.native_fuzzing import check


def test_random_shapes_and_values_give_the_numbers_of_the_reference_engine_or_are_refused():
    kinds = Counter(check(number) for number in range(200))
    assert set(kinds) == {"ordinary", "hostile", "shapes", "hostile shapes", "searched", "refused"}
