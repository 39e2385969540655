"""Whole numbers that identify somebody, by the name of their column."""

import numpy as np
import pytest

N = 60


@pytest.fixture
def roles(run, table):
    def found(name, values):
        rows = zip(values, np.random.default_rng(1).normal(size=len(values)).round(2), strict=True)
        file = table(f"{name},x", *(f"{value},{x}" for value, x in rows))
        document = run("fit", file, "--dry-run", "--json").document
        return {column["column"]: column["role"] for column in document["columns"]}[name]

    return found


def distinct():
    return np.random.default_rng(0).permutation(9_000_000)[:N] + 1_000_000


@pytest.mark.parametrize(
    "name", ["Telefon", "phone", "home_phone", "phoneNumber", "tel", "fax", "account", "Konto", "Matrikel", "Invoice"]
)
def test_distinct_whole_numbers_of_a_column_named_for_an_identifier_are_not_clustered_by(roles, name):
    assert roles(name, distinct()) == "not used: an identifier, by its name and its distinct values"


def test_barcodes_are_not_clustered_by_even_if_they_repeat(roles):
    assert roles("barcode", np.repeat(distinct()[:12], 5)) == "not used: an identifier, by its name"


@pytest.mark.parametrize("name", ["phone", "account", "invoice"])
def test_columns_of_such_a_name_with_values_that_repeat_are_clustered_by(roles, name):
    assert roles(name, np.arange(N) % 7) == "used for clustering"


@pytest.mark.parametrize("name", ["phones", "account_balance", "telomere", "invoice_amount"])
def test_columns_of_other_names_are_clustered_by(roles, name):
    assert roles(name, distinct()) == "used for clustering"
