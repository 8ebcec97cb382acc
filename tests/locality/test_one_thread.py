"""What works in arrays of its own refuses a second thread, instead of mixing two requests up."""

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lbopt import InputError
from lbopt.locality import BandRouter, MoEShape, RoutingTable, SignatureCache
from lbopt.one_thread import OneThread


def elsewhere(work):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(work).result()


def test_the_first_thread_owns_it():
    thread = OneThread("thing")
    thread.check()
    thread.check()
    with pytest.raises(InputError, match="this thing is used by another thread already; make one for each thread"):
        elsewhere(thread.check)


def test_it_may_be_made_in_one_thread_and_used_in_another():
    thread = OneThread("thing")
    elsewhere(thread.check)
    with pytest.raises(InputError, match="another thread"):
        thread.check()


def test_a_copy_belongs_to_nobody_yet():
    thread = OneThread("thing")
    thread.check()
    elsewhere(copy.deepcopy(thread).check)


@pytest.mark.jit
def test_a_band_router_refuses_a_second_thread():
    router = BandRouter(RoutingTable("", MoEShape(1, 3, 2), "count", None, np.array([0]), [[1, 0, 0], [0, 0, 1]]))
    counts, load = np.ones((1, 3), np.int64), np.zeros(2, np.int64)
    chosen = router.route(counts, load)
    with pytest.raises(InputError, match="BandRouter is used by another thread"):
        elsewhere(lambda: router.route(counts, load))
    assert elsewhere(lambda: pickle.loads(pickle.dumps(router)).route(counts, load)) == chosen


def test_a_signature_cache_refuses_a_second_thread():
    cache = SignatureCache(MoEShape(2, 4, 1), 4)
    request = cache.submit(np.arange(5))
    for work in (lambda: cache.submit(np.arange(3)), lambda: cache.remaining(request)):
        with pytest.raises(InputError, match="SignatureCache is used by another thread"):
            elsewhere(work)
