"""Arrays of other libraries: they stay where they are if scikit-learn is told so, and are read as NumPy's if not."""

import numpy as np
import pytest
import sklearn
from sklearn.utils import estimator_checks
from support.model_inputs import t_mixture

from tkmeans import FastTKMeans, MiniBatchTKMeans, TKMeans

xp = pytest.importorskip("array_api_strict", reason="needs array-api-strict")

X, _, CENTERS = t_mixture(n=500, n_clusters=3, n_features=2)


@pytest.fixture
def dispatch(monkeypatch):
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    with sklearn.config_context(array_api_dispatch=True):
        yield


def test_without_array_api_dispatch_a_tensor_is_read_as_an_array_of_numpy():
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    model = TKMeans(3, init=CENTERS).fit(torch.from_numpy(X))
    np.testing.assert_array_equal(model.cluster_centers_, TKMeans(3, init=CENTERS).fit(X).cluster_centers_)
    assert type(model.predict(torch.from_numpy(X))) is np.ndarray


@pytest.mark.usefixtures("dispatch")
@pytest.mark.parametrize("place", ["CPU_DEVICE", "device1"])
def test_attributes_and_predictions_are_on_the_device_of_the_rows(place):
    device = xp.Device(place)
    rows = xp.asarray(X, device=device)
    model = TKMeans(3, init=CENTERS).fit(rows, sample_weight=xp.ones(len(X), device=device))
    fitted = [model.cluster_centers_, model.cluster_weights_, model.labels_, model.outlier_pvalues_]
    told = [model.predict(rows), model.transform(rows), model.score_samples(rows), model.outliers(rows)]
    assert {array.device for array in fitted + told} == {device}


@pytest.mark.usefixtures("dispatch")
def test_the_native_engine_refuses_arrays_of_other_libraries():
    with pytest.raises(ValueError, match='engine="native" reads NumPy arrays, got one of array_api_strict; use "auto"'):
        TKMeans(3, engine="native").fit(xp.asarray(X))


@pytest.mark.usefixtures("dispatch")
def test_predict_refuses_rows_of_another_array_library_than_the_fit():
    model = TKMeans(3, init=CENTERS).fit(xp.asarray(X))
    with pytest.raises(ValueError, match=r"TKMeans\.predict\(\) must use the same namespace and device.*convert X"):
        model.predict(X)
    with sklearn.config_context(array_api_dispatch=False):
        assert model.predict(X).shape == (500,)


@pytest.mark.usefixtures("dispatch")
def test_minibatch_refuses_arrays_of_other_libraries():
    with pytest.raises(TypeError, match="MiniBatchTKMeans takes batches from arrays in memory"):
        MiniBatchTKMeans(3).fit(xp.asarray(X))


@pytest.mark.parametrize("estimator", [TKMeans(3), FastTKMeans(3)], ids=["TKMeans", "FastTKMeans"])
@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
def test_scikit_learns_checks_of_the_array_api_pass(estimator, library, monkeypatch):
    if not hasattr(estimator_checks, "check_array_api_same_namespace"):
        pytest.skip("scikit-learn has these checks from 1.9 on")
    pytest.importorskip(library, reason="needs the extra torch")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    name, device = type(estimator).__name__, "CPU_DEVICE" if library == "array_api_strict" else "cpu"
    for weighted in (False, True):
        estimator_checks.check_array_api_input(
            name, estimator, library, device, "float64", check_values=True, check_sample_weight=weighted
        )
    estimator_checks.check_array_api_same_namespace(name, estimator, library, device)
