"""What works in arrays of its own refuses a second thread, instead of mixing two requests up."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from lbopt import InputError
from lbopt.locality import MoEShape, SignatureCache
from lbopt.locality.signature_cache import OneThread


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


def test_a_signature_cache_refuses_a_second_thread():
    cache = SignatureCache(MoEShape(2, 4, 1), 4)
    request = cache.submit(np.arange(5))
    for work in (lambda: cache.submit(np.arange(3)), lambda: cache.remaining(request)):
        with pytest.raises(InputError, match="SignatureCache is used by another thread"):
            elsewhere(work)
