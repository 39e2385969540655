"""Going out into production: model files in another process, types for user programs, and the inputs people pass."""

import importlib.util
import itertools
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans

X, _, _ = t_mixture(n=300, n_clusters=3, n_features=2, seed=4)


# ---- model files -----------------------------------------------------------------


SCALERS = [StandardScaler(), RobustScaler(), MinMaxScaler()]
LAST = [TKMeans(3, random_state=0), FastTKMeans(3, random_state=0), MiniBatchTKMeans(3, random_state=0)]
ANSWERS = "predict", "predict_proba", "transform"


def test_pipelines_that_are_saved_and_loaded_in_a_fresh_process_answer_with_the_same_bits(tmp_path):
    ours = {}
    for scaler, last in itertools.product(SCALERS, LAST):
        name = f"{type(scaler).__name__} {type(last).__name__}"
        fitted = make_pipeline(clone(scaler), clone(last)).fit(X)
        tkmeans.save(fitted, tmp_path / f"{name}.json")
        ours[name] = [getattr(fitted, answer)(X).tobytes().hex() for answer in ANSWERS]
    np.save(tmp_path / "X.npy", X)
    program = (
        "import json, sys, numpy, pathlib, tkmeans\n"
        "X, models = numpy.load('X.npy'), {each.stem: tkmeans.load(each) for each in pathlib.Path().glob('*.json')}\n"
        f"answers = lambda model: [getattr(model, answer)(X).tobytes().hex() for answer in {ANSWERS}]\n"
        "json.dump({name: answers(model) for name, model in models.items()}, sys.stdout)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == ours


@pytest.mark.parametrize("streamed", [False, True])
def test_mini_batches_come_back_with_every_public_attribute(streamed, tmp_path):
    model = MiniBatchTKMeans(3, init_size=100, random_state=0)
    for part in np.array_split(X, 3) if streamed else ():
        model.partial_fit(part)
    model = model if streamed else model.fit(X)
    tkmeans.save(model, tmp_path / "model.json")
    again = tkmeans.load(tmp_path / "model.json")
    names = [name for name in vars(model) if name.endswith("_") and not name.startswith("_")]
    assert "drift_pvalues_" in names
    for name in names:
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    np.testing.assert_array_equal(again.outliers(X), model.outliers(X))


def test_a_stream_does_not_go_on_from_a_model_file(tmp_path):
    tkmeans.save(MiniBatchTKMeans(3, random_state=0).fit(X), tmp_path / "model.json")
    with pytest.raises(
        NotFittedError, match="does not hold what a stream remembers; begin anew with fit, or pickle it"
    ):
        tkmeans.load(tmp_path / "model.json").partial_fit(X)


# ---- types -----------------------------------------------------------------------

TYPED = """\
import numpy as np
from numpy.typing import NDArray

from tkmeans import MiniBatchTKMeans, TKMeans

X: NDArray[np.float64] = np.zeros((10, 2))
model: TKMeans = TKMeans(n_clusters=2, random_state=0).fit(X)
reveal_type(model.labels_)
reveal_type(model.predict(X))
reveal_type(model.outliers(X))
reveal_type(model.predict_proba(X))
reveal_type(model.cluster_centers_)
reveal_type(model.n_iter_)
reveal_type(model.score(X))
reveal_type(MiniBatchTKMeans(2).partial_fit(X).inertia_)
"""
KINDS = ["int64|signedinteger", "int64|signedinteger", "bool", "floating", "floating", "int", "float", "float"]


@pytest.mark.thorough
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_what_people_read_most_has_a_type_of_its_own(checker, tmp_path):
    if importlib.util.find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    (tmp_path / "program.py").write_text(TYPED)
    paths = {"extraPaths": [str(Path(tkmeans.__file__).parents[1])]}  # which an editable installation hides
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(paths))
    options = ["--strict", "--no-error-summary"] if checker == "mypy" else []
    command = [sys.executable, "-m", checker, *options, "program.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if "evealed type" in line or "Type of" in line]
    if checker == "pyright" and not found:
        pytest.skip("pyright cannot run here: it downloads Node.js")
    assert len(found) == len(KINDS), done.stdout
    assert [bool(re.search(kind, line)) for kind, line in zip(KINDS, found, strict=True)] == [True] * len(KINDS), found


# ---- inputs ----------------------------------------------------------------------


def tables():
    """The rows with two names, in the containers of libraries that are installed."""
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b"])
    missing = frame.convert_dtypes()
    yield "pandas, nullable", missing
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    yield "polars", pl.from_pandas(frame)
    yield "polars, lazy", pl.from_pandas(frame).lazy()
    yield "arrow", pa.Table.from_pandas(frame)
    yield "duckdb", pytest.importorskip("duckdb").sql("select * from frame")


def test_tables_of_every_library_give_the_clusters_and_names_of_the_same_array():
    expected = TKMeans(3, random_state=0).fit(X).cluster_centers_
    for name, table in tables():
        model = TKMeans(3, random_state=0).fit(table)
        np.testing.assert_array_equal(model.cluster_centers_, expected, err_msg=name)
        assert list(model.feature_names_in_) == ["a", "b"], name
        np.testing.assert_array_equal(model.predict(table), model.labels_, err_msg=name)


def test_missing_values_of_nullable_columns_are_missing():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    holes = X.copy()
    holes[0, 0] = np.nan
    expected = TKMeans(3, random_state=0).fit(holes).cluster_centers_
    frame = pd.DataFrame(X, columns=["a", "b"]).convert_dtypes()
    frame.loc[0, "a"] = pd.NA
    for table in (frame, pl.DataFrame({"a": [None, *X[1:, 0]], "b": X[:, 1]})):
        np.testing.assert_array_equal(TKMeans(3, random_state=0).fit(table).cluster_centers_, expected)


def test_columns_of_categories_or_text_are_refused_by_name():
    pd, pl, pa = (pytest.importorskip(name) for name in ("pandas", "polars", "pyarrow"))
    words = ["u", "v", "w"] * 100
    frame = pl.DataFrame({"a": X[:, 0], "word": words})
    for table in (
        pd.DataFrame({"a": X[:, 0], "word": pd.Categorical(words)}),
        frame.with_columns(pl.col("word").cast(pl.Categorical)),
        pa.table({"a": X[:, 0], "word": words}),
    ):
        with pytest.raises(TypeError, match="X in column 'word' holds text such as 'u'; convert it to numbers"):
            TKMeans(3).fit(table)


@pytest.mark.parametrize("integer", [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("kind", [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture])
def test_integers_of_every_width_are_parameters_like_any_other(kind, integer):
    mixture = kind is StudentTMixture
    whole = {"n_components" if mixture else "n_clusters": 3, "n_init": 1, "max_iter": 100, "random_state": 0}
    whole |= {"batch_size": 50, "init_size": 100, "max_no_improvement": 5} if kind is MiniBatchTKMeans else {}
    plain, narrow = kind(**whole).fit(X), kind(**{name: integer(value) for name, value in whole.items()}).fit(X)
    np.testing.assert_array_equal(narrow.predict(X), plain.predict(X))


@pytest.mark.parametrize("floating", [np.float16, np.float32, np.float64, np.longdouble])
def test_floats_of_every_width_are_parameters_like_any_other(floating):
    narrow = TKMeans(3, dof=floating(4), tol=floating(0.125), max_time=floating(60), random_state=0).fit(X)
    plain = TKMeans(3, dof=4.0, tol=0.125, max_time=60.0, random_state=0).fit(X)
    np.testing.assert_allclose(narrow.cluster_centers_, plain.cluster_centers_, atol=1e-12)


def test_the_names_of_the_package_are_the_public_ones():
    assert [name for name in dir(tkmeans) if not name.startswith("__")] == sorted(tkmeans.__all__)
