"""The signature cache: expert counts beside the KV blocks of a prefill worker, so that cached prefixes keep theirs.

One preallocated row of int8 counts, (L, E), stands beside every KV block. When tokens are written to a block, the
experts that they chose are added to its row; a request's raw signature is the sum of the rows of its blocks. A block
that is full is hashed by the whole prefix that it ends, and can be shared; when no request uses it any more it stays
cached until it is evicted, least recently used first, and its row with it. A row is zeroed when its block is allocated
anew.

    FREE -> FILLING -> FULL <-> CACHED -> FREE

A partial block belongs to one request and is never hashed. On a full hit engines compute the last token of the prompt
again: it is already in its block's row and is not added twice. Two requests that compute the same prefix at the same
time have a block each; only the first of them is hashed.

Source: ELDR (arXiv 2607.00466), section on the signature cache.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from threading import get_ident

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.locality.workload import MoEShape, check_choices, counted

#: The largest count of an int8 row; an expert is chosen at most once by a token of the block.
MOST_TOKENS = 127


class OneThread:
    """The thread that an object belongs to: the first that uses it; a second one is refused.

    Two threads in one object that works in arrays of its own mix their requests up without any error.

    Parameters
    ----------
    what
        The object, as the message calls it.
    """

    __slots__ = ("_owner", "_what")

    def __init__(self, what: str) -> None:
        self._owner, self._what = 0, what

    def __reduce__(self) -> tuple[type[OneThread], tuple[str]]:
        return OneThread, (self._what,)  # a copy has no owner yet

    def check(self) -> None:
        """Raise InputError where another thread has used the object before."""
        mine = get_ident()
        if self._owner != mine:
            if self._owner:
                raise InputError(f"this {self._what} is used by another thread already; make one for each thread")
            self._owner = mine


class BlockState(IntEnum):
    """What a block holds."""

    FREE = 0
    FILLING = 1
    FULL = 2
    CACHED = 3


def block_hashes(tokens: NDArray[np.integer], block_size: int) -> list[bytes]:
    """Return the hash of each full block of `tokens`, int (n,): n // block_size hashes of 16 bytes.

    Each hash is of the whole prefix that the block ends: attention makes the block's content depend on it.
    """
    ids = np.ascontiguousarray(tokens, dtype=np.int64)
    hashes, before = [], b""
    for start in range(0, ids.size - block_size + 1, block_size):
        before = hashlib.blake2b(before + ids[start : start + block_size].tobytes(), digest_size=16).digest()
        hashes.append(before)
    return hashes


@dataclass(slots=True)
class _Request:
    tokens: int
    hashes: list[bytes]
    blocks: list[int] = field(default_factory=list)
    computed: int = 0
    recorded: int = 0
    running: bool = True


class SignatureCache:
    """Rows of expert counts for a fixed number of KV blocks.

    Parameters
    ----------
    shape
        The model: L layers, E experts, k experts a token.
    num_blocks
        Blocks of the KV cache.
    block_size
        Tokens of a block, at most 127.
    prefix_caching
        Whether full blocks are shared and kept; without it every request computes all of its prompt.

    Attributes
    ----------
    rows
        int8 (num_blocks, L, E). Read only for users.
    fill, uses
        int64 (num_blocks,): tokens in each block, and requests that hold it.
    state
        int8 (num_blocks,), values of `BlockState`.
    """

    def __init__(self, shape: MoEShape, num_blocks: int, block_size: int = 16, *, prefix_caching: bool = True) -> None:
        whole("num_blocks", num_blocks, 1)
        whole("block_size", block_size, 1)
        if block_size > MOST_TOKENS:
            raise InputError(
                f"block_size is {block_size}, more tokens than an int8 row can count; expected at most {MOST_TOKENS}"
            )
        self.shape, self.block_size, self.prefix_caching = shape, block_size, prefix_caching
        self.rows = np.zeros((num_blocks, shape.num_layers, shape.num_experts), dtype=np.int8)
        self.fill, self.uses = np.zeros(num_blocks, dtype=np.int64), np.zeros(num_blocks, dtype=np.int64)
        self.state = np.zeros(num_blocks, dtype=np.int8)
        self._hash: list[bytes | None] = [None] * num_blocks
        self._by_hash: dict[bytes, int] = {}
        self._free = list(range(num_blocks - 1, -1, -1))
        self._cached: OrderedDict[int, None] = OrderedDict()  # least recently used first
        self._requests: dict[int, _Request] = {}
        self._submitted = 0
        self._thread = OneThread("SignatureCache")

    @property
    def num_available(self) -> int:
        """Blocks that a request can be given: free ones, and cached ones that are evicted for it."""
        return len(self._free) + len(self._cached)

    def submit(self, prompt: ArrayLike) -> int:
        """Take a request with `prompt`, int (n,) token ids with n >= 1, hold the cached blocks of its prefix.

        Returns the number by which the request is called from now on.
        """
        self._thread.check()
        tokens = np.asarray(prompt)
        if tokens.ndim != 1 or tokens.size == 0 or tokens.dtype.kind not in "iu":
            raise InputError(
                f"the prompt is of shape {tokens.shape} and type {tokens.dtype}; expected a list of token ids"
            )
        request = self._submitted
        self._submitted += 1
        self._requests[request] = _Request(tokens.size, block_hashes(tokens, self.block_size))
        self._hit(self._requests[request])
        return request

    def resume(self, request: int) -> None:
        """Let a preempted request start anew, from what is still cached of its prefix."""
        known = self._known(request)
        if known.running:
            raise InputError(f"request {request} is to be resumed, but was not preempted")
        known.running = True
        self._hit(known)

    def position(self, request: int) -> int:
        """Return the position of the first prompt token that the engine has yet to compute."""
        return self._known(request).computed

    def remaining(self, request: int) -> int:
        """Return how many prompt tokens the engine has yet to compute; at least one after a hit."""
        known = self._known(request)
        return known.tokens - known.computed

    def blocks(self, request: int) -> tuple[int, ...]:
        """Return the blocks that the request holds, in the order of its prompt."""
        return tuple(self._known(request).blocks)

    def prefill_chunk(self, request: int, choices: ArrayLike) -> None:
        """Add the experts that the next tokens of the prompt chose.

        Parameters
        ----------
        choices
            int (n, L, k): for each of the next n >= 1 tokens, k different experts a layer.

        Raises
        ------
        InputError
            if the request is preempted, there are more choices than tokens left or fewer blocks than needed, or the
            choices are not of the model. Nothing has been changed then.
        """
        known = self._running(request)
        experts = check_choices(choices, self.shape)
        left = known.tokens - known.computed
        if len(experts) > left:
            raise InputError(
                f"request {request} has {left} prompt tokens left, but choices of {len(experts)} are given"
            )
        end = known.computed + len(experts)
        needed = -(-end // self.block_size) - len(known.blocks)
        if needed > self.num_available:
            raise InputError(
                f"request {request} needs {needed} more blocks and {self.num_available} are free or cached; "
                "preempt or finish another request"
            )
        new = experts[max(known.recorded - known.computed, 0) :]  # a token computed again stands in its row already
        while len(new):
            slot = known.recorded % self.block_size
            if slot == 0:
                known.blocks.append(self._allocate())
            room = self.block_size - slot
            self._add(known.blocks[-1], new[:room])
            known.recorded += len(new[:room])
            if known.recorded % self.block_size == 0:
                self._complete(known)
            new = new[room:]
        known.computed = end

    def signature(self, request: int) -> NDArray[np.int64]:
        """Return the raw counts of the tokens in the request's blocks, int64 (L, E); nothing is written."""
        total: NDArray[np.int64] = self.rows[self._known(request).blocks].sum(axis=0, dtype=np.int64)
        return total

    def finish(self, request: int) -> None:
        """Release the blocks of a request whose prompt is computed; full ones stay cached."""
        left = self.remaining(request)
        self._running(request)
        if left:
            raise InputError(f"request {request} has {left} prompt tokens left; prefill them, or abort it")
        self._release(self._requests.pop(request))

    def abort(self, request: int) -> None:
        """Forget a request at any time; full blocks stay cached."""
        self._release(self._known(request))
        del self._requests[request]

    def preempt(self, request: int) -> None:
        """Take the blocks away from a request, which may be resumed later."""
        known = self._running(request)
        self._release(known)
        known.running = False

    def evict(self, number: int = 1) -> int:
        """Drop the `number` least recently used cached blocks, or all if there are fewer; returns how many."""
        whole("number of blocks to evict", number, 0)
        gone = list(self._cached)[:number]
        self.drop(gone)
        return len(gone)

    def drop(self, blocks: Iterable[int]) -> None:
        """Drop these cached blocks, whatever their turn."""
        for block in blocks:
            if block not in self._cached:
                raise InputError(
                    f"block {block} is to be dropped, but is not cached; expected one that no request holds"
                )
            del self._cached[block]
            self._forget(block)

    def _hit(self, known: _Request) -> None:
        """Hold the longest run of cached blocks from the start of the prompt."""
        for digest in known.hashes if self.prefix_caching else ():
            if digest not in self._by_hash:
                break
            block = self._by_hash[digest]
            self._cached.pop(block, None)
            self.state[block] = BlockState.FULL
            self.uses[block] += 1
            known.blocks.append(block)
        known.recorded = len(known.blocks) * self.block_size
        known.computed = min(known.recorded, known.tokens - 1)  # the last token is computed again, for its output

    def _allocate(self) -> int:
        if not self._free:
            self.evict(1)
        block = self._free.pop()
        self.rows[block] = 0
        self.fill[block] = 0
        self.state[block] = BlockState.FILLING
        self.uses[block] = 1
        return block

    def _add(self, block: int, experts: NDArray[np.int64]) -> None:
        self.rows[block] += counted(experts, self.shape.num_experts).astype(np.int8)
        self.fill[block] += len(experts)

    def _complete(self, known: _Request) -> None:
        block, digest = known.blocks[-1], known.hashes[len(known.blocks) - 1]
        self.state[block] = BlockState.FULL
        if self.prefix_caching and digest not in self._by_hash:
            self._hash[block] = digest
            self._by_hash[digest] = block

    def _release(self, known: _Request) -> None:
        for block in reversed(known.blocks):  # the end of a prefix is of use to fewer, and goes first
            self.uses[block] -= 1
            if self.uses[block] == 0:
                if self._hash[block] is not None:
                    self.state[block] = BlockState.CACHED
                    self._cached[block] = None
                else:
                    self._forget(block)
        known.blocks = []
        known.computed = known.recorded = 0

    def _forget(self, block: int) -> None:
        digest = self._hash[block]
        if digest is not None:
            del self._by_hash[digest]
            self._hash[block] = None
        self.state[block] = BlockState.FREE
        self._free.append(block)

    def _known(self, request: int) -> _Request:
        self._thread.check()
        if request not in self._requests:
            raise InputError(
                f"request {request} is not known; expected one that was submitted, not finished or aborted"
            )
        return self._requests[request]

    def _running(self, request: int) -> _Request:
        known = self._known(request)
        if not known.running:
            raise InputError(f"request {request} is preempted; resume it first")
        return known
