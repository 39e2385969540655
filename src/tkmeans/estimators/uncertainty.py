"""How sure an estimator is of each row."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tkmeans.stats import Array


class UncertaintyMixin(ABC):
    """What follows from the probabilities of the clusters, whatever the mixture."""

    @abstractmethod
    def _entropy(self, X: Any) -> Array:
        """Of each row's probabilities."""

    def assignment_entropy(self, X: Any) -> Array:
        """Say how open it is which cluster each row belongs to: the entropy of its probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The rows to look at.

        Returns
        -------
        entropy : ndarray of shape (n_samples,)
            In nats: 0 where one cluster is certain, ln 2 halfway between two, at most ln(n_clusters).

        Examples
        --------
        Two groups; what is in between belongs to both:

        >>> import numpy as np
        >>> from tkmeans import TKMeans
        >>> rows = np.array([[0.0], [1.0], [2.0], [8.0], [9.0], [10.0]])
        >>> model = TKMeans(n_clusters=2, dof=5.0, random_state=0).fit(rows)
        >>> model.assignment_entropy([[1.0], [4.0], [5.0]]).round(2)
        array([0.  , 0.26, 0.69])
        """
        return self._entropy(X)
