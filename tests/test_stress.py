"""Many fits at once, from threads and from processes, give to the last bit what they give one after the other."""

import multiprocessing
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
from support.concurrent_fits import answer, answers

METHODS = [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]

# Python warns of forks while there are threads; that they go well is what is tested.
pytestmark = [
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning"),  # some fits are cut short
]


@pytest.fixture(scope="module")
def alone():
    return {number: answer(number) for number in range(12)}


def test_fits_in_many_threads_do_not_disturb_each_other(alone):
    numbers = [*alone] * 2
    filters = list(warnings.filters)
    assert answers(numbers, n_threads=8) == [alone[number] for number in numbers]
    assert warnings.filters == filters  # which threads share


@pytest.mark.thorough
@pytest.mark.parametrize("method", METHODS)
def test_fits_in_processes_started_after_threads_were_used_give_the_same_bits(alone, method):
    answers([0, 2, 3], n_threads=3)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
        assert pool.submit(answers, [*alone], 2).result(timeout=300) == list(alone.values())


@pytest.mark.slow
@pytest.mark.skipif("fork" not in METHODS, reason="needs a system that forks")
def test_fits_in_a_process_forked_during_fits_give_the_same_bits(alone):
    done = threading.Event()

    def keep_busy(first):
        while not done.is_set():
            answers([first, first + 1])

    busy = [threading.Thread(target=keep_busy, args=(k,)) for k in range(4)]
    for thread in busy:
        thread.start()
    try:
        for _ in range(8):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
                assert pool.submit(answers, [*alone], 3).result(timeout=300) == list(alone.values())
    finally:
        done.set()
        for thread in busy:
            thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_hundreds_of_fits_from_threads_in_processes_give_the_same_bits(method):
    numbers = list(range(120))
    alone = answers(numbers)
    with ProcessPoolExecutor(3, mp_context=multiprocessing.get_context(method)) as pool:
        parts = [pool.submit(answers, numbers, 4) for _ in range(3)]
        assert answers(numbers, n_threads=16) == alone
        assert all(part.result(timeout=600) == alone for part in parts)
