"""Model files that were forged or edited are refused, and what was changed after a fit is not saved."""

import json
import pickle

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, RobustScaler, StandardScaler
from support.model_inputs import t_mixture, three_groups, two_groups

import tkmeans
from tkmeans import FastTKMeans, ModelFileError, StudentTMixture, TKMeans, load, save
from tkmeans.baselines import KMedians
from tkmeans.persistence.encoding import checksum

PLANE, _, _ = t_mixture(n=120, n_clusters=3, n_features=2, scale=0.02, seed=4)
TWO_GROUPS = two_groups()


# ---- forged files --------------------------------------------------------------------------------


def forged(path, change):
    document = json.loads(path.read_text())
    change(document)
    document["checksum"] = checksum(document)
    path.write_text(json.dumps(document))


def test_a_model_file_with_the_noise_of_a_round_mixture_in_another_shape_is_refused(tmp_path):
    path = tmp_path / "model.json"
    model = StudentTMixture(3, covariance_type="spherical", noise=True, random_state=0).fit(PLANE)
    tkmeans.save(model, path)
    forged(path, lambda d: d["estimator"]["fitted"].update(noise_covariance_=d["estimator"]["fitted"]["noise_center_"]))
    with pytest.raises(ModelFileError, match="noise_covariance_"):
        tkmeans.load(path)


def test_a_model_file_whose_distances_are_in_single_precision_is_refused(tmp_path):
    path = tmp_path / "model.json"
    tkmeans.save(TKMeans(3).fit(PLANE), path)
    forged(path, lambda d: d["estimator"]["fitted"]["_training_distances"]["d2"].update(dtype="float32"))
    with pytest.raises(ModelFileError, match="_training_distances"):
        tkmeans.load(path)


@pytest.mark.parametrize("scaler", [StandardScaler, RobustScaler])
def test_a_model_file_whose_scaler_lacks_what_it_scales_by_is_refused(scaler, tmp_path):
    path = tmp_path / "model.json"
    tkmeans.save(make_pipeline(scaler(), TKMeans(3)).fit(PLANE), path)
    forged(path, lambda d: d["scaler"]["fitted"].pop("scale_"))
    with pytest.raises(ModelFileError, match=f"has a {scaler.__name__} that cannot be"):
        tkmeans.load(path)


@pytest.mark.parametrize(
    "forged", [{"transform": "os.system"}, {"transform": ["pandas"]}, {"fit": "pandas"}, {}, "pandas", None, []]
)
@pytest.mark.parametrize("place", ["scaler", "estimator"])
def test_a_model_file_sets_no_other_output_than_those_of_scikit_learn(forged, place, tmp_path):
    save(make_pipeline(RobustScaler(), TKMeans(2, random_state=0)).fit(TWO_GROUPS), tmp_path / "m.json")
    document = json.loads((tmp_path / "m.json").read_text())
    document[place]["fitted"]["_sklearn_output_config"] = forged
    document["checksum"] = checksum(document)
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelFileError, match="_sklearn_output_config"):
        load(tmp_path / "m.json")


# ---- what is saved -------------------------------------------------------------------------------


def _in_place(model):
    vars(model)["means_" if hasattr(model, "means_") else "cluster_centers_"][:] += 4


def _replaced(model):
    name = "means_" if hasattr(model, "means_") else "cluster_centers_"
    setattr(model, name, getattr(model, name) + 4)


@pytest.mark.parametrize("scaler", [RobustScaler(), StandardScaler(), MinMaxScaler()])
@pytest.mark.parametrize("last", [TKMeans(2, random_state=0), StudentTMixture(2, random_state=0)])
@pytest.mark.filterwarnings("error")
def test_a_pipeline_keeps_what_set_output_has_set_in_its_file(scaler, last, tmp_path):
    frame = pytest.importorskip("pandas").DataFrame(TWO_GROUPS, columns=["a", "b", "c"])
    model = make_pipeline(scaler, last).set_output(transform="pandas").fit(frame)
    save(model, tmp_path / "m.json")
    again = load(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert type(again[0].transform(frame)) is type(frame)
    save(again, tmp_path / "n.json")
    assert (tmp_path / "n.json").read_bytes() == (tmp_path / "m.json").read_bytes()


@pytest.mark.parametrize("change", [{"n_clusters": 7}, {"dof": -1.0}])
def test_a_model_whose_parameters_were_changed_after_the_fit_is_not_saved_over_one_that_can_be_loaded(change, tmp_path):
    path, model = tmp_path / "model.json", TKMeans(3).fit(PLANE)
    tkmeans.save(model, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="fit it again after set_params"):
        tkmeans.save(model.set_params(**change), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize("edit", [_in_place, _replaced])
@pytest.mark.parametrize("asked_before", [True, False])
@pytest.mark.parametrize("model", [TKMeans(3), FastTKMeans(3, random_state=0), StudentTMixture(3), KMedians(3)])
def test_an_edited_attribute_changes_no_answer_of_the_model_its_pickle_and_its_file(
    model, asked_before, edit, tmp_path
):
    X = three_groups()
    expected = model.fit(X).transform(X)
    model.fit(X)
    if asked_before:
        model.transform(X)
    edit(model)
    save(model, tmp_path / "model.json")
    for other in (model, pickle.loads(pickle.dumps(model)), load(tmp_path / "model.json")):
        np.testing.assert_array_equal(other.transform(X), expected)
