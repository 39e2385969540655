"""One thread for the linear algebra of small matrices.

More of them only wait for each other, which on a busy machine takes many times as long as the work; and what they
compute may round differently with their number. The limit is the process's, so it holds while anybody needs it.
"""

from contextlib import ContextDecorator
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController


class OneThread(ContextDecorator):
    """Hold NumPy's and SciPy's BLAS to one thread, in a block or in a function."""

    _lock, _n_inside = Lock(), 0
    _limit: Any = None

    def __enter__(self) -> None:
        with OneThread._lock:
            if OneThread._n_inside == 0:
                OneThread._limit = ThreadpoolController().limit(limits=1, user_api="blas")
                OneThread._limit.__enter__()
            OneThread._n_inside += 1

    def __exit__(self, *exception: object) -> None:
        with OneThread._lock:
            OneThread._n_inside -= 1
            if OneThread._n_inside == 0:
                OneThread._limit.__exit__(*exception)
