"""One thread for the linear algebra of small matrices: several wait for each other, long on a busy machine."""

from collections.abc import Callable
from functools import cache, wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

P = ParamSpec("P")
T = TypeVar("T")
_controller = cache(ThreadpoolController)  # to find the libraries takes longer than to hold them


def on_one_thread(function: Callable[P, T]) -> Callable[P, T]:
    """Decorate a function in which NumPy's and SciPy's BLAS has one thread."""

    @wraps(function)
    def alone(*args: P.args, **options: P.kwargs) -> T:
        with _controller().limit(limits=1, user_api="blas"):
            return function(*args, **options)

    return alone
