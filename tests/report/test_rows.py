"""What a report is written of: extreme rows, dask arrays, fits after Ctrl-C; and what it refuses with a way out."""

import warnings
from unittest import mock

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from support.model_inputs import four_clusters, t_mixture, two_groups

import tkmeans
from tkmeans import DataFile, TKMeans, write_report
from tkmeans.sources import ArraySource

SPACE, _, _ = t_mixture(n=240, n_clusters=3, n_features=3, scale=0.02, seed=4)
TWO_GROUPS = two_groups()


def test_a_report_of_rows_that_differ_in_the_last_digit_is_written(tmp_path):
    rows = np.ones((40, 2))
    rows[::2] += np.finfo(float).eps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        page = tkmeans.write_report(tmp_path / "report.html", TKMeans(1).fit(rows), rows)
    assert page.stat().st_size > 10_000


def test_one_row_beyond_all_squares_is_an_outlier_of_the_report(tmp_path):
    rows = np.vstack([TWO_GROUPS, np.full((1, 3), 1e300)])
    write_report(tmp_path / "r.html", TKMeans(2, random_state=0).fit(TWO_GROUPS), rows)
    assert (tmp_path / "r.html").exists()


def test_a_report_takes_a_dask_array_with_outliers(tmp_path):
    da = pytest.importorskip("dask.array")
    rows = np.vstack([SPACE, [[500.0, 500.0, 500.0]]])
    model = TKMeans(3).fit(rows)
    page = tkmeans.write_report(tmp_path / "r.html", model, da.from_array(rows, chunks=(50, 3)))
    assert page.exists()


def test_a_report_and_a_description_after_ctrl_c_leave_out_the_outliers(tmp_path):
    model = TKMeans(3)
    stopped = mock.patch.object(ArraySource, "collect", mock.Mock(side_effect=KeyboardInterrupt))
    with stopped, pytest.raises(KeyboardInterrupt):
        model.fit(SPACE)
    assert "outlier" not in tkmeans.describe(model, SPACE).table()
    assert tkmeans.write_report(tmp_path / "r.html", model, SPACE).exists()


def test_a_report_refuses_a_file_that_was_not_loaded(tmp_path):
    X, model = four_clusters()
    np.savetxt(tmp_path / "rows.csv", X, delimiter=",", header="a,b,c", comments="")
    with pytest.raises(TypeError, match="load it first"):
        write_report(tmp_path / "report.html", model, DataFile(tmp_path / "rows.csv"))


def test_a_report_of_a_pipeline_says_what_to_pass(tmp_path):
    with pytest.raises(ValueError, match="Of a pipeline pass the last step"):
        tkmeans.write_report(tmp_path / "r.html", make_pipeline(RobustScaler(), TKMeans(3)).fit(SPACE), SPACE)
