"""Arrays in .npy files as tables: whole numbers keep their digits, damaged headers are refused."""

import io

import numpy as np
import pytest
from support.model_inputs import t_mixture
from support.table_files import out, read_as

from tkmeans.tables import TableError, read_table

X, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet"])
def test_whole_numbers_of_a_matrix_keep_all_their_digits(suffix, tmp_path):
    ids = [2**53 + 1 + 2 * i for i in range(4)]
    np.save(tmp_path / "m.npy", np.array([ids, [1, 2, 3, -4]]).T)
    text = out(read_table(tmp_path / "m.npy"), f"o.{suffix}")
    if suffix == "csv":
        assert text.decode().splitlines() == ["x1,x2", *(f"{i},{j}" for i, j in zip(ids, [1, 2, 3, -4], strict=True))]
    elif suffix == "npy":
        assert np.load(io.BytesIO(text))["x1"].tolist() == ids
    else:
        assert read_as("parquet", text)["x1"].to_pylist() == ids


@pytest.mark.parametrize("dtype", [[("a", "O")], [("a", "f8", (2,))], [("a", "c16")]])
def test_arrays_with_fields_that_are_no_numbers_nor_text_are_refused(dtype, tmp_path):
    np.save(tmp_path / "fields.npy", np.zeros(3, dtype), allow_pickle=True)
    with pytest.raises(TableError, match="a matrix of numbers is needed"):
        read_table(tmp_path / "fields.npy")


@pytest.mark.parametrize(("shape", "said"), [((-3, 2), "a matrix of numbers is needed"), ((2**62, 8), "is cut short")])
def test_an_array_whose_shape_cannot_be_is_refused(shape, said, tmp_path):
    with open(tmp_path / "shape.npy", "wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
        file.write(bytes(800))
    with pytest.raises(TableError, match=said):
        read_table(tmp_path / "shape.npy")


def test_an_array_of_an_unknown_version_is_refused(tmp_path):
    np.save(tmp_path / "version.npy", X)
    data = bytearray((tmp_path / "version.npy").read_bytes())
    data[7] = 113
    (tmp_path / "version.npy").write_bytes(data)
    with pytest.raises(TableError, match="is not a whole"):
        read_table(tmp_path / "version.npy")
