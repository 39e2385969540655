"""Probabilities mean what they say: of rows with probability .8, four in five are right."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import multivariate_t

from tkmeans import FastTKMeans, StudentTMixture, TKMeans

SHAPES = np.array([[[1.0, 0.6], [0.6, 1.0]], [[0.5, 0.0], [0.0, 2.0]], [[1.5, -0.5], [-0.5, 1.0]]])
MIDDLES = np.array([[0.0, 0.0], [2.5, 1.0], [0.0, 3.5]])


def draw(n, shapes, weights, seed):
    """Rows of overlapping t clusters, and where each came from."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=weights)
    rows = np.empty((n, 2))
    for k in range(3):
        rows[y == k] = multivariate_t.rvs(MIDDLES[k], shapes[k], df=4.0, size=np.sum(y == k), random_state=rng)
    return rows, y


ROUND = np.array([0.8 * np.eye(2)] * 3)
CASES = {
    "equal weights": (TKMeans(3, random_state=0), ROUND, [1 / 3, 1 / 3, 1 / 3]),
    "own weights": (TKMeans(3, cluster_weights="estimate", init=MIDDLES), ROUND, [0.6, 0.3, 0.1]),
    "ellipses": (StudentTMixture(3, means_init=MIDDLES, noise=False), SHAPES, [0.5, 0.3, 0.2]),
}


@pytest.fixture(scope="module", params=CASES.values(), ids=CASES)
def judged(request):
    """A model fitted to many rows, fresh rows, and the number of the cluster that each truly belongs to."""
    estimator, shapes, weights = request.param
    model = estimator.fit(draw(60_000, shapes, weights, seed=1)[0])
    centers = model.means_ if hasattr(model, "means_") else model.cluster_centers_
    number = np.linalg.norm(centers[:, None] - MIDDLES, axis=2).argmin(axis=0)  # of each true cluster
    assert sorted(number) == [0, 1, 2]
    rows, y = draw(5_000, shapes, weights, seed=2)  # few against those of the fit: its error is the smaller one
    return model, rows, number[y]


def deviation(hits, probability):
    """How many standard deviations the number of hits is off, if each row hits with its probability."""
    return (np.sum(hits) - np.sum(probability)) / np.sqrt(np.sum(probability * (1 - probability)))


def test_the_error_expected_from_the_probabilities_is_the_error_made(judged):
    model, rows, truth = judged
    sure = model.predict_proba(rows).max(axis=1)
    assert 0.05 < np.mean(1 - sure) < 0.4  # a case that is worth testing
    assert abs(deviation(model.predict(rows) == truth, sure)) < 4


def test_of_rows_with_a_given_probability_that_fraction_belongs_to_the_cluster(judged):
    model, rows, truth = judged
    proba = model.predict_proba(rows)
    for k in range(3):
        for low in np.arange(0, 1, 0.1):
            some = (proba[:, k] >= low) & (proba[:, k] < low + 0.1)
            if np.sum(proba[some, k] * (1 - proba[some, k])) > 5:  # else the binomial is not bell-shaped
                assert abs(deviation(truth[some] == k, proba[some, k])) < 4


def test_the_assignment_entropy_is_the_expected_surprise_at_the_true_labels(judged):
    model, rows, truth = judged
    proba = model.predict_proba(rows)
    surprise = -np.log(proba[np.arange(len(rows)), truth])
    error = surprise - model.assignment_entropy(rows)
    assert abs(error.mean()) < 4 * error.std() / np.sqrt(len(rows))


def test_rows_drawn_by_the_model_belong_to_clusters_as_often_as_their_probabilities_say(judged):
    model = judged[0]
    rows, truth = model.sample(20_000)
    sure = model.predict_proba(rows).max(axis=1)
    assert abs(deviation(model.predict(rows) == truth, sure)) < 4
    for low in np.arange(0.4, 1, 0.1):
        some = (sure >= low) & (sure < low + 0.1)
        assert abs(deviation(model.predict(rows[some]) == truth[some], sure[some])) < 4


def test_scores_and_probabilities_together_give_the_density_of_each_cluster(judged):
    """By Bayes: f(x) P(k | x) = P(k) f(x | k)."""
    model = judged[0]
    rows, truth = model.sample(5_000)
    weights = model.weights_ if hasattr(model, "weights_") else model.cluster_weights_
    log_posterior = np.log(model.predict_proba(rows)[np.arange(len(rows)), truth])
    log_component = model.score_samples(rows) + log_posterior - np.log(weights[truth])
    for k in range(3):
        own = rows[truth == k]
        if hasattr(model, "means_"):
            component = multivariate_t(model.means_[k], model.covariances_[k], df=model.dof_[k])
        else:
            component = multivariate_t(model.cluster_centers_[k], model.scale_ * np.eye(2), df=model.dof_)
        np.testing.assert_allclose(log_component[truth == k], component.logpdf(own), rtol=0, atol=1e-8)


@pytest.mark.parametrize("Estimator", [TKMeans, FastTKMeans, StudentTMixture])
def test_the_assignment_entropy_is_scipys_entropy_of_the_probabilities(Estimator):
    rows, _ = draw(500, ROUND, [1 / 3, 1 / 3, 1 / 3], seed=3)
    model = Estimator(3, random_state=0).fit(rows)
    entropy = model.assignment_entropy(rows)
    np.testing.assert_allclose(entropy, stats.entropy(model.predict_proba(rows), axis=1), atol=1e-12)
    assert np.all((entropy >= 0) & (entropy <= np.log(3)))
    assert model.assignment_entropy([[1e9, 0.0]]).shape == (1,)
