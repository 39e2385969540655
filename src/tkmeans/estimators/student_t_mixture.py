"""StudentTMixture: for people who use GaussianMixture and have outliers."""

from collections.abc import Iterator
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin

from tkmeans.em import SmallGain, em
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import Clusterer
from tkmeans.estimators.inputs import check_spread
from tkmeans.fitting.mixture_starts import MOST_NOISE, Setting, best_start, bulk_of, with_prior, without_noise
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.fitting.starts import SAMPLE_ROWS_PER_CLUSTER, canonical, complete
from tkmeans.mixture_components import Components
from tkmeans.models.covariances import SHAPES
from tkmeans.models.dof import BOUNDS
from tkmeans.models.mixture import MixtureParams, StudentMixture
from tkmeans.search.shape_search import start_labels
from tkmeans.sources import Source

STARTS = ("robust", "kmeans", "k-means++", "random", "random_from_data")
LEAST_DOF = 3.0  # beside noise
SHAPE_SAMPLE_ROWS = 5000


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
        size_ratio: float = 25.0,
        shrinkage: float = 1.0,
        noise: bool | str = "auto",
        dof: float | str = "estimate",
        shared_dof: bool = True,
        tol: float = 1e-6,
        reg_covar: float = 1e-4,
        max_iter: int = 300,
        n_init: int = 1,
        init_params: str = "robust",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        warm_start: bool = False,
        accelerate: bool = True,
        engine: str = "auto",
        n_jobs: int | None = None,
        max_time: float | None = None,
        checkpoint: Any = None,
        random_state: Any = None,
        verbose: int = 0,
        verbose_interval: int = 10,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.size_ratio = size_ratio
        self.shrinkage = shrinkage
        self.noise = noise
        self.dof = dof
        self.shared_dof = shared_dof
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.warm_start = warm_start
        self.accelerate = accelerate
        self.engine = engine
        self.n_jobs = n_jobs
        self.max_time = max_time
        self.checkpoint = checkpoint
        self.random_state = random_state
        self.verbose = verbose
        self.verbose_interval = verbose_interval

    _checks: ClassVar = {
        "n_components": validation.at_least_one,
        "covariance_type": partial(validation.check_choice, choices=SHAPES),
        "dof": validation.check_dof,
        "max_iter": partial(validation.check_integer, least=0),
        "n_init": validation.at_least_one,
        "tol": partial(validation.check_real, positive=False),
        "reg_covar": partial(validation.check_real, positive=False),
        "shrinkage": partial(validation.check_real, positive=False),
        "init_params": partial(validation.check_choice, choices=STARTS),
    }
    _lacks = frozenset({"inertia_"})
    _family = Components
    _size = "n_components"
    _numbered_by_rows = False  # but by weight

    def _model(self, engine: Any) -> StudentMixture:
        return StudentMixture(
            shape=SHAPES[self.covariance_type],
            estimate_dof=self.dof == "estimate",
            shared_dof=self.shared_dof,
            least_dof=LEAST_DOF if self.noise else BOUNDS[0],
            size_ratio=float(self.size_ratio),
            engine=engine,
        )

    def _plan(self, source: Source) -> Plan:
        source.frame = source.measure()
        check_spread(source.frame.unit, source.dtype.name)
        return Plan(partial(self._runs, source), _penalised_likelihood, ("pvalue",))

    def _runs(self, source: Any, rng: np.random.RandomState) -> Iterator[Run]:
        """EM from the best of several starts, as often as `n_init` says."""
        K, p = self.n_components, source.n_features
        sample = canonical(complete(source.sample(max(SHAPE_SAMPLE_ROWS, SAMPLE_ROWS_PER_CLUSTER * K), rng), K))
        bulk = bulk_of(sample)
        setting = Setting(
            self._model(self._engine(source)),
            K,
            self.shrinkage * (p + 2),
            self.reg_covar * source.total / K,
            bulk,
            bool(self.noise),
            None if self.dof == "estimate" else float(self.dof),
        )
        options = {"stop": SmallGain(self.tol), "max_iter": self.max_iter, "accelerate": self.accelerate}
        for _ in range(self.n_init):
            labels = start_labels(sample, bulk.units, bulk.log_volume, K, rng)
            start = best_start(sample, labels, setting)
            yield partial(climb, source, with_prior(start.params, setting), start.params, **options)


def climb(source: Any, model: StudentMixture, start: MixtureParams, *, resume: Any = None, **options: Any) -> Any:
    """EM with noise; without, if noise would be a cluster."""
    if resume is None or resume.params.noise > 0:
        fit = em(source, model, start, resume=resume, **options)
        if fit.interrupted or fit.params.noise + fit.params.beyond <= MOST_NOISE:
            return fit
        resume = None
    return em(source, model, without_noise(start), resume=resume, **options)


def _penalised_likelihood(fit: Any) -> float:
    return float(fit.stats.objective)
