"""Signs of accountants, and Indian groups of digits."""

import pytest
from support.command_tables import positive_groups

from tkmeans import DataFile
from tkmeans.tables import read_table

pytestmark = pytest.mark.usefixtures("own_folder")


def read_column(path, name, **options):
    return read_table(path, DataFile(path, **options).reading).column(name).values.tolist()


AMOUNTS = [round(x * (-1) ** (i % 3 == 0), 2) for i, x in enumerate((positive_groups(p=1).ravel() * 1000).tolist())]


@pytest.mark.parametrize(
    "form", ["({})", "(${})", "$({})", "({} €)", "( {} )", "{}-", "{}- €", "€ {}-", "-{}", "$-{}", "-${}", "({}%)"]
)
@pytest.mark.parametrize("signs", [",.", ".,", " ,"])
def test_amounts_with_a_sign_of_accountants_are_negative(table, form, signs):
    plain = form.strip("(-) ").replace("(", "").replace(")", "").replace("-", "").strip()
    written = [f"{abs(x):,.2f}".translate(str.maketrans({",": signs[0], ".": signs[1]})) for x in AMOUNTS]
    cells = [(form if x < 0 else plain).format(text) for x, text in zip(AMOUNTS, written, strict=True)]
    file = table("name;amount", *(f"n{i};{cell}" for i, cell in enumerate(cells)))
    assert read_column(file, "amount") == AMOUNTS


@pytest.mark.parametrize("cell", ["(a)", "()", "(1) (2)", "1--", "+1-", "(12", "12)", "--", "-"])
def test_other_brackets_and_dashes_are_no_numbers(table, cell):
    file = table("name;amount", *(f"n{i};{cell if i % 2 else f'x{i}'}" for i in range(20)))
    assert read_table(file).kinds["amount"] in ("text", "")


@pytest.mark.parametrize("form", ["{}", "₹{}", "Rs. {}", "({})"])
def test_indian_groups_are_digits_of_one_number(table, form):
    values = [1234567, 100000, 99999, 500000, 12345678, 712345, 1000, 999, 45]
    written = ["12,34,567", "1,00,000", "99,999", "5,00,000", "1,23,45,678", "7,12,345", "1,000", "999", "45"]
    file = table("name;amount", *(f"n{i};{form.format(cell)}" for i, cell in enumerate(written)))
    assert read_column(file, "amount") == [-x if form == "({})" else x for x in values]


@pytest.mark.parametrize("cell", ["1,2", "12,34", "1,23,45", "1,234,56"])
def test_other_groups_of_two_digits_are_no_thousands(table, cell):
    file = table("name;amount", *(f"n{i};{cell if i == 5 else f'1,234,{i:03}'}" for i in range(20)))
    assert read_table(file).column("amount").bad == (("line 7", cell),)
