"""What an eighth attack broke in Python, each with a test that fails if it comes back."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from tkmeans import StudentTMixture, TKMeans, select_clusters

RNG = np.random.default_rng(0)
X = np.vstack([RNG.normal(0, 1, (60, 3)), RNG.normal(9, 1, (30, 3))])


# ---- files that are written ------------------------------------------------------------------------------


def test_a_dataset_of_pyarrow_is_not_written_over_by_what_is_made_of_it(tmp_path):
    pa, dataset = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pa.table(dict(zip("abc", X.T, strict=True))), path)
    before = path.read_bytes()
    one = dataset.dataset(str(path))
    for given in (one, dataset.dataset([one])):  # and a union
        model = TKMeans(2, random_state=0).fit(given)
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            model.predict(given, out=str(path))
        with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
            TKMeans(2, random_state=0, checkpoint=str(path)).fit(given)
    assert path.read_bytes() == before
    assert [*tmp_path.iterdir()] == [path]


# ---- data of few values ----------------------------------------------------------------------------------


def answers_from_1_to_5():
    rng = np.random.default_rng(1)
    centers = rng.integers(1, 6, (3, 6))
    return np.clip(np.rint(centers[rng.integers(0, 3, 300)] + rng.normal(size=(300, 6))), 1, 5)


@pytest.mark.parametrize(("unit", "offset", "digits"), [(0.01, 100, 2), (0.1, 1000, 1)])
@pytest.mark.filterwarnings("ignore")
def test_the_offset_and_the_unit_of_rounded_data_change_no_cluster_and_no_number_of_clusters(unit, offset, digits):
    Z = answers_from_1_to_5()
    moved = np.round(Z * unit + offset, digits)
    plain, other = (StudentTMixture(3, random_state=0).fit(rows) for rows in (Z, moved))
    clear = plain.predict_proba(Z).max(axis=1) > 0.6  # how EM ends decides about a row right between two clusters
    assert np.mean(clear) > 0.95
    np.testing.assert_array_equal(plain.labels_[clear], other.labels_[clear])
    assert select_clusters(Z, random_state=0).best == select_clusters(moved, random_state=0).best


@pytest.mark.filterwarnings("ignore")
def test_a_row_of_weight_2_is_that_row_twice_where_two_columns_tell_the_same():
    D, weight = load_digits().data[:600], np.random.default_rng(1).integers(1, 3, 600)
    weighted = StudentTMixture(10, random_state=0).fit(D, sample_weight=weight)
    repeated = StudentTMixture(10, random_state=0).fit(np.repeat(D, weight, axis=0))
    np.testing.assert_array_equal(weighted.predict(D), repeated.predict(D))
    assert weighted.lower_bound_ == pytest.approx(repeated.lower_bound_, abs=1e-9)
