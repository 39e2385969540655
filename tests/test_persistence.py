"""Model files: what comes back, and what is refused."""

import contextlib
import json
import os
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, RobustScaler, StandardScaler
from support.model_inputs import t_mixture

import tkmeans
from tkmeans import FastTKMeans, ModelFileError, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.fitted import FittedModel
from tkmeans.persistence import recipes
from tkmeans.persistence.encoding import checksum, decode, encode, parse, pretty

X = t_mixture(n=120, n_clusters=3, n_features=2, seed=4)[0]

ESTIMATORS = [
    TKMeans(3, random_state=0),
    TKMeans(3, dof=1.0, init=X[:3]),
    FastTKMeans(3, random_state=0),
    *(StudentTMixture(3, covariance_type=shape, random_state=0) for shape in ("full", "tied", "diag", "spherical")),
    KMedians(3, random_state=0),
    KMedoids(3, random_state=0),
]
SCALERS = [
    StandardScaler(),
    StandardScaler(with_mean=False, with_std=False),
    RobustScaler(quantile_range=(10.0, 90.0)),
    RobustScaler(with_centering=False),
    MinMaxScaler((-1, 1)),
]


def named(estimator):
    return type(estimator).__name__


ANSWERS = ("predict", "predict_proba", "transform", "score_samples", "outlier_pvalues", "outliers", "robust_weights")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.json"


def there_and_back(estimator, path, **options):
    tkmeans.save(estimator, path, **options)
    return tkmeans.load(path)


def assert_same_bits(a, b):
    if isinstance(a, FittedModel):
        a, b = ([record.model, record.params, record.frame] for record in (a, b))
    if hasattr(a, "_asdict"):
        a, b = a._asdict(), b._asdict()
    if isinstance(a, list):
        assert len(a) == len(b)
        a, b = dict(enumerate(a)), dict(enumerate(b))
    if isinstance(a, dict):
        assert a.keys() == b.keys()
        for key in a:
            assert_same_bits(a[key], b[key])
    elif isinstance(a, np.ndarray) and a.dtype != object:
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        assert a.tobytes() == b.tobytes()
    elif isinstance(a, np.ndarray):
        assert a.tolist() == b.tolist()
    elif isinstance(a, float):
        assert np.float64(a).tobytes() == np.float64(b).tobytes()
    else:
        assert a == b


def assert_same_estimator(one, other):
    assert type(one) is type(other)
    assert_same_bits(vars(one), vars(other))


def changed(path, change):
    """The file after a change to its content, with the checksum that goes with it."""
    document = json.loads(path.read_text())
    change(document)
    document["checksum"] = checksum(document)
    path.write_text(json.dumps(document))


# ---- what comes back -------------------------------------------------------------


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_model_file_restores_every_attribute_to_the_last_bit(path, estimator):
    fitted = clone(estimator).fit(X)
    assert_same_estimator(fitted, there_and_back(fitted, path))


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_loaded_model_predicts_as_the_saved_one_to_the_last_bit(path, estimator):
    fitted = clone(estimator).fit(X)
    again = there_and_back(fitted, path, training_rows=False)
    for answer in ANSWERS:
        if hasattr(fitted, answer):
            assert_same_bits(getattr(fitted, answer)(X), getattr(again, answer)(X))


@pytest.mark.parametrize("scaler", SCALERS, ids=named)
def test_a_model_file_restores_a_pipeline_with_a_scaler_and_the_names_of_its_steps(path, scaler):
    fitted = make_pipeline(clone(scaler), TKMeans(3, random_state=0)).fit(X)
    again = there_and_back(fitted, path)
    assert [name for name, _ in again.steps] == [name for name, _ in fitted.steps]
    for (_, one), (_, other) in zip(fitted.steps, again.steps, strict=True):
        assert_same_estimator(one, other)
    assert_same_bits(fitted.predict_proba(X), again.predict_proba(X))
    again.fit(X)  # with the parameters it came with


def test_a_model_file_restores_a_scaler_fitted_to_missing_values(path):
    holes = X.copy()
    holes[::7, 0] = np.nan
    fitted = make_pipeline(StandardScaler(), TKMeans(3, random_state=0)).fit(holes)
    assert_same_estimator(fitted[0], there_and_back(fitted, path)[0])


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_a_model_file_restores_the_names_of_columns(path, kind):
    frame = pytest.importorskip(kind).DataFrame({"länge": X[:, 0], "x < 3": X[:, 1]})
    again = there_and_back(TKMeans(3, random_state=0).fit(frame), path)
    assert again.feature_names_in_.tolist() == ["länge", "x < 3"]
    again.predict(frame)  # no warning about names


def test_a_model_file_restores_float32_as_float32(path):
    fitted = TKMeans(3, random_state=0).fit(X.astype(np.float32))
    again = there_and_back(fitted, path)
    assert again.cluster_centers_.dtype == np.float32
    assert_same_estimator(fitted, again)


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=named)
def test_a_model_file_restores_what_an_interrupted_fit_has_left(path, estimator, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    model = clone(estimator)
    if isinstance(model, StudentTMixture):
        model.set_params(init_params="random")  # no other fit to begin with
    with monkeypatch.context() as patch:
        patch.setattr(FittedModel, "training", interrupted)
        with pytest.raises(KeyboardInterrupt, match="best parameters so far are on the estimator"):
            model.fit(X)
    assert_same_estimator(there_and_back(model, path), model)


def test_the_size_of_a_model_file_without_training_rows_does_not_depend_on_their_number(tmp_path):
    sizes = []
    for n in (1200, 2400):
        fitted = TKMeans(3, init=X[:3]).fit(np.tile(X, (n // 120, 1)))
        path = tmp_path / f"{n}.json"
        assert not hasattr(there_and_back(fitted, path, training_rows=False), "labels_")
        sizes.append(path.stat().st_size)
    assert sizes[1] == pytest.approx(sizes[0], rel=0.1)


numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(arrays(st.sampled_from([np.float64, np.float32]), array_shapes(min_dims=0, max_dims=3)))
@settings(max_examples=60)
def test_any_array_of_floats_is_decoded_as_it_was_encoded_to_the_last_bit(array):
    array = np.where(np.isnan(array), array.dtype.type(np.nan), array)  # one NaN is as good as another
    assert_same_bits(array, decode(parse(pretty(encode(array)))))


@given(st.one_of(numbers, st.integers(-(2**63), 2**63), st.booleans(), st.text(), st.none(), st.lists(numbers)))
@settings(max_examples=60)
def test_any_parameter_is_decoded_as_it_was_encoded(value):
    again = decode(parse(pretty(encode(value))))
    np.testing.assert_equal(again, value)
    assert type(again) is type(value)
    if isinstance(value, float) and not np.isnan(value):
        assert np.signbit(again) == np.signbit(value)


def test_the_recipes_of_model_files_list_every_fitted_attribute():
    """Whoever gives an estimator a new attribute is reminded here to put it into its recipe."""
    for estimator in [*map(clone, ESTIMATORS), *map(clone, SCALERS)]:
        name, params = type(estimator).__name__, estimator.get_params()
        attributes = set(vars(estimator.fit(X))) - set(params) - {"_fitted_model", "_published"}  # made of the others
        assert attributes <= set(recipes.kinds(name, params)), name


def test_a_model_file_is_readable_json_with_one_centre_per_line(path):
    tkmeans.save(TKMeans(3, random_state=0).fit(X), path)
    text = path.read_text()
    assert json.loads(text)["estimator"]["params"]["n_clusters"] == 3
    centre = ", ".join(repr(float(x)) for x in tkmeans.load(path).cluster_centers_[0])
    assert f"[{centre}]" in text  # one on a line


def test_the_indentation_of_a_model_file_does_not_matter(path):
    fitted = TKMeans(3, random_state=0).fit(X)
    tkmeans.save(fitted, path)
    path.write_text(json.dumps(json.loads(path.read_text())))
    assert_same_estimator(fitted, tkmeans.load(path))


# ---- what cannot be saved --------------------------------------------------------


def test_an_estimator_that_is_not_fitted_is_not_saved(path):
    with pytest.raises(NotFittedError):
        tkmeans.save(TKMeans(3), path)
    assert not path.exists()


@pytest.mark.parametrize(
    ("estimator", "complaint"),
    [
        (KMedians(3, random_state=np.random.RandomState(0)), r"cannot hold random_state=RandomState.*set_params"),
        (TKMeans(3, init=lambda X, k, random_state: X[:k]), r"cannot hold init=<function.*set_params"),
        (StandardScaler(), "can hold TKMeans, .*got StandardScaler"),
        (make_pipeline(StandardScaler(), RobustScaler(), TKMeans(3)), "got 3 steps"),
        (
            make_pipeline(Normalizer(), TKMeans(3)),
            "can hold StandardScaler, .* as the scaler of a pipeline, got Normalizer",
        ),
        (make_pipeline(StandardScaler(), MinMaxScaler()), "can hold TKMeans, .*got MinMaxScaler"),
    ],
    ids=["random state", "function", "scaler", "three steps", "other scaler", "two scalers"],
)
def test_save_refuses_what_a_model_file_cannot_hold_and_names_an_alternative(path, estimator, complaint):
    with pytest.raises(TypeError, match=complaint):
        tkmeans.save(estimator.fit(X), path)
    assert not path.exists()


def test_save_refuses_a_class_that_only_has_the_name_of_an_estimator(path):
    impostor = type("TKMeans", (), {})()
    with pytest.raises(TypeError, match="can hold TKMeans, "):
        tkmeans.save(impostor, path)


# ---- what is refused -------------------------------------------------------------


@pytest.fixture
def saved(path):
    pipeline = make_pipeline(RobustScaler(), TKMeans(3, random_state=0)).fit(X)
    tkmeans.save(pipeline, path)
    return path


def refusal(path):
    """The sentence with which a file is refused."""
    with pytest.raises(ModelFileError) as caught:
        tkmeans.load(path)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    return sentence.removeprefix(str(path))


def test_load_refuses_a_model_file_with_one_digit_changed(saved):
    text = saved.read_text()
    at = text.index('"scale_"')
    at = next(i for i in range(at, len(text)) if text[i].isdigit())
    saved.write_text(text[:at] + str((int(text[at]) + 1) % 10) + text[at + 1 :])
    assert "was changed after it was written" in refusal(saved)


def test_load_refuses_a_truncated_model_file(saved):
    saved.write_text(saved.read_text()[:-100])
    assert "is not a model file of tkmeans" in refusal(saved)


def test_load_refuses_a_model_file_of_a_newer_version_and_says_to_upgrade(saved):
    changed(saved, lambda document: document.update(version=2, tkmeans="9.0"))
    assert "newer tkmeans (9.0, file version 2)" in refusal(saved)
    assert "pip install --upgrade tkmeans" in refusal(saved)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not a model file"),
        ("[]", "its format is 'list'"),
        ("{}", "its format is None"),
        ('{"format": "onnx"}', "its format is 'onnx'"),
        ('{"format": "tkmeans-model", "format": "tkmeans-model"}', "a key occurs twice"),
        ('{"format": "tkmeans-model", "version": NaN}', "NaN is not JSON"),
        ('{"format": "tkmeans-model", "version": true}', "impossible version True"),
        ('{"format": "tkmeans-model", "version": 1}', "lacks 'checksum'"),
        ("[" * 100_000, "nested too deeply"),
        ('{"format": ' + "1" * 5000 + "}", "not a model file"),
    ],
)
def test_load_refuses_json_that_is_no_model_file(path, text, sentence):
    path.write_text(text)
    assert sentence in refusal(path)


def test_load_does_not_open_a_pickle(path):
    class Evil:
        def __reduce__(self):
            return os.system, ("touch " + str(path.with_name("owned")),)

    path.write_bytes(pickle.dumps(Evil()))
    assert "not text" in refusal(path)
    assert not path.with_name("owned").exists()


def step(which, part, key, value):
    return lambda document: document[which][part].__setitem__(key, value)


ARRAY = {"dtype": "float64", "shape": [2], "data": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda d: d.update(extra=1), "unknown entry 'extra'"),
        (lambda d: d["estimator"].update({"class": "os.system"}), "'os.system', which is not one of TKMeans"),
        (lambda d: d["estimator"].update({"class": ["TKMeans"]}), "which is not one of"),
        (lambda d: d["estimator"].update({"class": "RobustScaler"}), "'RobustScaler', which is not one of TKMeans"),
        (lambda d: d["scaler"].update({"class": "TKMeans"}), "'TKMeans', which is not one of StandardScaler"),
        (lambda d: d["estimator"].update({"code": "import os"}), "or with more than these"),
        (lambda d: d["estimator"].update({"params": []}), "are not named"),
        (lambda d: d.update(pipeline=["a"]), "names of two steps"),
        (lambda d: d.update(pipeline=["a__b", "c"]), "calls its steps ['a__b', 'c'], as no pipeline can"),
        (lambda d: d.update(scaler=None), "without a class"),
        (step("estimator", "params", "__class__", "x"), "unknown parameter '__class__'"),
        (step("estimator", "params", "n_clusters", "3"), "n_clusters must be an integer"),
        (step("estimator", "params", "engine", "evil"), "engine must be one of"),
        (step("estimator", "params", "random_state", "evil"), "'evil' cannot be used to seed"),
        (
            step("estimator", "params", "init", {"dtype": "object", "shape": [1], "data": ["x"]}),
            "unknown type 'object'",
        ),
        (step("estimator", "params", "n_clusters", 4), "cluster_centers_ that is not floats[K,p] with p = 2, K = 4"),
        (step("estimator", "fitted", "predict", 1), "unknown attribute 'predict'"),
        (step("estimator", "fitted", "cluster_centers_", ARRAY), "cluster_centers_ that is not floats[K,p]"),
        (step("estimator", "fitted", "cluster_centers_", [[1.0]]), "cluster_centers_ that is not floats[K,p]"),
        (step("estimator", "fitted", "dof_", "3.0"), "dof_ that is not degrees of freedom with"),
        (step("estimator", "fitted", "dof_", {"float": "1/0"}), "'1/0' in the place of a number"),
        (step("estimator", "fitted", "n_features_in_", 3), "that is not"),
        (step("estimator", "fitted", "_training_distances", {"d2": ARRAY}), "_training_distances that is not sketch"),
        (step("estimator", "fitted", "labels_", ARRAY | {"shape": [3]}), "not of its shape (3,)"),
        (step("estimator", "fitted", "labels_", ARRAY | {"shape": [-2]}), "impossible shape [-2]"),
        (step("estimator", "fitted", "labels_", ARRAY | {"dtype": "int64"}), "1.0 in the place of an integer"),
        (
            step("estimator", "fitted", "labels_", {"dtype": "int32", "shape": [1], "data": [2**40]}),
            "does not fit into",
        ),
        (
            step("estimator", "fitted", "labels_", {"dtype": "int64", "shape": [1], "data": [0]}),
            "outlier_pvalues_ that",
        ),
        (step("scaler", "fitted", "center_", ARRAY | {"data": ["1.0", 2.0]}), "'1.0' in the place of a number"),
        (step("scaler", "fitted", "n_features_in_", 3), "that is not"),
        (lambda d: d["estimator"]["fitted"].pop("scale_"), "a TKMeans without scale_"),
    ],
)
def test_load_refuses_a_forged_model_file_with_a_right_checksum_in_one_sentence(saved, change, sentence):
    changed(saved, change)
    assert sentence in refusal(saved)


def test_load_refuses_a_scaler_for_another_number_of_columns(path, tmp_path):
    wide = tmp_path / "wide.json"
    tkmeans.save(make_pipeline(RobustScaler(), TKMeans(3, random_state=0)).fit(np.c_[X, X]), wide)
    tkmeans.save(make_pipeline(RobustScaler(), TKMeans(3, random_state=0)).fit(X), path)
    changed(path, lambda document: document.update(scaler=json.loads(wide.read_text())["scaler"]))
    assert "scales 4 columns but clusters 2" in refusal(path)


TENSORS = {"dtype", "shape", "data"}
OUT_OF_RANGE = [
    (TKMeans(3, random_state=0), "scale_", 0.0),
    (TKMeans(3, random_state=0), "scale_", 1e-300),
    (TKMeans(3, random_state=0), "dof_", -1.0),
    (TKMeans(3, random_state=0), "dof_", 0.0),
    (TKMeans(3, random_state=0), "n_features_in_", 0),
    (TKMeans(3, random_state=0), "n_iter_", -1),
    (TKMeans(3, random_state=0), "inertia_", -1.0),
    (TKMeans(3, random_state=0), "lower_bounds_", []),
    (TKMeans(3, random_state=0), "labels_", np.full(120, 3)),
    (TKMeans(3, random_state=0), "labels_", np.full(120, -1)),
    (TKMeans(3, random_state=0), "outlier_pvalues_", np.full(120, 1.5)),
    (TKMeans(3, random_state=0), "cluster_weights_", np.array([0.5, 0.7, -0.2])),
    (TKMeans(3, random_state=0), "cluster_weights_", np.ones(3)),
    (TKMeans(3, random_state=0), "_training_distances", {"d2": np.ones(2), "mass": np.zeros(2)}),
    (TKMeans(3, random_state=0), "_training_distances", {"d2": np.array([2.0, 1.0]), "mass": np.ones(2)}),
    (StudentTMixture(3, random_state=0), "covariances_", np.zeros((3, 2, 2))),
    (StudentTMixture(3, random_state=0), "covariances_", np.tile([[1.0, 2.0], [2.0, 1.0]], (3, 1, 1))),
    (StudentTMixture(3, random_state=0), "covariances_", np.tile([[1.0, 0.5], [0.0, 1.0]], (3, 1, 1))),
    (StudentTMixture(3, covariance_type="diag", random_state=0), "covariances_", np.zeros((3, 2))),
    (StudentTMixture(3, random_state=0), "noise_weight_", 1.5),
    (StudentTMixture(3, noise=True, random_state=0), "_noise_shares", [0.6, 0.6]),
    (KMedoids(3, random_state=0), "medoid_indices_", np.array([-1, 0, 1])),
]


@pytest.mark.parametrize(("estimator", "field", "value"), OUT_OF_RANGE)
def test_load_refuses_a_fitted_value_out_of_its_range(path, estimator, field, value):
    tkmeans.save(clone(estimator).fit(X), path)
    changed(path, lambda document: document["estimator"]["fitted"].update({field: encode(value)}))
    assert f"has a {field} that is not" in refusal(path)


@pytest.mark.parametrize("estimator", [*ESTIMATORS[:7], *SCALERS[::2]], ids=named)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_load_refuses_a_model_file_with_nan_or_infinity_in_any_field_of_numbers(path, estimator, value):
    """But for NaN as the p-value of a row without values."""
    model = clone(estimator) if named(estimator) in recipes.ESTIMATORS else make_pipeline(clone(estimator), KMedians(3))
    tkmeans.save(model.fit(X), path)
    good, entry = path.read_text(), "scaler" if named(estimator) in recipes.SCALERS else "estimator"
    for field, written in json.loads(good)[entry]["fitted"].items():
        forged = {"float": str(value)}
        if isinstance(written, dict) and set(written) == TENSORS and written["dtype"].startswith("float"):
            there = decode(written)
            there.flat[0] = value
            forged = encode(there)
        if field in ("outlier_pvalues_", "drift_pvalues_") and np.isnan(value):
            continue
        path.write_text(good)
        changed(path, lambda document, field=field, forged=forged: document[entry]["fitted"].update({field: forged}))
        assert f"has a {field} that is not" in refusal(path)


@pytest.mark.parametrize("depth", [100, 600, 900])
@pytest.mark.parametrize("place", ["params", "fitted"])
def test_load_refuses_a_model_file_that_is_nested_deeply(saved, depth, place):
    nested = 0
    for _ in range(depth):
        nested = [nested]
    changed(saved, step("estimator", place, "init" if place == "params" else "labels_", nested))
    with contextlib.suppress(ModelFileError):  # centres to start from are checked by the next fit
        tkmeans.load(saved)


@pytest.mark.parametrize("shape", [[0, 10**40], [0] * 70, [0, 2**62]])
def test_load_refuses_an_array_of_impossible_shape(saved, shape):
    array = {"dtype": "float64", "shape": shape, "data": []}
    changed(saved, step("estimator", "fitted", "cluster_centers_", array))
    refusal(saved)


@pytest.mark.parametrize("entry", [{"float": 1.0}, {"dtype": "float64", "shape": [1], "data": [1.0]}])
@pytest.mark.parametrize("place", ["params", "fitted"])
def test_load_refuses_parameters_and_attributes_that_look_like_a_number_or_an_array(saved, entry, place):
    changed(saved, lambda document: document["estimator"].update({place: entry}))
    assert "unknown" in refusal(saved)


def test_load_refuses_a_number_beyond_all_floats(saved):
    saved.write_text(saved.read_text().replace('"n_iter_": ', '"n_iter_": 1e999, "n_iter": '))
    refusal(saved)


def test_load_refuses_a_mixture_with_noise_that_is_nowhere(path):
    tkmeans.save(StudentTMixture(3, noise=False, random_state=0).fit(X), path)
    changed(path, step("estimator", "fitted", "noise_weight_", 0.1))
    assert "without where the noise is" in refusal(path)


LOCAL = {"checkpoint": "fit.npz", "n_jobs": 2, "verbose": 1}


@pytest.mark.parametrize("estimator", [TKMeans(3), FastTKMeans(3), StudentTMixture(3)], ids=named)
def test_a_model_file_carries_no_setting_of_its_machine_and_restores_none(path, estimator, capsys):
    fitted = clone(estimator).set_params(random_state=0, verbose=1, n_jobs=2)
    fitted.set_params(checkpoint=path.with_name("fit.npz")).fit(X)
    tkmeans.save(fitted, path)
    assert not set(LOCAL) & set(json.loads(path.read_text())["estimator"]["params"])
    changed(path, lambda document: document["estimator"]["params"].update(LOCAL))  # as older versions wrote it
    again = tkmeans.load(path)
    assert [again.checkpoint, again.n_jobs, again.verbose] == [None, None, 0]


@given(st.data(), st.recursive(st.none() | st.booleans() | numbers | st.text() | st.integers(), st.lists, max_leaves=5))
@settings(max_examples=60, deadline=None)
def test_a_model_file_with_any_value_either_loads_or_is_refused(tmp_path_factory, data, value):
    good, path = (tmp_path_factory.getbasetemp() / name for name in ("good.json", "any.json"))
    if not good.exists():
        tkmeans.save(TKMeans(3, init=X[:3]).fit(X[:20]), good)
    document = json.loads(good.read_text())
    part = document["estimator"][data.draw(st.sampled_from(["params", "fitted"]))]
    part[data.draw(st.sampled_from(sorted(part)))] = encode(value)
    path.write_text(json.dumps(document | {"checksum": checksum(document)}))
    with contextlib.suppress(ModelFileError):
        assert type(tkmeans.load(path)) is TKMeans


# ---- writing ---------------------------------------------------------------------


def test_a_model_that_cannot_be_written_leaves_the_old_file_unchanged(path, monkeypatch):
    fitted = TKMeans(3, random_state=0).fit(X)
    tkmeans.save(fitted, path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        tkmeans.save(TKMeans(2, random_state=0).fit(X), path)
    assert path.read_bytes() == before
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_a_model_file_has_a_line_for_every_entry_and_for_every_row_of_numbers():
    value = {"name": "größe", "rows": [[1, 2.5], [3, 4]], "parts": [{"a": []}, {}], "none": None}
    assert pretty(value) == "\n".join(
        [
            "{",
            '  "name": "größe",',
            '  "rows": [',
            "    [1, 2.5],",
            "    [3, 4]",
            "  ],",
            '  "parts": [',
            "    {",
            '      "a": []',
            "    },",
            "    {}",
            "  ],",
            '  "none": null',
            "}",
        ]
    )
    assert json.loads(pretty(value)) == value


def test_a_model_of_a_single_row_is_saved_and_loaded(tmp_path):
    model = tkmeans.TKMeans(1).fit([[1.0, 2.0]])
    tkmeans.save(model, tmp_path / "one.json")
    assert tkmeans.load(tmp_path / "one.json").outliers([[1.0, 2.0], [9.0, 9.0]]).tolist() == [False, True]


def test_a_model_of_a_dask_array_is_saved_without_what_is_computed_later(path):
    array = pytest.importorskip("dask.array")
    rows = array.from_array(X, chunks=(50, -1))
    model = TKMeans(2, random_state=0).fit(rows)
    assert hasattr(model.labels_, "compute")
    again = there_and_back(model, path)
    assert not hasattr(again, "labels_")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
