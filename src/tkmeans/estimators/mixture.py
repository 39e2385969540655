"""StudentTMixture: for people who use GaussianMixture and have outliers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Self, final

import numpy as np
from scipy.special import entr
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from tkmeans import engines
from tkmeans.em import SmallGain
from tkmeans.estimators.numbers import checked_points, checked_rows
from tkmeans.estimators.running import CallbackSupportMixin, run_em, told_to_callbacks
from tkmeans.estimators.tkmeans import TKMeans
from tkmeans.estimators.uncertainty import UncertaintyMixin
from tkmeans.estimators.validation import (
    check_choice,
    check_dof,
    check_integer,
    check_real,
    check_spread,
    checked_sample_weight,
    unheard,
    warn_of_early_end,
)
from tkmeans.estimators.whole import all_or_nothing
from tkmeans.models.covariances import SHAPES, Shape
from tkmeans.models.mixture import MixtureParams, MixtureStats, Seen, StudentMixture
from tkmeans.search import seeding
from tkmeans.sources import ArraySource, Sample
from tkmeans.sources.base import measure, nearest_to_zero
from tkmeans.stats import Array, Frame, Outcome

# Where the degrees of freedom start when they are estimated: heavy tails first.
_FIRST_DOF = 1.0


@final
class StudentTMixture(CallbackSupportMixin, UncertaintyMixin, DensityMixin, BaseEstimator):
    """A mixture of multivariate t distributions: a Gaussian mixture that outliers do not move.

    Use it like :class:`sklearn.mixture.GaussianMixture`; it also takes sample weights.
    This is the paper's TMM, with exact EM steps that never lower the likelihood.

    Parameters
    ----------
    n_components : int, default=1
        The number of components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        The shape of the components: any, any but shared by all, parallel to the
        axes, or round.
    dof : "estimate" or float, default="estimate"
        The degrees of freedom nu. The estimate lies between 1 (Cauchy) and 200 (as good as
        Gaussian). A number fixes it; a huge one gives a Gaussian mixture.
    shared_dof : bool, default=False
        Whether all components have one nu.
    tol : float, default=1e-6
        A run ends when an iteration gains less than this in log-likelihood per row.
    reg_covar : float, default=1e-6
        The least variance of a component in any direction, relative to the squared spread of
        the features. It keeps the likelihood finite where a component has few rows.
    max_iter : int, default=300
        The most iterations of one run.
    n_init : int, default=1
        How many starts to try; the most likely result is kept.
    init_params : {"t-k-means", "k-means++", "random"}, default="t-k-means"
        Where to begin: the clusters of :class:`TKMeans`, or rows of X.
    means_init : array-like of shape (n_components, n_features), default=None
        First centres, instead of those of `init_params`.
    accelerate : bool, default=True
        Extrapolate over iterations (Anderson acceleration).
    random_state : int, RandomState instance or None, default=None
        Makes the start reproducible.
    verbose : int, default=0
        Print every iteration if positive.

    Attributes
    ----------
    weights_ : ndarray of shape (n_components,)
        The probability of each component, the largest first.
    means_ : ndarray of shape (n_components, n_features)
        The centres. (With nu = 1 a t distribution has a centre, but no mean.)
    covariances_ : ndarray
        The scale matrices, of shape (n_components, n_features, n_features),
        (n_features, n_features), (n_components, n_features) or (n_components,), by
        `covariance_type`. The covariance proper is nu / (nu - 2) times as large.
    dof_ : ndarray of shape (n_components,)
        The degrees of freedom.
    converged_ : bool
        Whether the best run ended before `max_iter`.
    n_iter_ : int
        Iterations of the best run.
    lower_bound_ : float
        The log-likelihood per row at the end.
    lower_bounds_ : list of float
        The log-likelihood per row at the start and after every iteration.
    n_features_in_ : int
        The number of features.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, where X had some.

    See Also
    --------
    TKMeans : Round clusters of one size, much quicker.

    Examples
    --------
    >>> import numpy as np
    >>> from tkmeans import StudentTMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(size=(100, 2)), rng.normal(size=(50, 2)) * [1, 5] + [20, 0], [[40, 40]]])
    >>> model = StudentTMixture(n_components=2, random_state=0).fit(X)
    >>> model.means_.round().astype(int)
    array([[ 0,  0],
           [20,  0]])
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        dof: float | str = "estimate",
        shared_dof: bool = False,
        tol: float = 1e-6,
        reg_covar: float = 1e-6,
        max_iter: int = 300,
        n_init: int = 1,
        init_params: str = "t-k-means",
        means_init: Any = None,
        accelerate: bool = True,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.dof = dof
        self.shared_dof = shared_dof
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.means_init = means_init
        self.accelerate = accelerate
        self.random_state = random_state
        self.verbose = verbose

    # ---- fitting -----------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Estimate the mixture that X was drawn from.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._check_params()
        with all_or_nothing(self):
            X = checked_rows(self, X, reset=True, dtype=np.float64, missing=False, ensure_min_samples=2)
            return self._fit_rows(X, checked_sample_weight(sample_weight, X))

    @told_to_callbacks
    def _fit_rows(self, X: Array, weight: Array | None) -> Self:
        """Estimate the mixture that rows were drawn from which have been checked."""
        n_rows = len(X) if weight is None else int(np.count_nonzero(weight))
        if n_rows < self.n_components:
            raise ValueError(
                f"n_samples={n_rows} should be >= n_components={self.n_components}; choose at most {n_rows} components"
            )
        frame = self._frame(X, weight)
        check_spread(float(np.min(frame.unit)))
        check_spread(float(np.max(frame.unit)))
        sample = self._canonical(frame.enter(X), weight)
        fits = (self._run(sample, start) for start in self._starts(sample, frame))
        self._keep(max(fits, key=lambda fit: fit.stats.objective), frame)
        if not self.converged_:
            warn_of_early_end(self)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Estimate the mixture and say which component each row belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of each row's component.
        """
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def _check_params(self) -> None:
        check_integer("n_components", self.n_components, least=1)
        check_choice("covariance_type", self.covariance_type, SHAPES)
        check_dof(self.dof)
        check_integer("max_iter", self.max_iter, least=1)
        check_integer("n_init", self.n_init, least=1)
        check_real("tol", self.tol, positive=False)
        check_real("reg_covar", self.reg_covar, positive=True, hint=" (1e-6 by default)")
        check_choice("init_params", self.init_params, ["t-k-means", "k-means++", "random"])

    def _frame(self, X: Array, weight: Array | None) -> Frame:
        """Every feature in a unit of its own, so that none is too small for `reg_covar`; but round stays round."""
        whole = measure(X, weight)
        unit: Any = np.full(X.shape[1], whole.unit)
        if self.covariance_type != "spherical":
            unit = np.array([measure(X[:, [j]], weight).unit for j in range(X.shape[1])])
        return Frame(whole.origin, unit)

    def _model(self) -> StudentMixture:
        return StudentMixture(
            shape=self._shape,
            estimate_dof=self.dof == "estimate",
            shared_dof=self.shared_dof,
            floor=self.reg_covar,
            engine=engines.select("auto"),
        )

    @property
    def _shape(self) -> Shape:
        return SHAPES[self.covariance_type]

    def _canonical(self, Z: Array, weight: Array | None) -> Sample:
        """The rows that count, sorted and with equal ones joined: results do not depend on their order."""
        weight = np.ones(len(Z)) if weight is None else weight
        return seeding.canonical(Sample(Z[weight > 0], weight[weight > 0]))

    def _starts(self, sample: Sample, frame: Frame) -> Iterator[MixtureParams]:
        rng = check_random_state(self.random_state)
        dof = np.full(self.n_components, _FIRST_DOF if self.dof == "estimate" else float(self.dof))
        for _ in range(self.n_init if self.means_init is None else 1):
            centers, scale, log_weights = self._clusters(sample, frame, rng)
            spread = self._shape.start(max(scale, self.reg_covar), self.n_components, sample.X.shape[1])
            yield MixtureParams(centers, spread, dof, log_weights)

    def _clusters(self, sample: Sample, frame: Frame, rng: np.random.RandomState) -> tuple[Array, float, Array]:
        """First centres, squared scale and ln weights."""
        equal = np.full(self.n_components, -np.log(self.n_components))
        if self.means_init is not None:
            centers = checked_points(self.means_init, "means_init")
            wanted = (self.n_components, sample.X.shape[1])
            if centers.shape != wanted:
                raise ValueError(f"means_init must have shape {wanted} (n_components, n_features), got {centers.shape}")
            centers = frame.enter(centers)
        elif self.init_params == "t-k-means" and len(sample.X) > self.n_components:
            with unheard():  # a start need not be exact
                start = TKMeans(self.n_components, random_state=rng).fit(sample.X, sample_weight=sample.weight)
            weights = np.maximum(start.cluster_weights_, 1e-6)
            return start.cluster_centers_, start.scale_, np.log(weights / weights.sum())
        else:
            draw = seeding.random_rows if self.init_params == "random" else seeding.kmeans_plusplus
            centers = draw(sample, self.n_components, rng)
        return centers, seeding.starting_scale(sample, centers), equal

    def _run(self, sample: Sample, start: MixtureParams) -> Outcome[MixtureParams, MixtureStats]:
        with ArraySource(sample.X, sample.weight, Frame(np.zeros(sample.X.shape[1]), 1.0)) as source:
            return run_em(
                self,
                source,
                self._model(),
                start,
                stop=SmallGain(self.tol),
                max_iter=self.max_iter,
                accelerate=self.accelerate,
            )

    def _keep(self, fit: Outcome[MixtureParams, MixtureStats], frame: Frame) -> None:
        """The fitted attributes, in the user's coordinates, the heaviest component first."""
        means, weights = frame.leave(fit.params.centers), np.exp(fit.params.log_weights)
        order = np.lexsort([*means.T[::-1], -np.round(weights, 12)])
        unit = frame.unit * np.ones(means.shape[1])
        self.means_, self.weights_ = means[order], weights[order]
        self.dof_ = np.array(fit.params.dof)[order]
        spread = _rescaled(fit.params.spread[order], unit)
        self.covariances_: Array = spread[0] if self.covariance_type == "tied" else spread
        if self.covariance_type == "spherical":
            self.covariances_ = spread[:, 0]
        self.lower_bounds_ = [value - float(np.log(unit).sum()) for value in fit.history]
        self.lower_bound_ = self.lower_bounds_[-1]
        self.n_iter_ = len(fit.history) - 1
        self.converged_ = fit.converged

    # ---- predicting ----------------------------------------------------------------

    def predict(self, X: Any) -> Array:
        """Say which component each row most probably belongs to.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to label.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            The number of the component.
        """
        return self._look(X).tau.argmax(axis=0)

    def predict_proba(self, X: Any) -> Array:
        """Say how probable each component is for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to look at.

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_components)
            Non-negative; every row sums to 1.
        """
        return self._look(X).tau.T

    def _entropy(self, X: Any) -> Array:
        return np.sum(entr(self.predict_proba(X)), axis=1)

    def robust_weights(self, X: Any) -> Array:
        """Say how far each row is trusted: the sum over components of tau times u.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to look at.

        Returns
        -------
        weights : ndarray of shape (n_samples,)
            About 1 for an ordinary row, near 0 for an outlier.
        """
        seen = self._look(X)
        gain = 1 + self.n_features_in_ / self.dof_
        return gain @ (seen.tau * seen.trust)

    def score_samples(self, X: Any) -> Array:
        """Compute the log-likelihood of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
            The logarithm of the mixture's density.
        """
        return self._look(X).log_density

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Compute the mean log-likelihood of the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to score.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,), default=None
            How often each row counts.

        Returns
        -------
        score : float
            The larger, the better the rows fit the model.
        """
        log_density = self.score_samples(X)
        return float(np.average(log_density, weights=checked_sample_weight(sample_weight, log_density[:, None])))

    def aic(self, X: Any) -> float:
        """Compute the Akaike information criterion of the model on X; smaller is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        aic : float
        """
        return float(-2 * self.score_samples(X).sum() + 2 * self._n_parameters())

    def bic(self, X: Any) -> float:
        """Compute the Bayesian information criterion of the model on X; smaller is better.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        bic : float
        """
        log_density = self.score_samples(X)
        return float(-2 * log_density.sum() + self._n_parameters() * np.log(len(log_density)))

    def icl(self, X: Any) -> float:
        """Compute the integrated classification likelihood of the model on X; smaller is better.

        It is the BIC plus twice the entropy of the memberships, so that it also counts how
        well the components are separated.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to judge by.

        Returns
        -------
        icl : float
        """
        return self.bic(X) + 2 * float(np.sum(self.assignment_entropy(X)))

    def sample(self, n_samples: int = 1) -> tuple[Array, Array]:
        """Draw rows from the fitted mixture.

        Parameters
        ----------
        n_samples : int, default=1
            How many.

        Returns
        -------
        X : ndarray of shape (n_samples, n_features)
            The rows.
        labels : ndarray of shape (n_samples,)
            The component each was drawn from.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, least=1)
        rng = check_random_state(self.random_state)
        labels = rng.choice(self.n_components, n_samples, p=self.weights_ / self.weights_.sum())
        _, params, frame = self._fitted()
        factors, _ = self._shape.whitening(params.spread, self.n_features_in_)
        noise = rng.standard_normal((n_samples, self.n_features_in_))
        for k, factor in enumerate(factors):
            own = labels == k
            u = rng.chisquare(self.dof_[k], own.sum()) / self.dof_[k]
            colored = np.linalg.solve(factor, noise[own].T).T if factor.ndim == 2 else noise[own] / factor
            noise[own] = params.centers[k] + colored / np.sqrt(u)[:, None]
        return frame.leave(noise), labels

    def _look(self, X: Any) -> Seen:
        """The E-step of each row, with densities in the user's units."""
        check_is_fitted(self)
        X = checked_rows(self, X, reset=False, dtype=np.float64, missing=False)
        model, params, frame = self._fitted()
        seen = model.looking(params)(frame.enter(X))
        return seen._replace(log_density=seen.log_density - np.log(frame.unit).sum())

    def _fitted(self) -> tuple[StudentMixture, MixtureParams, Frame]:
        """The fitted attributes as a model, in a frame that fits the components."""
        n_components, p = self.means_.shape
        if self.covariance_type in ("full", "tied"):
            spread = np.broadcast_to(self.covariances_, (n_components, p, p))
            variances = np.diagonal(spread, axis1=1, axis2=2)
        else:
            spread = variances = self.covariances_.reshape(n_components, -1)
        unit = np.sqrt(variances.mean(axis=0)) * np.ones(p)
        frame = Frame(nearest_to_zero(self.means_), unit)
        params = MixtureParams(frame.enter(self.means_), _rescaled(spread, 1 / unit), self.dof_, np.log(self.weights_))
        return self._model(), params, frame

    def _n_parameters(self) -> int:
        """Centres, shapes, weights, and nu where it was estimated."""
        n_components, p = self.means_.shape
        n_dof = 0 if self.dof != "estimate" else 1 if self.shared_dof else n_components
        return n_components * p + self._shape.n_parameters(n_components, p) + n_components - 1 + n_dof


def _rescaled(spread: Array, unit: Array) -> Array:
    """Shapes in other units: (K, p, p), (K, p) or (K, 1), where all units are equal."""
    if spread.ndim == 3:
        return spread * np.outer(unit, unit)
    return spread * np.square(unit)[: spread.shape[1]]
