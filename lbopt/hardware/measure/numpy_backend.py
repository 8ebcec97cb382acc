"""The host's processor through NumPy: always there, so the command runs, and is tested, on every machine.

Attention is computed chunk by chunk with a running maximum (Milakov and Gimelshein, arXiv 1805.02867; FlashAttention's
order): scores of a chunk stay in cache, and KV is read from memory once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.measure.attention import AttentionShape
from lbopt.hardware.measure.backend import Decode, host_account, host_free_bytes, usable_cores
from lbopt.hardware.measure.products import Product
from lbopt.spec import unknown

#: Tokens of a chunk: 128 heads' scores over it fill 1 MiB.
CHUNK = 2048
#: What limits the threads of one BLAS or another; unset, it takes every core.
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")
_Array = NDArray[np.float32]


class NumpyBackend:
    """NumPy in float32, with as many threads as its BLAS takes."""

    name = "numpy"
    device = "cpu"
    dtype = "float32"
    itemsize = 4
    is_host = True

    def __init__(self, device: str | None = None, dtype: str | None = None) -> None:
        if device not in (None, "cpu"):
            raise unknown("device", str(device), ["cpu"], " (of backend numpy; for accelerators take torch)")
        if dtype not in (None, "float32"):
            raise InputError(f"dtype '{dtype}' is not one of backend numpy; it computes in float32 only")

    def account(self) -> dict[str, str]:
        """Return the host's processor, versions and BLAS."""
        config: Any = np.show_config(mode="dicts")
        blas = config.get("Build Dependencies", {}).get("blas", {})
        limits = [int(os.environ[name]) for name in _THREADS if os.environ.get(name, "").isdecimal()]
        return host_account("numpy") | {
            "blas": f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip(),
            "threads": str(min([usable_cores(), *limits])),
        }

    def free_bytes(self) -> int | None:
        """Return the host's memory that could be taken now."""
        return host_free_bytes()

    def scratch_bytes(self, shape: AttentionShape, tokens: int) -> int:
        """Return the bytes of two chunks of scores."""
        return 2 * self.itemsize * shape.heads // shape.kv_heads * min(tokens, CHUNK)

    def decode(self, shape: AttentionShape, pool_tokens: int) -> Decode:
        """Return attention over a pool of random KV: float32[kv_heads, pool_tokens, key_dim or value_dim]."""
        keys = random_block((shape.kv_heads, pool_tokens, shape.key_dim), seed=1)
        values = (
            keys[..., : shape.value_dim]
            if shape.latent
            else random_block((shape.kv_heads, pool_tokens, shape.value_dim), seed=2)
        )
        queries = random_queries(shape)
        group = shape.heads // shape.kv_heads

        def run(contexts: tuple[int, ...], start: int) -> _Array:
            out = np.empty((len(contexts), shape.heads, shape.value_dim), np.float32)
            for request, context in enumerate(contexts):
                window = slice(start, start + context)
                for head in range(shape.kv_heads):
                    rows = slice(head * group, (head + 1) * group)
                    out[request, rows] = attend(queries[rows], keys[head, window], values[head, window])
                start += context
            return out

        return run

    def reader(self, num_bytes: int) -> Callable[[], Any]:
        """Return the scalar product of a block with itself, which BLAS does at the memory's rate on all cores."""
        block = np.ones(num_bytes // 4, np.float32)
        return lambda: float(block @ block)

    def multiply(self, products: Sequence[Product]) -> Callable[[int], Callable[[], list[_Array]]]:
        """Return calls of ``tokens @ weights``, float32[copies, tokens, outputs] of each product."""
        weights = [random_block((one.copies, one.inputs, one.outputs), seed=5) for one in products]

        def of(requests: int) -> Callable[[], list[_Array]]:
            tokens = [random_block((one.copies, one.tokens(requests), one.inputs), seed=6) for one in products]
            return lambda: [np.matmul(left, right) for left, right in zip(tokens, weights, strict=True)]

        return of

    def at_once(self, works: Sequence[Callable[[int], object]]) -> None:
        """Return None: works run one after another here."""

    def spin(self, blocks: int, threads: int) -> None:
        """Return None: a processor waits by sleeping."""

    def touch(self) -> Callable[[], Any]:
        """Return a call that does nothing."""
        return lambda: None

    def counter(self) -> None:
        """Return None: no counter of a processor is read."""

    def clock(self, work: Callable[[], Any]) -> float:
        """Return the seconds on the wall."""
        begin = time.perf_counter()
        work()
        return time.perf_counter() - begin


def attend(queries: _Array, keys: _Array, values: _Array) -> _Array:
    """Return softmax(queries keysᵀ) values, float32[rows, value_dim], a chunk of tokens at a time."""
    rows = queries.shape[0]
    best = np.full((rows, 1), -np.inf, np.float32)
    total = np.zeros((rows, 1), np.float32)
    out = np.zeros((rows, values.shape[1]), np.float32)
    for begin in range(0, keys.shape[0], CHUNK):
        chunk = slice(begin, begin + CHUNK)
        scores = queries @ keys[chunk].T
        new = np.maximum(best, scores.max(axis=1, keepdims=True))
        np.exp(np.subtract(scores, new, out=scores), out=scores)
        kept = np.exp(best - new)
        total = total * kept + scores.sum(axis=1, keepdims=True)
        out = out * kept + scores @ values[chunk]
        best = new
    return np.asarray(out / total, np.float32)


def random_block(shape: tuple[int, ...], seed: int) -> _Array:
    """Return normal numbers, a small block of them repeated: gigabytes drawn one by one would take minutes."""
    block = np.random.default_rng(seed).standard_normal(65_537, np.float32)
    return np.resize(block, shape)


def random_queries(shape: AttentionShape) -> _Array:
    """Return queries float32[heads, key_dim], scaled as attention scales them."""
    draw = np.random.default_rng(4).standard_normal((shape.heads, shape.key_dim), np.float32)
    return np.asarray(draw / np.sqrt(shape.key_dim), np.float32)
