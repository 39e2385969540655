"""The log-density of a Student-t mixture by scipy, row by row."""

import numpy as np
from scipy.special import logsumexp
from scipy.stats import multivariate_t


def mixture_log_density(X, params):
    """The log-density of each row by scipy; features that are NaN are marginalised out."""
    out = np.empty(len(X))
    for i, row in enumerate(X):
        seen = ~np.isnan(row)
        if not seen.any():
            out[i] = 0.0
            continue
        each = [
            multivariate_t.logpdf(row[seen], center[seen], params.scale * np.eye(seen.sum()), df=params.dof)
            for center in params.centers
        ]
        out[i] = logsumexp(np.array(each) + params.log_weights)
    return out
