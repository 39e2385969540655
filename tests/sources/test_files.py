"""Files: what is read, what is written, and what is said when they are not as they should be."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score
from support.model_inputs import t_mixture, three_groups

from tkmeans import DataFile, FastTKMeans, TKMeans
from tkmeans.sources.files import read_ahead, regrouped

pa = pytest.importorskip("pyarrow", reason="needs the extra io")
pq = pytest.importorskip("pyarrow.parquet")

X, _, CENTERS = t_mixture(n=2000, n_clusters=4, n_features=2, scale=0.05)
MODEL = TKMeans(4, init=CENTERS)


def table(rows=X, **more):
    return pa.table({"x": rows[:, 0], "y": rows[:, 1], **more})


@pytest.fixture
def parquet(tmp_path):
    pq.write_table(table(), tmp_path / "rows.parquet")
    return tmp_path / "rows.parquet"


def names(folder):
    return sorted(file.name for file in folder.iterdir())


# ---- reading ---------------------------------------------------------------------------


def test_columns_of_a_data_file_are_chosen_by_name_and_in_the_given_order(tmp_path):
    pq.write_table(table(name=["row"] * len(X), z=np.arange(len(X))), tmp_path / "rows.parquet")
    ours = TKMeans(4, init=CENTERS[:, ::-1]).fit(DataFile(tmp_path / "rows.parquet", columns=["y", "x"]))
    theirs = TKMeans(4, init=CENTERS[:, ::-1]).fit(X[:, ::-1])
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)
    assert list(ours.feature_names_in_) == ["y", "x"]
    labels = pq.read_table(ours.predict(tmp_path / "rows.parquet"))["cluster"]  # finds its columns by itself
    np.testing.assert_array_equal(labels, theirs.labels_)


def test_integers_and_nulls_of_a_parquet_file_become_floats_and_nan(tmp_path):
    whole = np.round(X * 100).astype(int)
    hidden = np.arange(len(X)) % 7 == 0
    columns = {"x": pa.array(whole[:, 0], mask=hidden), "y": pa.array(whole[:, 1], type=pa.int32())}
    pq.write_table(pa.table(columns), tmp_path / "rows.parquet")
    rows = whole.astype(float)
    rows[hidden, 0] = np.nan
    ours, theirs = (TKMeans(4, init=CENTERS * 100).fit(data) for data in (tmp_path / "rows.parquet", rows))
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)


def test_a_path_may_be_a_string_and_the_number_of_threads_changes_no_bit_of_the_fit_to_a_file(parquet):
    one, two = (TKMeans(4, init=CENTERS, n_jobs=n).fit(str(parquet)) for n in (1, 2))
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)
    np.testing.assert_array_equal(one.labels_, two.labels_)


def test_a_fit_to_a_file_keeps_int32_labels_and_no_outlier_pvalues(parquet):
    model = TKMeans(4, init=CENTERS).fit(parquet)
    assert model.labels_.dtype == np.int32
    assert not hasattr(model, "outlier_pvalues_")


def test_rows_are_regrouped_without_changing_their_order():
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 30, 50)
    rows = np.arange(lengths.sum())[:, None]
    for multiple in (1, 7, 16, 10_000):
        groups = list(regrouped(np.split(rows, np.cumsum(lengths)[:-1]), multiple))
        np.testing.assert_array_equal(np.concatenate(groups), rows)
        assert all(len(group) % multiple == 0 for group in groups[:-1])


def test_a_file_is_read_ahead_by_another_thread():
    asked, made = threading.Event(), []

    def items():
        for i in range(3):
            made.append(i)
            if i == 1:
                asked.set()
            yield i

    with ThreadPoolExecutor(1) as reader:
        ahead = read_ahead(items(), 2, reader)
        assert next(ahead) == 0
        assert asked.wait(30)  # made by the other thread, though nobody has asked for it
        assert list(ahead) == [1, 2]


def test_an_error_of_the_reading_thread_reaches_the_caller():
    def items():
        yield 1
        raise RuntimeError("the disk is gone")

    with ThreadPoolExecutor(1) as reader, pytest.raises(RuntimeError, match="the disk is gone"):
        list(read_ahead(items(), 3, reader))


def test_threads_that_read_a_file_end_with_the_fit_even_if_it_fails(parquet):
    before = threading.active_count()
    MODEL.fit(parquet)
    with pytest.raises(ValueError, match="n_clusters"):
        TKMeans(len(X) + 1).fit(parquet)
    assert threading.active_count() == before


# ---- writing ---------------------------------------------------------------------------


def test_predict_writes_labels_of_a_file_into_a_file_beside_it(parquet):
    model = MODEL.fit(parquet)
    out = model.predict(parquet)
    assert out == parquet.with_name("rows.cluster.parquet")
    written = pq.read_table(out)
    assert written.schema.names == ["cluster"]
    np.testing.assert_array_equal(written["cluster"], MODEL.fit(X).labels_)


def test_the_argument_out_names_the_file_of_labels_for_files_and_arrays(parquet, tmp_path):
    model = FastTKMeans(4, init=CENTERS).fit(X)  # which has no names
    for data in (parquet, X):
        out = model.predict(data, out=tmp_path / "labels.parquet")
        np.testing.assert_array_equal(pq.read_table(out)["cluster"], model.labels_)


def test_predict_proba_of_a_file_writes_a_column_per_cluster(parquet):
    out = MODEL.fit(parquet).predict_proba(parquet)
    written = pq.read_table(out)
    assert written.schema.names == [f"probability{k}" for k in range(4)]
    np.testing.assert_array_equal(np.column_stack(written.columns), MODEL.fit(X).predict_proba(X))


def test_predict_of_an_arrow_dataset_needs_the_argument_out(parquet, tmp_path):
    import pyarrow.dataset

    data = pyarrow.dataset.dataset(parquet)
    model = MODEL.fit(data)
    with pytest.raises(ValueError, match="no place to write results beside it: use predict"):
        model.predict(data)
    assert model.predict(data, out=tmp_path / "labels.parquet").exists()


# ---- what is wrong with a file -----------------------------------------------------------


def one_sentence(error):
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_truncated_parquet_file_is_an_error_that_names_it(parquet):
    parquet.write_bytes(parquet.read_bytes()[:-50])
    with pytest.raises(ValueError, match=r"rows\.parquet cannot be read") as error:
        MODEL.fit(parquet)
    one_sentence(error)


def test_a_damaged_parquet_file_is_an_error_that_names_it_and_leaves_earlier_results_unchanged(tmp_path):
    (tmp_path / "rows").mkdir()
    for i in range(3):
        pq.write_table(table(np.tile(X, (5, 1))), tmp_path / f"rows/part{i}.parquet", compression="gzip")
    model = MODEL.fit(tmp_path / "rows")
    out = model.predict(tmp_path / "rows")
    before = out.read_bytes()
    damaged = tmp_path / "rows/part1.parquet"
    content = bytearray(damaged.read_bytes())
    content[1000:3000] = bytes(2000)
    damaged.write_bytes(content)
    for task in (model.fit, model.predict):
        with pytest.raises(ValueError, match=r"part1\.parquet cannot be read") as error:
            task(tmp_path / "rows")
        one_sentence(error)
    assert names(tmp_path) == ["rows", "rows.cluster.parquet"]
    assert out.read_bytes() == before


def test_a_text_column_of_a_file_is_left_out_of_the_fit_with_a_warning_unless_it_is_asked_for(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,species,y\n" + "".join(f"{x},adelie,{y}\n" for x, y in X.tolist()))
    with pytest.warns(UserWarning, match=r"rows\.csv: not used for clustering: species \(text\)"):
        model = TKMeans(4, init=CENTERS).fit(path)
    np.testing.assert_array_equal(model.cluster_centers_, MODEL.fit(X).cluster_centers_)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match=r"column 'species' is text, such as 'adelie'") as error:
        MODEL.fit(DataFile(path, columns=["x", "species"]))
    one_sentence(error)


def test_text_deep_in_a_csv_column_is_an_error_that_names_the_line_and_the_way_out(tmp_path):
    path = tmp_path / "rows.csv"
    lines = [f"{i},{x},{y}\n" for i, (x, y) in enumerate(np.tile(X, (60, 1)))]
    lines[-5] = "7,0.5,unknown\n"
    path.write_text("id,x,y\n" + "".join(lines))
    with pytest.raises(ValueError, match=rf"column 'y' .*: line {len(lines) - 3}: 'unknown'; add missing=") as error:
        MODEL.fit(DataFile(path, columns=["x", "y"]))
    one_sentence(error)
    known = TKMeans(4, init=CENTERS).fit(DataFile(path, columns=["x", "y"], missing=["unknown"]))
    assert len(known.labels_) == len(lines)


def test_a_word_for_missing_values_deep_in_a_csv_file_is_a_missing_value(tmp_path):
    rows = np.tile(X, (30, 1))
    rows[50_000, 1] = np.nan
    lines = [f"{x!r},{y!r}\n" for x, y in rows.tolist()]
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(lines).replace("nan", "n/a"))
    ours, theirs = (TKMeans(4, init=CENTERS).fit(data) for data in (tmp_path / "rows.csv", rows))
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)


def test_a_column_missing_at_predict_is_an_error_with_its_name_and_file(parquet, tmp_path):
    model = MODEL.fit(parquet)
    pq.write_table(table().drop_columns("y"), tmp_path / "new.parquet")
    with pytest.raises(ValueError, match=r"new\.parquet has no column 'y'; its columns are x") as error:
        model.predict(tmp_path / "new.parquet")
    one_sentence(error)
    assert names(tmp_path) == ["new.parquet", "rows.parquet"]


def test_a_column_missing_in_one_file_of_many_is_an_error_with_its_name_and_file(tmp_path):
    pq.write_table(table(), tmp_path / "a.parquet")
    pq.write_table(table().drop_columns("x"), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match=r"b\.parquet has no column 'x'; its columns are y"):
        MODEL.fit(tmp_path)


def test_empty_directories_empty_files_and_missing_files_are_errors_that_name_them(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"folder '.*' holds no file of the kinds \.npy, \.parquet"):
        MODEL.fit(tmp_path)
    (tmp_path / "rows.csv").write_text("")
    with pytest.raises(ValueError, match=r"rows\.csv is empty"):
        MODEL.fit(tmp_path / "rows.csv")
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*lost\.npy"):
        MODEL.fit(tmp_path / "lost.npy")
    (tmp_path / "rows.csv").write_text("x,y\n")
    with pytest.raises(ValueError, match=r"rows\.csv has the names of columns but no rows"):
        MODEL.fit(tmp_path / "rows.csv")
    pq.write_table(table().slice(0, 0), tmp_path / "none.parquet")
    with pytest.raises(ValueError, match=r"none\.parquet has no rows"):
        MODEL.fit(tmp_path / "none.parquet")


def test_an_npy_file_that_is_not_a_whole_matrix_of_numbers_is_refused(tmp_path):
    path = tmp_path / "rows.npy"
    np.save(path, X)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match=r"rows\.npy is cut short: 8 bytes of its 2000 rows are missing"):
        MODEL.fit(path)
    np.save(path, X[:, 0])
    with pytest.raises(ValueError, match=r"holds float64 of shape \(2000,\); a matrix of numbers is needed"):
        MODEL.fit(path)
    path.write_bytes(b"not what its name says")
    with pytest.raises(ValueError, match=r"does not begin like a \.npy file"):
        MODEL.fit(path)


def test_an_npy_file_that_is_stored_column_by_column_is_read_like_any_other(tmp_path):
    np.save(tmp_path / "rows.npy", np.asfortranarray(X))
    ours, theirs = (TKMeans(4, init=CENTERS).fit(data) for data in (tmp_path / "rows.npy", X))
    np.testing.assert_array_equal(ours.cluster_centers_, theirs.cluster_centers_)


def test_results_for_a_file_are_written_one_row_group_at_a_time(parquet, monkeypatch):
    monkeypatch.setattr("tkmeans.sources.arrays._ROW_GROUP", 600 * 4)
    model = TKMeans(4, init=CENTERS).fit(np.tile(X, (5, 1)))  # more rows than a block
    pq.write_table(table(np.tile(X, (5, 1))), parquet)
    out = model.predict_proba(parquet)
    assert pq.ParquetFile(out).num_row_groups == 2
    written = np.column_stack([column.to_numpy() for column in pq.read_table(out).columns])
    np.testing.assert_array_equal(written, model.predict_proba(np.tile(X, (5, 1))))


def test_a_csv_file_without_a_header_loses_no_row(tmp_path):
    rows = t_mixture(n=60, n_clusters=2, n_features=2)[0]
    bare, named = tmp_path / "bare.csv", tmp_path / "named.csv"
    lines = "\n".join(f"{x!r},{y!r}" for x, y in rows.tolist())
    bare.write_text(lines + "\n")
    named.write_text("a,b\n" + lines + "\n")
    with pytest.warns(UserWarning, match=r"bare\.csv: the first line looks like data, so columns are called x1 to x2"):
        model = TKMeans(2, random_state=0).fit(bare)
    assert len(model.labels_) == 60
    assert model.feature_names_in_.tolist() == ["x1", "x2"]
    np.testing.assert_array_equal(model.cluster_centers_, TKMeans(2, random_state=0).fit(named).cluster_centers_)


def test_predict_reads_the_columns_of_the_fit_from_a_data_file_that_names_none(tmp_path):
    lines = [f"{x!r};{y!r}\n".replace(".", ",") for x, y in X.tolist()]
    path = tmp_path / "rows.csv"
    path.write_text("x;y\n" + "".join(lines))
    model = TKMeans(4, init=CENTERS[:, :1]).fit(DataFile(path, columns=["x"]))
    labels = pq.read_table(model.predict(DataFile(path, decimal=",")))["cluster"]
    np.testing.assert_array_equal(labels, model.labels_)


# ---- numbers of other kinds ----------------------------------------------------------------------

QUESTIONS = ["predict", "score_samples", "transform", "outliers", "score", "bic"]


@pytest.mark.parametrize("question", QUESTIONS)
def test_infinite_values_of_new_rows_in_a_file_are_refused_as_those_of_arrays_are(question, tmp_path):
    model, X = TKMeans(3).fit(three_groups()), three_groups((5, 1, np.inf))
    with pytest.raises(ValueError, match="infinity"):
        getattr(model, question)(X)
    np.save(tmp_path / "rows.npy", X)
    with pytest.raises(ValueError, match="X has infinite values in feature 1; clip them or mark them as NaN"):
        getattr(model, question)(tmp_path / "rows.npy")
    assert [path.name for path in tmp_path.iterdir()] == ["rows.npy"]


def test_a_file_with_nan_that_signal_is_read_without_a_warning(tmp_path):
    rows = np.zeros(40, [("a", "<f4"), ("b", "<f8")])
    rows["a"], rows["b"] = np.arange(40) % 2 * 9 + np.linspace(0, 1, 40), np.linspace(0, 1, 40) ** 2
    rows["a"].view("<u4")[3] = 0x7F800001  # a NaN that is no quiet one
    np.save(tmp_path / "rows.npy", rows)
    with np.errstate(invalid="raise"):
        assert adjusted_rand_score(TKMeans(2).fit(tmp_path / "rows.npy").labels_[4:], np.arange(36) % 2) == 1
