"""What the page says, and that it is one safe file."""

import base64
import hashlib
import json
import re
from importlib.resources import files

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import PowerTransformer, RobustScaler, StandardScaler

from tkmeans import FastTKMeans, Selection, StudentTMixture, TKMeans, write_report
from tkmeans.datasets import make_contaminated
from tkmeans.report import report_page as write

EVIL = "</script><script>window.hacked=1</script><img src=x onerror='hacked=1'>\"&$title${x}"


@pytest.fixture(scope="module")
def data():
    return make_contaminated(300, 3, random_state=0)[0]


@pytest.fixture(scope="module")
def fitted(data):
    """A fitted model that has its verdict ready."""
    model = TKMeans(3, random_state=0).fit(data)
    verdict = model.outliers(data)
    model.outliers = lambda _: verdict
    return model


@pytest.fixture(scope="module")
def quick(data):
    """A model that needs no verdict on outliers: reports of it are written at once."""
    return KMeans(3, n_init=1, random_state=0).fit(data)


def drawing_of(page):
    return json.loads(page.all("script", id="data")[0]["text"])


def unpacked(column):
    return np.frombuffer(base64.b64decode(column["values"]), "<f4").astype(float) + column["middle"]


def table_rows(page, label):
    """The cells of a table, as text."""
    start = next(i for i, e in enumerate(page.elements) if e.get("aria-label") == label)
    rows = []
    for element in page.elements[start + 1 :]:
        if element.get("role") == "region" or element["tag"] == "section":
            break
        if element["tag"] == "tr":
            rows.append([])
        elif element["tag"] in ("th", "td"):
            rows[-1].append(element["text"].strip())
    return rows[1:]


# ---- one safe file -------------------------------------------------------------------


def test_a_report_refers_to_no_other_file_or_host(page, fitted, data):
    read = page(fitted, data)
    assert {e["href"] for e in read.elements if "href" in e if not e["href"].startswith("#")} == {"data:,"}
    assert not [e for e in read.elements if "src" in e or e["tag"] in ("iframe", "object", "embed", "base")]
    assert "url(" not in read.all("style")[0]["text"]
    assert "@import" not in read.all("style")[0]["text"]


def test_the_content_security_policy_of_a_report_allows_only_its_own_script_and_style(page, fitted, data):
    read = page(fitted, data)
    policy = read.all("meta", http_equiv="Content-Security-Policy")[0]["content"]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    for kind, element in (("style-src", read.all("style")[0]), ("script-src", read.all("script")[-1])):
        digest = base64.b64encode(hashlib.sha256(element["text"].encode()).digest()).decode()
        assert rules[kind] == f"'sha256-{digest}'"
    assert not [e for e in read.elements if "style" in e or any(name.startswith("on") for name in e)]


def test_every_link_within_a_report_has_a_target(page, fitted, data):
    read = page(fitted, data)
    there = {e["id"] for e in read.elements if "id" in e}
    assert {e["href"][1:] for e in read.all("a")} <= there


@pytest.mark.parametrize("model", ["fitted", "quick"])
def test_names_with_html_stay_text_in_a_report(model, data, page, request):
    read = page(
        request.getfixturevalue(model),
        data,
        feature_names=[EVIL, "\u202etfel ot thgir"],
        row_names=[EVIL + str(i) for i in range(len(data))],
        title=EVIL,
        call=EVIL,
    )
    assert len(read.all("script")) == 2
    assert not read.all("img")
    assert read.all("title")[0]["text"] == EVIL
    assert read.all("code")[0]["text"] == EVIL
    assert EVIL in {e.get("title") for e in read.all("bdi")} | {e["text"] for e in read.all("bdi")}
    assert drawing_of(read)["columns"][0]["name"] == EVIL[:79] + "…"


def test_two_reports_of_the_same_fit_are_equal_byte_by_byte(tmp_path, quick, data):
    first, second = write_report(tmp_path / "a.html", quick, data), write_report(tmp_path / "b.html", quick, data)
    assert first.read_bytes() == second.read_bytes()


def test_a_report_that_fails_leaves_the_old_file_unchanged(tmp_path, quick, data, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("the old one")
    with pytest.raises(ValueError, match="features"):
        write_report(path, quick, data[:, :1])
    monkeypatch.setattr(write, "_page", lambda *_: "\ud800" if path.read_text() == "the old one" else "")
    write_report(path, quick, data)
    assert path.read_text() == "?"
    assert list(tmp_path.iterdir()) == [path]


def test_the_templates_of_the_report_are_part_of_the_package():
    for name in ("page.html", "style.css", "geometry.js", "picture.js", "report.js"):
        assert files("tkmeans.report").joinpath(name).is_file()


# ---- every estimator, every shape ----------------------------------------------------

MODELS = [TKMeans(3), FastTKMeans(3), StudentTMixture(3), KMeans(3, n_init=1)]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_a_report_of_any_clusterer_leaves_out_what_the_clusterer_does_not_provide(model, page, data):
    model = clone(model).set_params(random_state=0).fit(data)
    read = page(model, data)
    titles = {e["text"] for e in read.all("h2")}
    assert len(read.all("article", class_="card")) == 3
    assert ("Outliers" in titles) == hasattr(model, "outliers")
    assert ("Rows of least weight" in titles) == (hasattr(model, "robust_weights") and not hasattr(model, "outliers"))
    assert ("How clearly rows belong to their clusters" in read.text) == hasattr(model, "predict_proba")
    assert ("at the start and after every iteration" in read.text) == hasattr(model, "lower_bounds_")


@pytest.mark.parametrize("p", [1, 2, 3, 50])
def test_a_report_has_one_to_twelve_columns_for_the_axes(p, page):
    X, _ = make_contaminated(200, 2, p, outlier_fraction=0.0, random_state=0)
    read = page(KMeans(2, n_init=1, random_state=0).fit(X), X, feature_names=[f"Größe {j} 尺寸" for j in range(p)])
    drawing = drawing_of(read)
    kinds = [column["kind"] for column in drawing["columns"]]
    assert kinds == {1: ["column", "height"], 2: ["column"] * 2}.get(p, ["plane"] * 2 + ["column"] * min(p, 12))
    assert "Größe 0 尺寸" in read.text
    assert all(0 <= i < len(kinds) for i in drawing["view"])


def test_a_report_of_one_cluster_has_no_section_on_membership(page, data):
    read = page(TKMeans(1, dof=1.0).fit(data), data)
    assert "1 cluster" in read.text
    assert "How clearly rows belong to their clusters" not in read.text


def test_a_report_counts_missing_values_and_rows_without_any_value(page, data):
    X = np.column_stack([data, data[:, 0] + data[:, 1]])
    X[::7, 1] = np.nan
    X[5] = np.nan
    with pytest.warns(UserWarning, match="without a single observed value"):
        model = TKMeans(3, random_state=0).fit(X)
    read = page(model, X)
    assert "1 row without a single value" in read.text
    missing = np.isnan(X)
    assert f"{100 * missing.mean():.1f} % of all values, in {missing.any(axis=1).sum()} rows" in read.text
    values = unpacked(drawing_of(read)["columns"][3])
    np.testing.assert_array_equal(np.isnan(values), missing[:, 1])


def test_a_report_accepts_columns_that_are_missing_or_constant_in_its_rows(page, data):
    X = np.column_stack([data, data[:, 0], data[:, 1]])
    model = TKMeans(3, dof=1.0, random_state=0).fit(X)
    X[:, 2], X[:, 3] = np.nan, 5.0
    assert "100 %" in page(model, X).text


def test_a_report_counts_clusters_without_rows(page, data):
    model = KMeans(3, n_init=1, random_state=0).fit(data)
    model.cluster_centers_[2] = 1e6
    assert "1 cluster without any row" in page(model, data).text


def test_a_report_accepts_names_with_lone_surrogates(page, quick, data):
    page(quick, data, row_names=["\ud83d"] * len(data))


def test_values_that_float32_cannot_hold_are_finite_and_far_away_in_the_picture(page, quick, data):
    X = data.copy()
    X[0] = 1e60
    values = unpacked(drawing_of(page(quick, X))["columns"][0])
    assert np.isfinite(values).all()
    assert values.argmax() == 0


# ---- what it says --------------------------------------------------------------------


def test_the_picture_of_a_report_holds_the_rows_to_seven_digits_of_their_spread(page, quick, data):
    shifted = data + 1.7e9  # seconds since 1970, say
    model = KMeans(3, n_init=1, random_state=0).fit(shifted)
    columns = drawing_of(page(model, shifted))["columns"]
    for j in (0, 1):
        np.testing.assert_allclose(unpacked(columns[j]), shifted[:, j], rtol=0, atol=2e-6)
        np.testing.assert_allclose(columns[j]["centers"], model.cluster_centers_[:, j])


def test_a_report_takes_names_of_columns_and_rows_from_a_data_frame(page, data):
    frame = pd.DataFrame(data, columns=["length", "width"], index=[f"bird {i}" for i in range(len(data))])
    read = page(KMeans(3, n_init=1, random_state=0).fit(frame), frame)
    drawing = drawing_of(read)
    assert [column["name"] for column in drawing["columns"]] == ["length", "width"]
    assert drawing["rows"][:2] == ["bird 0", "bird 1"]
    assert drawing_of(page(KMeans(3, n_init=1, random_state=0).fit(data), pd.DataFrame(data)))["rows"] is None


def test_a_report_with_a_scaler_is_in_the_users_units(page, data):
    X = data * [1000.0, 0.001] + [5.0, 7.0]
    scaler = RobustScaler().fit(X)
    model = KMeans(3, n_init=1, random_state=0).fit(scaler.transform(X))
    read = page(model, X, scaler=scaler)
    columns = drawing_of(read)["columns"]
    expected = scaler.inverse_transform(model.cluster_centers_)
    np.testing.assert_allclose(np.column_stack([c["centers"] for c in columns]), expected)
    np.testing.assert_allclose([c["slope"] for c in columns], 1 / scaler.scale_)
    assert "RobustScaler" in read.text


def test_a_report_with_a_scaler_fitted_on_a_data_frame_causes_no_warning(page, data):
    frame = pd.DataFrame(data, columns=["a", "b"])
    scaler = StandardScaler().fit(frame)
    page(KMeans(3, n_init=1, random_state=0).fit(scaler.transform(frame)), frame, scaler=scaler)


def test_a_report_with_a_nonlinear_scaler_has_no_slopes(page, data):
    scaler = PowerTransformer().fit(data)
    read = page(KMeans(3, n_init=1, random_state=0).fit(scaler.transform(data)), data, scaler=scaler)
    assert [column["slope"] for column in drawing_of(read)["columns"]] == [None, None]


def test_a_report_lists_outliers_the_farthest_first_with_the_column_that_makes_them_so(page, fitted, data):
    read = page(fitted, data, feature_names=["length", "width"])
    found = np.flatnonzero(fitted.outliers(data))
    away = data - fitted.cluster_centers_[fitted.predict(data)]
    order = found[np.argsort(-np.linalg.norm(away[found], axis=1))]
    rows = table_rows(read, "Rows that stand out")
    assert [row[0] for row in rows] == [f"row {i}" for i in order]
    most = np.abs(away[order]).argmax(axis=1)
    assert [row[3].split(":")[0] for row in rows] == [("length", "width")[j] for j in most]
    assert f"{len(found)} rows" in read.text


def test_the_most_typical_row_of_a_cluster_in_a_report_is_the_nearest_to_its_centre(page, fitted, data):
    read = page(fitted, data)
    nearest = cdist(data, fitted.cluster_centers_).argmin(axis=0)
    for k in range(3):
        assert table_rows(read, f"Typical rows of cluster {k}")[0][0] == f"row {nearest[k]}"


def test_the_least_typical_rows_of_a_cluster_in_a_report_are_the_farthest_that_are_no_outliers(page, fitted, data):
    read = page(fitted, data)
    labels, distances = fitted.predict(data), cdist(data, fitted.cluster_centers_).min(axis=1)
    own = np.flatnonzero((labels == 1) & ~fitted.outliers(data))
    assert table_rows(read, "Least typical rows of cluster 1")[0][0] == f"row {own[distances[own].argmax()]}"


def test_a_report_states_the_share_of_rows_with_a_probability_of_at_least_95_per_cent(page):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(200, 1)), rng.normal(size=(200, 1)) + 3])
    model = TKMeans(2, dof=50.0, random_state=0).fit(X)
    probability = model.predict_proba(X).max(axis=1)
    read = page(model, X)
    assert f"{100 * np.mean(probability >= 0.95):.0f} % clear: probability at least 0.95" in read.text
    assert f"{np.sum(probability < 0.8)} rows lie between clusters (probability below 0.8)" in read.text


def test_the_histograms_of_a_report_count_the_rows_of_a_cluster_and_of_all(page):
    X = np.repeat([[0.0], [1.0], [10.0], [11.0]], [30, 10, 20, 60], axis=0)
    read = page(KMeans(2, n_init=1, random_state=0).fit(X), X, feature_names=["size"])
    heights = [
        [float(height) for height in re.findall(r"V([\d.]+)h", path["d"])]
        for path in read.all("path")
        if path.get("class") in ("every", "own")
    ]
    counted = np.histogram(X, 24)[0]
    for drawn, rows in zip(heights[:2], (counted, np.where(np.arange(24) < 12, counted, 0)), strict=True):
        if not np.allclose(drawn, 20 - 18 * rows / rows.max(), atol=0.06):
            rows = counted - rows if rows is not counted else rows  # the clusters the other way round
            np.testing.assert_allclose(drawn, 20 - 18 * rows / rows.max(), atol=0.06)


def test_a_report_shows_the_categories_of_each_cluster_with_their_share_there_and_elsewhere(page):
    X = np.repeat([[0.0], [10.0]], [30, 20], axis=0) + np.random.default_rng(0).normal(size=(50, 1))
    species = ["Adelie"] * 27 + ["Gentoo"] * 3 + ["Gentoo"] * 20
    model = TKMeans(2, random_state=0).fit(X)
    first, second = page(model, X, categories={"species": species}).all("article", class_="card")
    words = " ".join(first["text"].replace("\u00a0", " ").split())
    assert "species90 % Adelie0 %" in words
    assert "species100 % Gentoo10 %" in " ".join(second["text"].replace("\u00a0", " ").split())


def test_a_report_shows_noise_and_agreement_where_the_estimator_has_them(page, data):
    model = StudentTMixture(3, random_state=0).fit(data)
    read = page(model, data)
    assert f"{100 * model.noise_weight_:.1f} %" in read.text or f"{100 * model.noise_weight_:.0f} %" in read.text
    assert "by the fitted model" in read.text
    model.agreement_ = 0.8
    assert "80 % of independent searches found the same clusters" in page(model, data).text


def test_a_report_with_a_selection_shows_the_numbers_of_clusters_tried(page, quick, data):
    icl, nothing = np.array([5.0, 4, 1, 2]), np.zeros(4)
    path = Selection(np.arange(1, 5), np.full(4, "full"), nothing, icl, nothing, nothing, criterion="icl")
    read = page(quick, data, selection=path)
    assert "4 numbers of clusters from 1 to 4 were tried" in read.text
    assert "3 is best and 4 comes next, 0.5 nats behind" in read.text
    chart = json.loads(read.all("svg", class_="chart")[0]["data-chart"])
    assert chart["points"] == [[1, 5], [2, 4], [3, 1], [4, 2]]
    assert chart["marks"] == [[3, "best", "chosen: 3"], [4, "second", "runner-up: 4"]]
    assert "was given; other numbers were not tried" in page(quick, data).text


def test_a_report_repeats_the_warnings_of_the_estimator(page):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(300, 2)), rng.normal(size=(30, 2)) * 0.1 + 100])
    model = TKMeans(1, random_state=0).fit(X)
    assert "they look like a missed cluster" in page(model, X).text


def test_a_report_remarks_a_fit_that_did_not_converge(page, quick, data):
    model = KMeans(3, n_init=1, random_state=0).fit(data)
    model.converged_ = False
    assert "did not settle" in page(model, data).text


def test_a_report_states_the_call_and_the_versions(page, quick, data):
    assert page(quick, data, call="tkmeans fit a.csv -k 3").all("code")[0]["text"] == "tkmeans fit a.csv -k 3"
    read = page(quick, data)
    assert read.all("code")[0]["text"] == "KMeans(n_clusters=3, n_init=1, random_state=0).fit(X)"
    assert "scikit-learn" in read.text


# ---- size ----------------------------------------------------------------------------


def test_a_report_of_a_hundred_thousand_rows_stays_below_five_megabytes_whatever_their_names(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 30)) + 20 * np.eye(4, 30)[np.arange(100_000) % 4]
    outliers = rng.random(100_000) < 0.1
    model = KMeans(4, n_init=1, max_iter=1, init=20 * np.eye(4, 30)).fit(X)
    model.outliers = lambda _: outliers
    names = ["🐧" * 50 + str(i) for i in range(100_000)]
    path = write_report(tmp_path / "big.html", model, X, row_names=names, feature_names=["é" * 500] * 30)
    assert path.stat().st_size < 5_000_000
    text = path.read_text(encoding="utf-8")
    assert "a sample of 20\u202f000 rows is drawn" in text
    assert "The 500 farthest of" in re.sub(r"\s+", " ", text)


# ---- mistakes ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"feature_names": ["one"]}, "feature_names must name the 2 columns of X, got 1 names"),
        ({"row_names": ["one"]}, r"row_names must name the \d+ rows of X, got 1 names"),
    ],
)
def test_a_report_refuses_names_of_another_number_than_columns_or_rows(options, message, page, quick, data):
    with pytest.raises(ValueError, match=message):
        page(quick, data, **options)


def test_a_report_refuses_an_estimator_that_was_not_fitted(page, data):
    with pytest.raises(NotFittedError):
        page(TKMeans(3), data)


def test_notes_on_how_rows_were_read_stand_with_the_data(page, fitted, data):
    found = page(fitted, data, notes=["not used for clustering: <city> (text)", "read with semicolons"])
    assert "Notes not used for clustering: <city> (text) read with semicolons" in found.text
    assert "Notes" not in [each["text"] for each in page(fitted, data).all("th")]


def test_a_cluster_between_others_is_of_medium_level(page):
    X = np.repeat([0.0, 10.0, 20.0], 40)[:, None] + np.random.default_rng(0).normal(size=(120, 1))
    text = page(TKMeans(3, random_state=0).fit(X), X, feature_names=["age"]).text
    assert "Medium age" in text
    assert text.count("very high") == text.count("very low") == 1
