"""The page of the documentation: every figure comes from stored runs, and the paper's claims from its own tables."""

import json
import math
import re

import numpy as np
from scipy import stats

from benchmarks import reproduction_page
from tkmeans.paper import experiment_runs
from tkmeans.paper.published_values import Mean, publication


def test_the_page_of_the_documentation_is_what_the_stored_runs_give():
    assert reproduction_page.made() == reproduction_page.PAGE.read_text(encoding="utf-8")


def test_a_changed_mean_changes_the_page_of_the_documentation():
    cells = reproduction_page.read_results(reproduction_page.RESULTS)
    facts = json.loads(reproduction_page.FACTS.read_text(encoding="utf-8"))
    cells["S1/GMM/correct"]["ARI"] = Mean(0.123, 0.0, 25, 0.123, 0.123)
    assert reproduction_page.page(cells, facts) != reproduction_page.PAGE.read_text(encoding="utf-8")


def test_no_result_is_typed_by_hand_into_the_page_of_the_documentation():
    settings = {0.01, 0.005, 0.0005, 0.002, 0.937, 0.9365, 0.9375, 0.1, 1.96}
    printed = {
        x for sets in publication()["cells"].values() for of in sets.values() for cell in of.values() for x in cell
    }
    template = re.sub(r"\(http[^)]*\)", "", reproduction_page.TEMPLATE.read_text(encoding="utf-8"))
    typed = {float(x) for x in re.findall(r"(?<![\d.])\d*\.\d+", template)}
    assert typed <= settings | printed


def test_the_stored_runs_are_those_of_a_hundred_repetitions():
    cells = reproduction_page.read_results(reproduction_page.RESULTS)
    for place, own in cells.items():
        _, method, column = place.split("/")
        assert own["seconds"].n == (25 if method in ("GMM", "TMM") and column != "released" else 100)
    wanted = {"/".join(key[:3]) for key in experiment_runs.wanted(experiment_runs.TABLES, 1)}
    assert set(cells) == wanted


def test_the_claims_of_the_paper_are_held_against_its_printed_cells():
    told = reproduction_page.claims()
    assert "| A1 | k-means++ 0.856 | -0.005 (-0.6) ✗ |" in told["claim_better"]
    assert (told["ahead_t"], told["below_t"], told["claim_best"], told["steadier_t"]) == (4, 5, 9, 1)
    z = (0.932 - 0.904) / math.sqrt((0.062**2 + 0.046**2) / 100)
    assert f"| S1 | k-means++ 0.904 | +0.028 ({z:+.1f}) ✓ |" in told["claim_better"]
    assert "| wine | W/B | 4 | 2 | 2 | 0.001 | 0.000 ✓ |" in told["claim_real"]


def test_the_likelihood_of_u_is_a_gamma_density_of_shape_p_half_plus_one():
    # eqn:U, which the paper gives the shape p/2; the posterior of eqn:u follows from it and the prior of eqn:XU.
    u, p, d2, alpha, nu = np.linspace(0.1, 3, 30), 3, 1.7, 0.6, 5.0
    normal = np.array(
        [stats.multivariate_normal(np.zeros(p), alpha / v * np.eye(p)).pdf([math.sqrt(d2), 0, 0]) for v in u]
    )
    flat = normal / stats.gamma(p / 2 + 1, scale=2 * alpha / d2).pdf(u)
    np.testing.assert_allclose(flat, flat[0])
    posterior = normal * stats.gamma(nu / 2, scale=2 / nu).pdf(u)
    flat = posterior / stats.gamma((nu + p) / 2, scale=2 / (nu + d2 / alpha)).pdf(u)
    np.testing.assert_allclose(flat, flat[0])
