"""StudentTMixture: for people who use GaussianMixture and have outliers."""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin

from tkmeans.em import SmallGain, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import Clusterer
from tkmeans.estimators.inputs import Accepts, check_spread
from tkmeans.estimators.tkmeans import TKMeans
from tkmeans.fit_warnings import unheard
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.fitting.starts import canonical
from tkmeans.mixture_components import Components
from tkmeans.models.covariances import SHAPES
from tkmeans.models.mixture import MixtureParams, StudentMixture
from tkmeans.search import seeding
from tkmeans.sources import ArraySource, Sample, Source
from tkmeans.sources.number_checks import checked_centers
from tkmeans.stats import Array, Frame

# Where the degrees of freedom start when they are estimated: heavy tails first.
_FIRST_DOF = 1.0


@final
class StudentTMixture(Clusterer, DensityMixin, BaseEstimator):
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
    labels_ : ndarray of shape (n_samples,)
        The most probable component of each row.
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

    _checks: ClassVar = {
        "n_components": validation.at_least_one,
        "covariance_type": partial(validation.check_choice, choices=SHAPES),
        "dof": validation.check_dof,
        "max_iter": validation.at_least_one,
        "n_init": validation.at_least_one,
        "tol": partial(validation.check_real, positive=False),
        "reg_covar": partial(validation.check_real, positive=True, hint=" (1e-6 by default)"),
        "init_params": partial(validation.check_choice, choices=["t-k-means", "k-means++", "random"]),
    }
    _accepts = Accepts(missing=False, single=False, elsewhere=False, least_rows=2)
    _lacks = frozenset({"outliers", "outlier_pvalues", "inertia_"})
    _family = Components
    _size = "n_components"
    _numbered_by_rows = False  # but by weight

    def _model(self, engine: Any) -> StudentMixture:
        return StudentMixture(
            shape=SHAPES[self.covariance_type],
            estimate_dof=self.dof == "estimate",
            shared_dof=self.shared_dof,
            floor=self.reg_covar,
            engine=engine,
        )

    def _plan(self, source: Source) -> Plan:
        # Every feature in a unit of its own, so that none is too small for `reg_covar`; but round stays round.
        source.frame = source.measure(by_feature=self.covariance_type != "spherical")
        check_spread(float(np.min(source.frame.unit)))
        check_spread(float(np.max(source.frame.unit)))
        return Plan(partial(self._runs, source), _log_likelihood)

    def _runs(self, source: Any, rng: np.random.RandomState) -> Iterator[Run]:
        """EM from every start, over the rows in canonical order: results do not depend on how they were sorted."""
        sample, p = canonical_rows(source), source.n_features
        rows = ArraySource(sample.X, sample.weight, Frame(np.zeros(p), 1.0))
        run = partial(em, stop=SmallGain(self.tol), max_iter=self.max_iter, accelerate=self.accelerate)
        model = self._model(self._engine(source))
        dof = np.full(self.n_components, _FIRST_DOF if self.dof == "estimate" else float(self.dof))
        for _ in range(self.n_init if self.means_init is None else 1):
            centers, scale, log_weights = self._clusters(sample, source.frame, rng)
            covariances = model.shape.start(max(scale, self.reg_covar), self.n_components, p)
            yield partial(run, rows, model, MixtureParams(centers, covariances, dof, log_weights))

    def _clusters(self, sample: Sample, frame: Frame, rng: np.random.RandomState) -> tuple[Array, float, Array]:
        """First centres, squared scale and ln weights."""
        equal = np.full(self.n_components, -np.log(self.n_components))
        if self.means_init is not None:
            shape = self.n_components, sample.X.shape[1]
            centers = frame.enter(checked_centers(self.means_init, "means_init", shape, self._size))
        elif self.init_params == "t-k-means" and len(sample.X) > self.n_components:
            with unheard():  # a start need not be exact
                start = TKMeans(self.n_components, random_state=rng).fit(sample.X, sample_weight=sample.weight)
            weights = np.maximum(start.cluster_weights_, 1e-6)
            return start.cluster_centers_, start.scale_, np.log(weights / weights.sum())
        else:
            draw = seeding.random_rows if self.init_params == "random" else seeding.kmeans_plusplus
            centers = draw(sample, self.n_components, rng)
        return centers, seeding.starting_scale(sample, centers), equal


def canonical_rows(source: ArraySource) -> Sample:
    """The rows that count, in the frame, sorted and with equal ones joined."""
    weight = np.ones(source.n_rows) if source.weight is None else source.weight
    return canonical(Sample(source.frame.enter(source.X)[weight > 0], weight[weight > 0]))


def _log_likelihood(fit: Any) -> float:
    return float(fit.stats.objective)
