"""What the docstrings of many public functions have in common, written once."""

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])

_SECTIONS = ("Parameters", "Returns", "Raises", "Warns", "References", "Examples")  # in their order
_BETWEEN = re.compile(rf"\n\n(?=(?:{'|'.join(_SECTIONS)})\n---)")
_SHARED = {
    "X": "X : array-like of shape (n_samples, n_features), path or dask collection\n    The rows.",
    "estimator": "estimator : object\n    A fitted estimator.",
    "ax": "ax : matplotlib Axes, default=None\n    Where to draw; None makes a new figure.",
    "weights": "weights, outliers : array-likes of shape (n_samples,)\n    As for the class.",
    "jaccard": "jaccard, sizes : array-likes of shape (n_resamples, K) and (K,)\n    As for the class.",
    "random_state": "random_state : int, RandomState instance or None, default=None\n    Makes the data reproducible.",
}


def documented(*shared: str, returns: str = "") -> Callable[[F], F]:
    """Add to a docstring the description of shared parameters, after its own ones, and of what is returned."""

    def complete(function: F) -> F:
        summary, *found = _BETWEEN.split(inspect.cleandoc(function.__doc__ or ""))
        sections = {section.partition("\n")[0]: section for section in found}
        for name, lines in {"Parameters": [_SHARED[name] for name in shared], "Returns": [returns]}.items():
            if any(lines):
                sections[name] = "\n".join([sections.get(name, f"{name}\n{'-' * len(name)}"), *lines])
        ordered = [sections[name] for name in _SECTIONS if name in sections]
        function.__doc__ = "\n\n".join([summary, *ordered])
        return function

    return complete
