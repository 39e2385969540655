"""What a second attack broke, each with a test that fails if it comes back. docs/development lists them."""

import json
import os
import subprocess
import sys
import tracemalloc
import warnings
from unittest import mock

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.datasets import scaled
from tkmeans.fitting import mixture_starts
from tkmeans.metrics import clustering_mse, within_between_ratio
from tkmeans.persistence import ModelFileError
from tkmeans.persistence.encoding import checksum
from tkmeans.tables import Reading, TableError, choose, read_table

X, LABELS, CENTERS = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)


@pytest.fixture(autouse=True)
def no_warning_of_another_library():
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        yield


# ---- rows in memory --------------------------------------------------------------------------------


def test_a_sparse_matrix_with_an_index_beyond_its_shape_is_refused_and_crashes_nothing():
    code = """
import scipy.sparse as sparse
from tkmeans import TKMeans
for format in ("csr", "csc", "coo"):
    A = sparse.random(50, 20, 0.3, format=format, random_state=0)
    model = TKMeans(2).fit(A)
    (A.col if format == "coo" else A.indices)[3] = 99_999_999
    for call in (model.fit, model.predict):
        try:
            call(A)
        except ValueError as error:
            print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stdout.count("X is a damaged sparse matrix") == 6


def test_a_sparse_matrix_whose_rows_begin_beyond_its_entries_is_refused_and_not_changed():
    A = sparse.random(50, 20, 0.3, format="csr", random_state=0)
    A.indptr[3] = 99_999_999
    data = A.data
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        TKMeans(2).fit(A)
    assert A.data is data


def test_a_frame_of_sparse_columns_gives_the_clusters_of_the_sparse_matrix():
    pandas = pytest.importorskip("pandas")
    A = sparse.random(60, 4, 0.5, format="csr", random_state=0)
    frame = pandas.DataFrame.sparse.from_spmatrix(A, columns=list("abcd"))
    model = TKMeans(2, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == list("abcd")
    assert np.array_equal(model.predict(frame), TKMeans(2, random_state=0).fit(A).labels_)


@pytest.mark.parametrize("Estimator", [TKMeans, StudentTMixture, MiniBatchTKMeans])
def test_rows_whose_spread_is_beyond_all_numbers_are_refused_and_not_one_cluster(Estimator):
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 1.0], size=(40, 2)) * rng.uniform(1.5e308, 1.79e308, size=(40, 2))
    with pytest.raises(ValueError, match=r"the spread of X is inf.*rescale X first"):
        Estimator(2).fit(rows)


def test_a_nan_that_signals_is_a_missing_value_like_any_other():
    signalling = np.frombuffer(np.uint64(0x7FF0_0000_0000_0001).tobytes(), np.float64)[0]
    rows, quiet = X.copy(), X.copy()
    rows[3, 1], quiet[3, 1] = signalling, np.nan
    model = TKMeans(3, random_state=0).fit(rows)
    assert np.array_equal(model.cluster_centers_, TKMeans(3, random_state=0).fit(quiet).cluster_centers_)
    assert np.array_equal(model.predict(rows), model.predict(quiet))


def test_two_columns_of_one_name_are_named_wherever_a_frame_is_taken(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame, model = pandas.DataFrame(X, columns=["a", "a"]), TKMeans(3).fit(X)
    said = "X has several columns with the name 'a'; rename or drop one of them"
    for call in [
        lambda: TKMeans(3).fit(frame),
        lambda: tkmeans.describe(model, frame),
        lambda: tkmeans.select_clusters(frame),
        lambda: tkmeans.write_report(tmp_path / "report.html", model, frame),
    ]:
        with pytest.raises(ValueError, match=said):
            call()


@pytest.mark.parametrize("kind", ["dates", "periods", "missing"])
def test_a_column_of_other_values_than_numbers_is_named(kind):
    pandas = pytest.importorskip("pandas")
    when = pandas.date_range("2026-01-01", periods=len(X), tz="UTC")
    column = {"dates": when, "periods": when.tz_localize(None).to_period("D"), "missing": [pandas.NA, *X[1:, 0]]}[kind]
    with pytest.raises(TypeError, match=r"X in column 'when' holds .*(convert it to numbers|put NaN in its place)"):
        TKMeans(3).fit(pandas.DataFrame({"a": X[:, 0], "when": pandas.Series(column, dtype=object)}))


def test_a_covariance_from_which_rounding_takes_all_digits_is_still_one():
    rows = [[5.390308083294175, 4.681450485306344, 7.594263610163585]]
    rows = np.array([*rows, [4.463220640000253, 4.443919764130477, 5.3411475374507456]])
    options = {"covariance_type": "tied", "dof": 4.0, "init_params": "kmeans", "shared_dof": False, "size_ratio": 1.0}
    found = StudentTMixture(**options, max_iter=20, reg_covar=1e-300, random_state=20251).fit(rows).covariances_
    deviations = np.sqrt(np.diag(found))
    assert np.linalg.eigvalsh(found / deviations / deviations[:, None]).min() > -1e-14


def test_equal_rows_and_complex_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="X must have a spread in every column"):
        scaled(np.full((3, 2), 4.41122742e89))
    with pytest.raises(ValueError, match="distances must be finite real numbers"):
        tkmeans.influence_curve(TKMeans(3), X, distances=[1j])


def test_weights_that_have_no_sum_are_refused_without_a_warning():
    with pytest.raises(ValueError, match="sample_weight must be 0 or between"):
        TKMeans(3).fit(X, sample_weight=np.full(len(X), 1e308))


def test_distances_of_a_mixture_in_single_precision_are_numbers_however_far_a_row_is():
    rows = np.vstack([X, [[3e38, 3e38]]]).astype(np.float32)
    found = StudentTMixture(3, random_state=0).fit(rows[:-1]).transform(rows)
    assert found.dtype == np.float32
    assert np.all(np.isfinite(found))
    assert np.all(found[-1] > 1e38)


def test_a_whole_number_beyond_all_floats_is_refused_with_its_size():
    with pytest.raises(TypeError, match="X holds values such as one of 16610 bits"):
        TKMeans(1).fit(np.array([[10**5000], [1]], dtype=object))


def test_a_stream_that_begins_with_equal_rows_finds_the_clusters_of_those_that_follow():
    rng = np.random.default_rng(0)
    model = MiniBatchTKMeans(2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of equal rows
        model.partial_fit(np.zeros((3000, 2)))
        for _ in range(8):
            model.partial_fit(np.vstack([rng.normal(size=(500, 2)), rng.normal(size=(500, 2)) + 10]))
    np.testing.assert_allclose(np.sort(model.cluster_centers_[:, 0]), [0, 10], atol=0.2)


def test_a_time_limit_holds_the_search_of_a_mixture_too():
    rows, ends = np.random.default_rng(0).normal(size=(600, 60)), []
    for max_time in (1e-3, None):
        with mock.patch.object(mixture_starts, "_run", wraps=mixture_starts._run) as runs, warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            StudentTMixture(8, max_time=max_time).fit(rows)
        ends.append(runs.call_count)
    assert ends[0] == 2 < ends[1]  # the first start, and it again as the best


@pytest.mark.parametrize("shape", ["diag", "spherical"])
def test_a_mixture_parallel_to_the_axes_needs_no_matrices_of_many_features(shape):
    rows = np.random.default_rng(0).normal(size=(50, 20_000)) + np.repeat([[0.0], [0.5]], 25, axis=0)
    tracemalloc.start()
    found = StudentTMixture(2, covariance_type=shape).fit(rows).labels_
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 20_000**2  # a tenth of one matrix
    assert adjusted_rand_score(np.repeat([0, 1], 25), found) == 1


def test_a_subclass_that_takes_fewer_parameters_can_be_cloned():
    class Few(TKMeans.__mro__[1]):  # the shared face; the estimators themselves are final
        def __init__(self, n_clusters=3):
            self.n_clusters, self.checkpoint = n_clusters, "elsewhere.npz"

        _checks, _plan, _model, _accepts = TKMeans._checks, TKMeans._plan, TKMeans._model, TKMeans._accepts

    assert clone(Few(4)).checkpoint is None
    assert clone(Few(4)).n_clusters == 4


def test_labels_of_another_length_are_refused_by_name():
    for call in (lambda: clustering_mse(X[:1], LABELS), lambda: within_between_ratio(X[:1], LABELS, CENTERS)):
        with pytest.raises(ValueError, match="labels must have an entry for each of the 1 rows of X, got 120"):
            call()


def test_a_report_of_rows_that_differ_in_the_last_digit_is_written(tmp_path):
    rows = np.ones((40, 2))
    rows[::2] += np.finfo(float).eps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        page = tkmeans.write_report(tmp_path / "report.html", TKMeans(1).fit(rows), rows)
    assert page.stat().st_size > 10_000


def test_a_column_that_is_equal_within_clusters_and_differs_between_them_is_named():
    rows = np.column_stack([X, np.where(LABELS == 0, 5.0, 1.0)])
    model = TKMeans(3, random_state=0).fit(rows)
    words = tkmeans.describe(model, rows, feature_names=["x", "y", "level"]).sentences()
    assert sum("high level" in sentence for sentence in words) == 1


def test_rows_without_any_value_do_not_change_the_numbers_of_the_clusters():
    rows = np.vstack([X, np.full((300, 2), np.nan)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        ours = TKMeans(3, random_state=0).fit(rows)
    theirs = TKMeans(3, random_state=0).fit(X)
    np.testing.assert_allclose(ours.cluster_centers_, theirs.cluster_centers_, atol=1e-3)
    assert np.mean(ours.predict(X) == theirs.labels_) > 0.98  # rows between clusters may change sides


@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.uint64])
@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture])
def test_the_type_of_the_number_of_clusters_changes_no_digit_of_a_fit(Estimator, integer):
    ours, theirs = (Estimator(K, random_state=0).fit(X) for K in (integer(3), 3))
    for name, value in vars(theirs).items():
        if isinstance(value, np.ndarray):
            assert getattr(ours, name).dtype == value.dtype, name
            np.testing.assert_array_equal(getattr(ours, name), value)


def test_names_of_columns_are_used_for_frames_too():
    pandas = pytest.importorskip("pandas")
    frame, model = pandas.DataFrame(X, columns=["a", "b"]), TKMeans(3).fit(X)
    found = tkmeans.describe(model, frame, feature_names=["c", "d"])
    assert {trait.column for each in found for trait in each.traits} == {"c", "d"}
    with pytest.raises(ValueError, match="feature_names must name the 2 columns of X, got 1 names"):
        tkmeans.describe(model, frame, feature_names=["c"])


# ---- threads -------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signal")
def test_ctrl_c_in_a_choice_of_k_on_threads_ends_them_and_the_process():
    code = """
import os, signal, threading, numpy as np
from tkmeans import select_clusters
rows = np.random.default_rng(0).normal(size=(6000, 20))
threading.Timer(1.0, os.kill, [os.getpid(), signal.SIGINT]).start()
try:
    select_clusters(rows, range(1, 61), shapes=("full", "diag", "tied"), n_jobs=2)
except KeyboardInterrupt:
    print("ended with", threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout in ("ended with 1\n", "ended with 2\n")  # the timer may be one of them


# ---- files ---------------------------------------------------------------------------------------------


def written(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_json_nested_without_end_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"deep\.json is not JSON throughout"):
        read_table(written(tmp_path / "deep.json", "[[" * 50_000))


def test_half_a_character_in_json_is_refused(tmp_path):
    with pytest.raises(TableError, match=r"half\.json cannot be read: .*surrogates not allowed"):
        read_table(written(tmp_path / "half.json", '[{"a": 1, "b": "\\ud800"}]'))


def test_whole_numbers_in_json_stay_whole_and_large_ones_keep_their_digits(tmp_path):
    ids = [2**53 + 1, 2**60, 10**30]
    rows = [{"id": big, "n": 1000 + i, "x": i / 2} for i, big in enumerate(ids)]
    table = read_table(written(tmp_path / "ids.json", json.dumps(rows)))
    assert table.cells("id") == [*map(str, ids)]
    assert table.cells("n") == ["1000", "1001", "1002"]
    assert np.array_equal(np.concatenate([*table.batches(["n", "x"], 10)]), [[1000, 0], [1001, 0.5], [1002, 1]])


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


def test_a_table_with_a_hundred_thousand_columns_is_read(tmp_path):
    names = ",".join(f"column_{j}" for j in range(100_000))
    table = read_table(written(tmp_path / "wide.csv", f"{names}\n" + ("1.5," * 99_999 + "2.5\n") * 2))
    assert np.concatenate([*table.batches(table.names[-2:], 10)]).tolist() == [[1.5, 2.5]] * 2


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    np.save(folder / "part.npy", X)
    return folder


@pytest.mark.parametrize("name", ["file", "link", "folder"])
def test_neither_results_nor_checkpoints_are_written_over_the_input(name, folder):
    file = folder / "part.npy"
    before = file.read_bytes()
    out, given = file, folder if name == "folder" else file
    if name == "link":
        out = folder.parent / "link"
        out.symlink_to(file)
    with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
        TKMeans(3).fit(X).predict(given, out=out)
    with pytest.raises(FileExistsError, match="is the input or in it, which is not overwritten"):
        TKMeans(3, checkpoint=out).fit(given)
    assert file.read_bytes() == before


def test_the_command_does_not_write_into_a_file_of_its_input_folder(folder):
    pytest.importorskip("typer")
    words = ["fit", str(folder), "-k", "3", "--out", str(folder / "part.npy")]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "which is not overwritten" in done.stderr
    assert np.array_equal(np.load(folder / "part.npy"), X)


def test_queries_of_duckdb_show_no_progress_on_standard_output(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "base.duckdb")) as base:
        base.execute("CREATE TABLE t AS SELECT 1.0 AS a, 2.0 AS b")
    query = "SELECT current_setting('enable_progress_bar')::INT AS shown, 1.0 AS b"
    assert read_table(tmp_path / "base.duckdb", Reading(table=query)).cells("shown") == ["0"]


def test_a_workbook_with_a_cell_in_the_last_corner_is_refused_before_it_takes_all_memory(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    pytest.importorskip("python_calamine")
    book = openpyxl.Workbook()
    for row in (["a", "b"], [1000, 2], [3, 4.5]):
        book.active.append(row)
    book.save(tmp_path / "small.xlsx")
    assert read_table(tmp_path / "small.xlsx").cells("a") == ["1000", "3"]  # whole numbers stay whole
    book.active["XFD1048576"] = 1
    book.save(tmp_path / "far.xlsx")
    with pytest.raises(TableError, match="cells are strewn over 1048576 rows and 16384 columns"):
        read_table(tmp_path / "far.xlsx")


def test_neither_checkpoints_nor_reports_are_written_to_the_file_that_the_rows_are_mapped_from(folder):
    rows = np.load(folder / "part.npy", mmap_mode="r")
    with pytest.raises(FileExistsError, match="which is not overwritten"):
        TKMeans(3, checkpoint=folder / "part.npy").fit(rows)
    with pytest.raises(FileExistsError, match="which is not overwritten"):
        tkmeans.write_report(folder / "part.npy", TKMeans(3).fit(rows), rows)
    assert np.array_equal(np.load(folder / "part.npy"), X)


def test_the_command_does_not_write_over_the_model_that_it_predicts_with(folder, tmp_path):
    pytest.importorskip("typer")
    model = tmp_path / "model.json"
    tkmeans.save(TKMeans(3).fit(X), model)
    before = model.read_bytes()
    words = ["predict", str(model), str(folder / "part.npy"), "--out", str(model)]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert model.read_bytes() == before


def test_a_table_whose_first_name_begins_like_json_is_a_table(tmp_path):
    assert read_table(written(tmp_path / "braces.csv", "{a},b\n1,2\n3,4\n")).names == ["{a}", "b"]


@pytest.mark.parametrize("start", ['{"a"', '{ "a"', '{\n"a"'])
def test_an_object_of_columns_is_json_however_it_is_laid_out(start, tmp_path):
    assert read_table(written(tmp_path / "columns.json", start + ": [1, 2]}")).cells("a") == ["1", "2"]


# ---- model files ---------------------------------------------------------------------------------------


def forged(path, change):
    document = json.loads(path.read_text())
    change(document)
    document["checksum"] = checksum(document)
    path.write_text(json.dumps(document))


def test_a_model_file_with_the_noise_of_a_round_mixture_in_another_shape_is_refused(tmp_path):
    path = tmp_path / "model.json"
    model = StudentTMixture(3, covariance_type="spherical", noise=True, random_state=0).fit(X)
    tkmeans.save(model, path)
    forged(path, lambda d: d["estimator"]["fitted"].update(noise_covariance_=d["estimator"]["fitted"]["noise_center_"]))
    with pytest.raises(ModelFileError, match="noise_covariance_"):
        tkmeans.load(path)


@pytest.mark.parametrize("change", [{"n_clusters": 7}, {"dof": -1.0}])
def test_a_model_whose_parameters_were_changed_after_the_fit_is_not_saved_over_one_that_can_be_loaded(change, tmp_path):
    path, model = tmp_path / "model.json", TKMeans(3).fit(X)
    tkmeans.save(model, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="fit it again after set_params"):
        tkmeans.save(model.set_params(**change), path)
    assert path.read_bytes() == before


def test_a_model_file_whose_distances_are_in_single_precision_is_refused(tmp_path):
    path = tmp_path / "model.json"
    tkmeans.save(TKMeans(3).fit(X), path)
    forged(path, lambda d: d["estimator"]["fitted"]["_training_distances"]["d2"].update(dtype="float32"))
    with pytest.raises(ModelFileError, match="_training_distances"):
        tkmeans.load(path)


@pytest.mark.parametrize("scaler", [StandardScaler, RobustScaler])
def test_a_model_file_whose_scaler_lacks_what_it_scales_by_is_refused(scaler, tmp_path):
    path = tmp_path / "model.json"
    tkmeans.save(make_pipeline(scaler(), TKMeans(3)).fit(X), path)
    forged(path, lambda d: d["scaler"]["fitted"].pop("scale_"))
    with pytest.raises(ModelFileError, match=f"has a {scaler.__name__} that cannot be"):
        tkmeans.load(path)


def test_all_columns_with_words_among_their_numbers_are_named_at_once(tmp_path):
    lines = "".join(f"{i},{i},{i % 7}\n" for i in range(20))
    path = written(tmp_path / "words.csv", f"a,b,c\n1,x,3\n4,5,oops\n{lines}")
    with pytest.raises(TableError, match=r"column 'b'(.|\n)*column 'c'"):
        choose(read_table(path), ["a", "b", "c"])


def test_checkpoints_with_nothing_in_an_array_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    model = StudentTMixture(3, checkpoint=path, max_iter=1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X)
    with np.load(path) as file:
        arrays = dict(file)
    name = next(name for name in arrays if name.endswith("params_covariances"))
    np.savez(path, **arrays | {name: arrays[name][:0]})
    with pytest.raises(ValueError, match=f"{name} is not numbers"):
        model.fit(X, resume=path)


def test_an_array_of_an_unknown_version_is_refused(tmp_path):
    np.save(tmp_path / "version.npy", X)
    data = bytearray((tmp_path / "version.npy").read_bytes())
    data[7] = 113
    (tmp_path / "version.npy").write_bytes(data)
    with pytest.raises(TableError, match="is not a whole"):
        read_table(tmp_path / "version.npy")


def command(*words):
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {[*map(str, words)]!r}; main()"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_the_command_refuses_names_that_are_formulas_and_files_called_minus(folder):
    pytest.importorskip("typer")
    given = "fit", folder / "part.npy", "-k", 3, "--out", folder.parent / "out.csv"
    done = command(*given, "--prefix", "=")
    assert (done.returncode, "names that begin with '=' are formulas" in done.stderr) == (2, True)
    done = command(*given, "--model", "-")
    assert (done.returncode, "only tables can go to -" in done.stderr) == (2, True)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no /dev/stdin")
def test_the_command_does_not_write_over_the_file_that_standard_input_comes_from(tmp_path):
    pytest.importorskip("typer")
    path = written(tmp_path / "rows.csv", "a,b\n" + "".join(f"{x},{y}\n" for x, y in X.tolist()))
    words = ["fit", "-", "-k", "3", "--out", str(path)]
    code = f"from tkmeans.cli import main; import sys; sys.argv[1:] = {words!r}; main()"
    before = path.read_text()
    with path.open() as rows:
        done = subprocess.run([sys.executable, "-c", code], stdin=rows, capture_output=True, text=True, check=False)
    assert (done.returncode, path.read_text() == before) == (1, True)


def test_a_delimiter_of_two_signs_is_refused(tmp_path):
    with pytest.raises(TableError, match="delimiter='ab' is not one sign"):
        read_table(written(tmp_path / "plain.csv", "a,b\n1,2\n"), Reading(delimiter="ab"))


def test_an_arrow_table_with_two_columns_of_one_name_is_refused_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table([pyarrow.array(X[:, 0]), pyarrow.array(X[:, 1])], names=["a", "a"])
    with pytest.raises(ValueError, match="X has several columns with the name 'a'"):
        TKMeans(3).fit(table)


def test_curves_of_clusters_without_a_width_are_refused():
    for call in (tkmeans.breakdown_curve, tkmeans.influence_curve):
        with pytest.raises(ValueError, match="2 clusters of equal rows"):
            call(TKMeans(2), X[:2])


def test_a_name_that_is_empty_is_quoted():
    with pytest.raises(TableError, match="'' is a folder"):
        TKMeans(2).fit("")


def test_a_cell_too_long_to_be_one_is_said_to_be_so(tmp_path):
    with pytest.raises(TableError, match="the cell is too long"):
        read_table(written(tmp_path / "long.csv", 'a,b\n1,"' + "y" * 200_000 + '"\n')).load()
