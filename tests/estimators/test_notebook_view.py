"""What a notebook shows of an estimator."""

from html.parser import HTMLParser

import numpy as np
import pytest
from sklearn import config_context

import tkmeans
from tkmeans import FastTKMeans, MiniBatchTKMeans, StudentTMixture, TKMeans
from tkmeans.baselines import KMedians, KMedoids
from tkmeans.datasets import make_contaminated

X, _ = make_contaminated(n_samples=300, n_clusters=3, random_state=0)
ALL = [TKMeans, FastTKMeans, MiniBatchTKMeans, StudentTMixture, KMedians, KMedoids]


class Page(HTMLParser):
    """The tags and the text of what comes after scikit-learn's diagram."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.cells, self.text = [], [], ""
        self.feed(html[html.index('<div class="tkmeans-fit">') :])

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag == "td":
            self.cells.append("")

    def handle_data(self, data):
        self.text += data
        if self.tags[-1] == "td" and data.strip():
            self.cells[-1] += data


def shown(model):
    return Page(model._repr_html_())


@pytest.mark.parametrize("final", ALL)
def test_a_fitted_estimator_shows_its_clusters_with_their_rows_shares_and_centres(final):
    model = final(3, random_state=0).fit(X)
    cells, head = shown(model).cells, 5
    sizes = np.bincount(model.labels_)
    centers = model.means_ if final is StudentTMixture else model.cluster_centers_
    assert cells[:head] == ["cluster", "rows", "share", "centre: feature 0", "centre: feature 1"]
    for k in range(3):
        row = cells[head * (k + 1) : head * (k + 2)]
        assert row[:3] == [str(k), str(sizes[k]), f"{sizes[k] / len(X):.1%}".replace("%", " %")]
        np.testing.assert_allclose([float(cell) for cell in row[3:]], centers[k], rtol=1e-3)


@pytest.mark.parametrize("final", ALL)
def test_an_estimator_that_is_not_fitted_shows_its_parameters_alone(final):
    html = final(3)._repr_html_()
    assert "tkmeans-fit" not in html
    assert final.__name__ in html


def test_the_share_of_outliers_is_that_of_the_rows_flagged():
    model = TKMeans(3, random_state=0).fit(X)
    flagged = model.outliers(X).mean()
    assert flagged > 0
    assert f"{100 * flagged:.1f} % of the rows are outliers" in shown(model).text


def test_without_outliers_it_says_so():
    clean, _ = make_contaminated(n_samples=300, n_clusters=3, outlier_fraction=0, random_state=0)
    assert "No row is an outlier" in shown(TKMeans(3, random_state=0).fit(clean)).text


def test_the_share_of_noise_is_the_weight_of_the_noise_component():
    model = StudentTMixture(3, random_state=0).fit(X)
    assert model.noise_weight_ > 0.01
    assert f"{100 * model.noise_weight_:.1f} % of the rows are noise" in shown(model).text


def test_agreement_is_shown_where_the_fit_knows_it():
    model = TKMeans(3, random_state=0).fit(X)
    model.agreement_ = 0.75
    assert "75 % of independent searches found these clusters" in shown(model).text
    del model.agreement_
    assert "searches" not in shown(model).text


def test_a_fit_that_did_not_converge_says_so():
    with pytest.warns(UserWarning, match="converge"):
        model = TKMeans(3, init=X[:3], max_iter=1).fit(X)
    assert "stopped before it converged" in shown(model).text
    assert "stopped" not in shown(TKMeans(3, random_state=0).fit(X)).text


def test_names_of_features_are_text_and_no_markup():
    pandas = pytest.importorskip("pandas")
    names = ["<script>alert(1)</script>", "a & b $rows"]
    page = shown(TKMeans(3, random_state=0).fit(pandas.DataFrame(X, columns=names)))
    assert "script" not in page.tags
    assert all(f"centre: {name}" in page.cells for name in names)


def test_of_many_clusters_and_features_the_first_are_shown_and_the_others_counted():
    wide = np.random.default_rng(0).normal(size=(200, 9))
    page = shown(KMedians(25, random_state=0).fit(wide))
    assert page.tags.count("tr") == 1 + 20
    assert "25 clusters, of which the table shows 20, with 6 of 9 features" in page.text


@pytest.mark.parametrize("final", [TKMeans, StudentTMixture, KMedians])
def test_a_model_without_labels_shows_the_shares_of_the_fit_if_it_has_some(final, tmp_path):
    tkmeans.save(final(3, random_state=0).fit(X), tmp_path / "model.json", training_rows=False)
    model = tkmeans.load(tmp_path / "model.json")
    weights = getattr(model, "cluster_weights_", getattr(model, "weights_", None))
    expected = ["", "", ""] if weights is None else [f"{100 * weight:.1f} %" for weight in weights]
    assert shown(model).cells[7::5] == expected


def test_labels_that_dask_has_yet_to_compute_are_not_computed():
    dask = pytest.importorskip("dask")
    array = pytest.importorskip("dask.array")
    model = TKMeans(3, random_state=0).fit(array.from_array(X, chunks=(100, 2)))

    def refuse(*_args, **_kwargs):
        raise AssertionError("computed")

    with dask.config.set(scheduler=refuse):
        page = shown(model)
    assert f"{100 * model.cluster_weights_[0]:.1f} %" in page.cells


def test_notebooks_get_the_same_by_either_protocol_unless_text_is_asked_for():
    model = TKMeans(3, random_state=0).fit(X)
    bundle = model._repr_mimebundle_()
    assert Page(bundle["text/html"]).cells == shown(model).cells
    assert bundle["text/plain"] == repr(model)
    with config_context(display="text"):
        assert set(model._repr_mimebundle_()) == {"text/plain"}
        assert not hasattr(model, "_repr_html_")
