"""What a DataFile takes for names of columns, values and signs, and what it refuses by the name of its parameter."""

import warnings

import numpy as np
import pytest
from support.model_inputs import two_groups
from support.table_files import csv_table

from tkmeans import DataFile, TKMeans
from tkmeans.tables import TableError

# ---- names of columns ----------------------------------------------------------------------------

X = two_groups()


@pytest.mark.parametrize("name", ["columns", "without", "keep", "missing"])
@pytest.mark.parametrize("value", [-999, 0, 1.5, True, "a", [-999], iter(["a"])])
def test_a_list_of_names_that_is_none_is_refused_by_the_name_of_its_parameter(name, value):
    with pytest.raises(TypeError, match=f"^{name} must be a list of str, got "):
        DataFile("a.csv", **{name: value})


def test_names_of_columns_may_be_an_array(tmp_path):
    file = DataFile(csv_table(tmp_path / "a.csv", X), columns=np.array(["c", "a"]))
    assert TKMeans(2, random_state=0).fit(file).feature_names_in_.tolist() == ["c", "a"]


@pytest.mark.parametrize(
    ("columns", "repeated"), [(["a", "a"], "a"), (["a", "b", "2"], "b"), (["a", "c=1", "c=1"], "c=1")]
)
def test_a_column_that_is_named_twice_is_refused_by_its_name(columns, repeated, tmp_path):
    with pytest.raises(ValueError, match=f"columns must differ, and '{repeated}' is named more than once"):
        TKMeans(2).fit(DataFile(csv_table(tmp_path / "a.csv", X), columns=columns))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".feather"])
def test_an_indicator_of_a_value_that_no_row_has_is_told_by_value_and_column(suffix, tmp_path):
    pa = pytest.importorskip("pyarrow")
    path = tmp_path / f"penguins{suffix}"
    found = pa.table({"a": X[:, 0], "species": ["Adelie"] * 60 + ["Gentoo"] * 30})
    module = {".csv": "pyarrow.csv", ".parquet": "pyarrow.parquet", ".feather": "pyarrow.feather"}[suffix]
    write = {".csv": "write_csv", ".parquet": "write_table", ".feather": "write_feather"}[suffix]
    getattr(pytest.importorskip(module), write)(found, path)
    columns = ["a", "species=Gentoo"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = TKMeans(2, random_state=0).fit(DataFile(path, columns=columns))
    with pytest.warns(UserWarning, match="penguins.*: no row has 'species=gentoo'"):
        TKMeans(2, random_state=0).fit(DataFile(path, columns=["a", "species=gentoo"]))
    getattr(pytest.importorskip(module), write)(found.slice(0, 60), path)
    with pytest.warns(UserWarning, match="penguins.*: no row has 'species=Gentoo'"):
        model.predict(path)


# ---- signs and paths -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["decimal", "thousands"])
@pytest.mark.parametrize("sign", ["x", "e", "5", "é"])
def test_a_letter_or_digit_is_neither_a_decimal_sign_nor_one_of_thousands(name, sign):
    with pytest.raises(ValueError, match=f"{name}='{sign}' is not one sign"):
        DataFile("a.csv", **{name: sign})


def test_a_name_that_is_empty_is_quoted():
    with pytest.raises(TableError, match="'' is a folder"):
        TKMeans(2).fit("")
