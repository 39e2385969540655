"""StudentTMixture: robust ellipses, for people who use GaussianMixture and have outliers."""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, final

import numpy as np
from sklearn.base import BaseEstimator, DensityMixin

from tkmeans.docstrings import documented
from tkmeans.em import SmallGain
from tkmeans.estimators import validation
from tkmeans.estimators.clusterer import Clusterer
from tkmeans.estimators.inputs import Accepts, measure
from tkmeans.fitted import Training
from tkmeans.fitting import mixture_starts
from tkmeans.fitting.mixture_setting import climb, on_one_thread
from tkmeans.fitting.relations import leave_out_related
from tkmeans.fitting.restarts import Plan, Run
from tkmeans.mixture_components import Components
from tkmeans.models.covariances import SHAPES
from tkmeans.models.mixture import StudentMixture
from tkmeans.sources import Source
from tkmeans.stats import Array

LEAST_DOF, MOST_TRUST = 5.0, 4.0  # beside noise, which takes what is farther out


@final
@documented("cell_bounds_", "agreement_", "n_iter_", "n_features_in_")
@documented("mixture_*", "bad_cells", "min_cluster_size", "engine", "max_time")
class StudentTMixture(Clusterer, DensityMixin, BaseEstimator):
    """A robust mixture of ellipses: Student t components, and a noise component for rows that belong to none.

    Use it like :class:`sklearn.mixture.GaussianMixture`, or where clusters differ in width and direction, like
    :class:`TKMeans`. Four things keep it from the spurious answers of a mixture of free ellipses: the sizes of the
    components stay within a ratio, a prior worth a few rows holds each shape near the pooled one, all components share
    one dof, and rows that belong to no cluster are taken by the noise. Each can be switched off; without all four, and
    with ``reg_covar=0``, it is the paper's TMM.

    Parameters
    ----------
    n_components : int or "auto", default=1
        The number of components, K. "auto" chooses between 1 and 20, as :func:`select_clusters` does.

    See Also
    --------
    TKMeans : Round clusters of one size, much quicker.

    Notes
    -----
    Missing values are NaN. Nothing is filled in: the marginal of a t distribution is a t distribution, and EM takes the
    conditional moments of what is missing. Clusters of "full" and "tied" hardly depend on the units of the columns, nor
    on linear maps of the rows. They are not exactly equivariant, because `reg_covar`, the bulk of the noise and the
    search take the columns as they come. Constant columns are not looked at (but by "spherical", whose one variance
    is that of all), nor by "full" and "tied" linear combinations of others in all rows; attributes have them.

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
    >>> model.outliers(X).nonzero()[0]
    array([150])
    """

    def __init__(
        self,
        n_components: int | str = 1,
        *,
        covariance_type: str = "full",
        size_ratio: float = 25.0,
        shrinkage: float = 1.0,
        noise: bool | str = "auto",
        bad_cells: bool | str = "auto",
        min_cluster_size: int | None = None,
        dof: float | str = "estimate",
        shared_dof: bool = True,
        tol: float = 1e-5,
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
        self._keep(locals())

    _checks: ClassVar[dict[str, validation.Check]] = {"n_components": validation.one_or_auto}
    _checks |= {"covariance_type": partial(validation.check_choice, choices=SHAPES)}
    _checks |= dict.fromkeys(("shrinkage", "tol", "reg_covar"), validation.SHARED["tol"])
    _checks |= dict.fromkeys(("shared_dof", "warm_start", "accelerate"), validation.check_switch) | validation.SEARCH
    _checks |= {"dof": validation.check_dof, "max_iter": partial(validation.check_integer, least=0)}
    _checks |= {"n_init": validation.at_least_one, "noise": validation.check_auto, "size_ratio": validation.check_ratio}
    _checks |= {"init_params": partial(validation.check_choice, choices=("robust", *mixture_starts.SEEDINGS))}
    _checks |= {name: validation.SHARED[name] for name in ("engine", "n_jobs")} | validation.LONG_FITS
    _accepts = Accepts(least_rows=2, sparse=False)
    _lacks = frozenset({"inertia_"})
    _family = Components
    _size = "n_components"
    _objective = "penalised log-likelihood"
    _numbered_by_rows = False  # but by weight
    _not_converged = "Best performing initialization did not converge. Try different init parameters, or increase "
    _not_converged += "max_iter, tol, or check for degenerate data. "  # GaussianMixture's words: filters go by them

    @property
    def cluster_centers_(self) -> Array:
        """The centres, by the name that KMeans gives them."""
        return self.means_

    n_components_ = Clusterer.n_clusters_

    @property
    def precisions_(self) -> Array:
        """The inverses of the scale matrices."""
        roots = self.precisions_cholesky_
        return roots @ roots.swapaxes(-1, -2) if self.covariance_type in ("full", "tied") else roots**2

    @property
    def precisions_cholesky_(self) -> Array:
        """Upper triangular factors of the precisions, or their roots."""
        covariances, p = self.covariances_.astype(np.float64), self.n_features_in_
        if self.covariance_type not in ("full", "tied"):
            return 1 / np.sqrt(covariances)
        return SHAPES["full"].whitening(covariances.reshape(-1, p, p), p)[0].swapaxes(1, 2).reshape(covariances.shape)

    def _n_parameters(self) -> int:
        """How many numbers were estimated; GaussianMixture has no public name for it either."""
        return int(self._fitted_model.posterior.n_parameters())

    def _model(self, engine: Any) -> StudentMixture:
        dof: dict[str, Any] = {"estimate_dof": self.dof == "estimate", "shared_dof": self.shared_dof}
        dof |= {"least_dof": LEAST_DOF, "most_trust": MOST_TRUST} if self.noise else {}
        shape, size_ratio = SHAPES[self.covariance_type], float(self.size_ratio)
        return StudentMixture(shape=shape, engine=engine, size_ratio=size_ratio, **dof)

    def _plan(self, source: Source) -> Plan:
        leave_out_related(source, measure, [self.covariance_type], float(self.reg_covar))
        return Plan(partial(self._runs, source), lambda fit: float(fit.history[-1]), ("pvalue",), self._kept)

    def _runs(self, source: Source, rng: np.random.RandomState) -> Iterator[Run]:
        """EM from every start."""
        run = on_one_thread(climb)
        options = {"stop": SmallGain(self.tol), "max_iter": self.max_iter, "accelerate": self.accelerate}
        before = self._fitted_model.params if self.warm_start and hasattr(self, "_fitted_model") else None
        same, params, prior, mixer = getattr(self, "_left_off", [Any] * 4)
        if same == self._fingerprint(source):  # the prior and the acceleration of the last fit go on, too
            model = replace(self._model(self._engine(source)), prior=prior)
            source.bounds = getattr(self, "cell_bounds_", None)
            yield partial(run, source, model, params, self.noise, **options | {"accelerate": mixer})
            return
        for model, start in mixture_starts.starts(self, source, before, rng):
            yield partial(run, source, model, start, self.noise, **options)

    def _kept(self, training: Training, fit: Any, source: Source, found: dict[str, Any]) -> dict[str, Any]:
        """The distances of the training rows, by which outliers are found, and where a fit of the same rows goes on."""
        left = self.warm_start and fit.left and (self._fingerprint(source), fit.params, fit.left[0].prior, fit.left[1])
        return {"_training_distances": training.review.comparable(source)} | ({"_left_off": left} if left else {})
