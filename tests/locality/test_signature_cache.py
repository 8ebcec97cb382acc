"""The signature cache beside an oracle whose choices hang on the whole prefix: what may never happen, in any order."""

import hashlib

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, precondition, rule

from lbopt.exceptions import InputError
from lbopt.locality import BlockState, MoEShape, SignatureCache

SHAPE = MoEShape(num_layers=2, num_experts=5, experts_per_token=2)


def chosen(prefix, shape=SHAPE):
    """Experts (L, k) of the last token of `prefix`."""
    seed = int.from_bytes(hashlib.sha256(repr(list(prefix)).encode()).digest()[:8], "big")
    rng = np.random.default_rng(seed)
    return [rng.permutation(shape.num_experts)[: shape.experts_per_token].tolist() for _ in range(shape.num_layers)]


def choices(prompt, start, stop, shape=SHAPE):
    return np.array([chosen(prompt[: t + 1], shape) for t in range(start, stop)])


def histogram(prompt, shape=SHAPE, start=0):
    """Counts (L, E) of all tokens from `start` on, one by one."""
    counts = np.zeros((shape.num_layers, shape.num_experts), dtype=np.int64)
    for t in range(start, len(prompt)):
        for layer, experts in enumerate(chosen(prompt[: t + 1], shape)):
            for e in experts:
                counts[layer, e] += 1
    return counts


def prefill(cache, request, prompt, n=None):
    at = cache.position(request)
    cache.prefill_chunk(request, choices(prompt, at, at + (n or cache.remaining(request)), cache.shape))


class Engine(RuleBasedStateMachine):
    """A prefill worker that does things in any order."""

    requests = Bundle("requests")

    def __init__(self):
        super().__init__()
        self.cache = SignatureCache(SHAPE, num_blocks=7, block_size=3)
        self.cold = SignatureCache(SHAPE, num_blocks=7, block_size=3, prefix_caching=False)
        self.prompts, self.preempted = {}, set()
        self.resting = {}  # rows of cached blocks, as they were when they came to rest

    @rule(target=requests, prompt=st.lists(st.integers(0, 1), min_size=1, max_size=11))
    def submit(self, prompt):
        request = self.cache.submit(prompt)
        self.prompts[request] = prompt
        assert self.cache.remaining(request) >= 1
        return request

    def known(self, request, running=True):
        return request in self.prompts and (not running or request not in self.preempted)

    @rule(request=requests, n=st.integers(1, 11))
    def prefill_chunk(self, request, n):
        if not self.known(request) or not self.cache.remaining(request):
            return
        prompt, at = self.prompts[request], self.cache.position(request)
        n = min(n, self.cache.remaining(request))
        needed = -(-(at + n) // 3) - len(self.cache.blocks(request))
        if needed > self.cache.num_available:
            before = self.cache.rows.copy()
            with pytest.raises(InputError, match="more blocks"):
                prefill(self.cache, request, prompt, n)
            assert (before == self.cache.rows).all()
            return
        prefill(self.cache, request, prompt, n)
        if not self.cache.remaining(request):  # I1, for a miss, a partial and a full hit alike
            assert (self.cache.signature(request) == histogram(prompt)).all()

    @rule(request=requests)
    def read(self, request):
        if self.known(request):
            before = self.cache.rows.copy()  # I7
            self.cache.signature(request)
            assert (before == self.cache.rows).all()

    @rule(request=requests)
    def same_without_cache(self, request):
        if self.known(request) and not self.cache.remaining(request):  # I8
            other = self.cold.submit(self.prompts[request])
            prefill(self.cold, other, self.prompts[request])
            assert (self.cold.signature(other) == self.cache.signature(request)).all()
            self.cold.finish(other)

    @rule(request=requests)
    def finish(self, request):
        if self.known(request) and not self.cache.remaining(request):
            self.cache.finish(request)
            del self.prompts[request]

    @rule(request=requests)
    def abort(self, request):
        if self.known(request, running=False):
            self.cache.abort(request)
            del self.prompts[request]
            self.preempted.discard(request)

    @rule(request=requests)
    def preempt(self, request):
        if self.known(request):
            self.cache.preempt(request)
            self.preempted.add(request)

    @precondition(lambda self: self.preempted)
    @rule(data=st.data())
    def resume(self, data):
        request = data.draw(st.sampled_from(sorted(self.preempted)))
        self.cache.resume(request)
        self.preempted.remove(request)

    @rule(n=st.integers(0, 3))
    def evict(self, n):
        cached = int((self.cache.state == BlockState.CACHED).sum())
        assert self.cache.evict(n) == min(n, cached)

    @invariant()
    def mass(self):
        """I2 and I3, for blocks that hold something."""
        held = self.cache.state != BlockState.FREE
        sums = self.cache.rows.sum(axis=2, dtype=np.int64)
        assert (sums[held] == 2 * self.cache.fill[held, np.newaxis]).all()
        assert (self.cache.rows >= 0).all()
        assert (self.cache.rows[held] <= self.cache.fill[held, np.newaxis, np.newaxis]).all()
        assert (self.cache.fill <= 3).all()

    @invariant()
    def every_block_is_of_its_prefix(self):
        """I4, I6, I9: each row holds its tokens once, whatever was in the block before and however they came."""
        for request in self.prompts:
            prompt, blocks = self.prompts[request], self.cache.blocks(request)
            for place, block in enumerate(blocks):
                start = 3 * place
                tokens = int(self.cache.fill[block])
                assert (self.cache.rows[block] == histogram(prompt[: start + tokens], start=start)).all()

    @invariant()
    def cached_rows_rest(self):
        """I5."""
        cached = {int(b) for b in np.flatnonzero(self.cache.state == BlockState.CACHED)}
        for block in cached & self.resting.keys():
            row, digest = self.resting[block]
            if self.cache._hash[block] == digest:
                assert (self.cache.rows[block] == row).all()
        self.resting = {b: (self.cache.rows[b].copy(), self.cache._hash[b]) for b in cached}

    @invariant()
    def uses_and_states(self):
        """I10, and that no block is lost or counted twice."""
        assert self.cache.rows.shape == (7, 2, 5)
        assert set(self.cache._requests) == set(self.prompts)
        held = [b for r in self.prompts for b in self.cache.blocks(r)]
        uses = np.bincount(held, minlength=7)
        assert (self.cache.uses == uses).all()
        state = self.cache.state
        assert ((state == BlockState.FILLING) | (state == BlockState.FULL)).tolist() == (uses > 0).tolist()
        assert self.cache.num_available == int((uses == 0).sum())
        assert sorted(self.cache._by_hash.values()) == [b for b in range(7) if self.cache._hash[b] is not None]


TestEngine = Engine.TestCase
TestEngine.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

SMALL = MoEShape(num_layers=1, num_experts=4, experts_per_token=2)
A = list(range(10))
B = [*A[:6], 20, 21, 22]


def test_worked_example():
    cache = SignatureCache(SMALL, num_blocks=8, block_size=4)
    a = cache.submit(A)
    prefill(cache, a, A)
    assert [cache.rows[b].sum() for b in cache.blocks(a)] == [8, 8, 4]
    first = cache.blocks(a)[0]
    alone = cache.signature(a)
    b = cache.submit(B)
    assert cache.position(b) == 4  # six tokens are shared, and one full block
    prefill(cache, b, B)
    assert cache.blocks(b)[0] == first
    assert cache.signature(b).sum() == 2 * len(B)
    cache.finish(a)
    cache.finish(b)
    cache.drop([first])
    again = cache.submit(A)
    assert cache.position(again) == 0
    prefill(cache, again, A)
    assert (cache.signature(again) == alone).all()


def test_a_full_hit_computes_the_last_token_and_adds_nothing():
    cache = SignatureCache(SMALL, num_blocks=4, block_size=4)
    first = cache.submit(A[:8])
    prefill(cache, first, A)
    rows = cache.rows.copy()
    second = cache.submit(A[:8])
    assert (cache.position(second), cache.remaining(second)) == (7, 1)
    prefill(cache, second, A[:8])
    assert (cache.rows == rows).all() and cache.blocks(second) == cache.blocks(first)


def test_the_least_recently_used_block_goes_first():
    cache = SignatureCache(SMALL, num_blocks=3, block_size=2)
    for prompt in ([1, 1], [2, 2], [3, 3]):
        r = cache.submit(prompt)
        prefill(cache, r, prompt)
        cache.finish(r)
    touched = cache.submit([1, 1])
    prefill(cache, touched, [1, 1])
    cache.finish(touched)
    r = cache.submit([4, 4])
    prefill(cache, r, [4, 4])  # takes the block of [2, 2]
    assert [cache.position(cache.submit(p)) for p in ([1, 1], [2, 2], [3, 3])] == [1, 0, 1]


def test_the_end_of_a_prefix_goes_before_its_start():
    cache = SignatureCache(SMALL, num_blocks=3, block_size=2)
    r = cache.submit([1, 2, 3, 4])
    prefill(cache, r, [1, 2, 3, 4])
    cache.finish(r)
    assert cache.evict(1) == 1
    assert cache.position(cache.submit([1, 2, 3, 4])) == 2


def test_of_two_who_compute_one_prefix_at_a_time_the_first_is_kept():
    cache = SignatureCache(SMALL, num_blocks=2, block_size=2)
    first, second = cache.submit([1, 2]), cache.submit([1, 2])
    for r in (first, second):
        prefill(cache, r, [1, 2])
    (kept,) = cache.blocks(first)
    cache.finish(second)
    assert sorted(cache.state.tolist()) == [BlockState.FREE, BlockState.FULL]
    cache.finish(first)
    assert cache.state[kept] == BlockState.CACHED
    assert cache.blocks(cache.submit([1, 2])) == (kept,)


def test_long_prompts_overflow_no_sum():
    shape = MoEShape(1, 1, 1)
    cache = SignatureCache(shape, num_blocks=300, block_size=127)
    r = cache.submit(np.zeros(33_000, dtype=np.int64))
    cache.prefill_chunk(r, np.zeros((33_000, 1, 1), dtype=np.int64))
    assert cache.signature(r)[0, 0] == 33_000 and cache.rows.max() == 127


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda c, r: SignatureCache(SMALL, 4, 128), "int8"),
        (lambda c, r: SignatureCache(SMALL, 0), "num_blocks is 0"),
        (lambda c, r: c.submit([]), "prompt is of shape"),
        (lambda c, r: c.submit([0.5]), "type float64"),
        (lambda c, r: c.prefill_chunk(r, np.zeros((1, 1, 2), int)), "twice"),
        (lambda c, r: c.prefill_chunk(r, [[[0, 4]]]), "expert 4"),
        (lambda c, r: c.prefill_chunk(r, [[[-1, 1]]]), "expert -1"),
        (lambda c, r: c.prefill_chunk(r, [[[0, 1, 2]]]), r"expected whole numbers \(n, 1, 2\)"),
        (lambda c, r: c.prefill_chunk(r, [[[0, 1]]] * 3), "2 prompt tokens left"),
        (lambda c, r: c.finish(r), "abort it"),
        (lambda c, r: c.resume(r), "was not preempted"),
        (lambda c, r: (c.preempt(r), c.prefill_chunk(r, [[[0, 1]]])), "resume it first"),
        (lambda c, r: c.signature(99), "request 99 is not known"),
        (lambda c, r: c.evict(-1), "-1"),
        (lambda c, r: c.drop([0]), "not cached"),
    ],
)
def test_errors(act, words):
    cache = SignatureCache(SMALL, num_blocks=4, block_size=4)
    with pytest.raises(InputError, match=words):
        act(cache, cache.submit([1, 2]))
