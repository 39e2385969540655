"""The reference engine: E-step sums of one block of rows, in plain array-API operations. It is the definition.

Every other engine must return these numbers. It runs wherever arrays of the array API live.
"""

from typing import NamedTuple

from tkmeans.stats import CRUMBS_SINGLE, Array, Block, Kernel, Params, Rows, Stats, namespace

NAME = "reference"


class _EStep(NamedTuple):
    x: Array  # (n, p) in the frame, 0 where missing
    observed: Array | None  # (n, p) 1 where observed, 0 where missing; None if all are observed
    n_observed: Array  # (n,) observed features per row
    d2: Array  # (n, K) squared distances over the observed features
    tau: Array  # (n, K) eqn:tau
    u: Array  # (n, K) eqn:u_nk
    log_u: Array  # (n, K)
    log_density: Array  # (n,)


def summarize(block: Block, params: Params, kernel: Kernel) -> Stats:
    """The sums of an E-step over one block."""
    e = _e_step(block, params, kernel)
    xp = namespace(e.x)
    weight = xp.ones_like(e.log_density) if block.weight is None else like(block.weight, e.x)
    tau = e.tau * weight[:, None]  # (n, K)
    wtau = tau * e.u if kernel.power else tau  # (n, K) tau u^q
    w = _total(wtau)  # (K,)
    observed = w[:, None] if e.observed is None else _double(wtau.T @ e.observed)
    wx = _double(wtau.T @ e.x) - observed * _double(like(params.centers, e.x))
    if e.x.dtype == xp.float32:
        wx = xp.where(observed > CRUMBS_SINGLE, wx, xp.zeros_like(wx))
    log_u = e.log_u + _by_row(kernel.log_u_bias, e.n_observed, e.x)[:, None]  # eqn: un
    log_tau = xp.log(xp.where(e.tau > 0, e.tau, xp.ones_like(e.tau)))
    cells, objective = (float(_total(weight * each)) for each in (like(e.n_observed, e.x), e.log_density))
    entropy = -float(xp.sum(_total(tau * log_tau)))
    return Stats(_total(tau), w, observed, wx, _total(wtau * e.d2), _total(tau * log_u), cells, objective, entropy)


def rows(block: Block, params: Params, kernel: Kernel, *, brief: bool = False) -> Rows:  # noqa: ARG001
    """The model's answers for each row; of `brief` ones the label and the distance alone are looked at."""
    e = _e_step(block, params, kernel)
    xp = namespace(e.x)
    return Rows(xp.argmax(e.tau, axis=1), xp.min(e.d2, axis=1), e.log_density, xp.sum(e.tau * e.u, axis=1))


def memberships(block: Block, params: Params, kernel: Kernel) -> Array:
    """The probability of every cluster for each row, (n, K): eqn:tau."""
    return _e_step(block, params, kernel).tau


def distances(block: Block, params: Params) -> Array:
    """Euclidean distance of each row to every centre, (n, K), in the frame."""
    x, observed, _ = _enter(block)
    return namespace(x).sqrt(_squared_distances(x, observed, params.centers))


def _e_step(block: Block, params: Params, kernel: Kernel) -> _EStep:
    x, observed, n_observed = _enter(block)
    xp = namespace(x)
    d2 = _squared_distances(x, observed, params.centers)  # (n, K)
    log_base = xp.log1p(kernel.slope * d2)  # one logarithm serves both tau and u
    gain = _by_row(kernel.gain, n_observed, x)[:, None]
    u = gain / (1 + kernel.slope * d2)
    log_u = xp.log(gain) - log_base
    log_f = like(params.log_weights, x)[None, :] - _by_row(kernel.exponent, n_observed, x)[:, None] * log_base
    top = xp.max(log_f, axis=1, keepdims=True)
    f = xp.exp(log_f - top)
    total = xp.sum(f, axis=1, keepdims=True)
    log_density = (top + xp.log(total))[:, 0] + _by_row(kernel.log_norm, n_observed, x)
    return _EStep(x, observed, n_observed, d2, f / total, u, log_u, log_density)


def _enter(block: Block) -> tuple[Array, Array | None, Array]:
    """The rows in the frame with 0 for missing, the mask of observed entries, its row sums."""
    xp = namespace(block.X)
    x = block.frame.enter(block.X)
    missing = xp.isnan(x)
    if not xp.any(missing):
        return x, None, xp.full(x.shape[0], x.shape[1], dtype=xp.int64, device=x.device)
    observed = xp.astype(~missing, x.dtype)
    return xp.where(missing, xp.zeros_like(x), x), observed, xp.sum(xp.astype(~missing, xp.int64), axis=1)


def _squared_distances(x: Array, observed: Array | None, centers: Array) -> Array:
    """By differences, one centre at a time: exact where |x|^2 + |c|^2 - 2xc is not."""
    xp = namespace(x)
    centers = like(centers, x)
    away = (x - centers[k, :] for k in range(centers.shape[0]))
    return xp.stack([xp.sum(d * d if observed is None else d * d * observed, axis=1) for d in away], axis=1)


def _by_row(table: Array, n_observed: Array, x: Array) -> Array:
    """The entry of a kernel's table that goes with each row's number of observed features."""
    return namespace(x).take(like(table, x), n_observed)


def like(values: Array, x: Array) -> Array:
    """`values` as an array of x's library and type, where x is."""
    return namespace(x).asarray(values, dtype=x.dtype, device=x.device)


def _total(values: Array) -> Array:
    """The sum over rows, in double precision whatever the rows are."""
    xp = namespace(values)
    return xp.sum(values, axis=0, dtype=xp.float64)


def _double(values: Array) -> Array:
    xp = namespace(values)
    return xp.astype(values, xp.float64)
