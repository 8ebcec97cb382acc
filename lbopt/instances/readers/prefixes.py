"""Blocks of prompts: which numbers a row gives, and how many tokens a number stands for.

A prompt of s tokens has ceil(s / b) blocks of b tokens, or floor(s / b) where only full blocks are numbered. The block
size that the format says is kept if it fits; otherwise the power of two that fits nearly all rows is taken. Traces in
Mooncake's form come with other sizes than its 512 (AIPerf: ``--isl-block-size``; Dynamo: ``--trace-block-size``).
"""

from __future__ import annotations

import logging
from array import array
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.model.trace import RequestPrefixes

#: Numbers of blocks are below this.
LARGEST_HASH = 2**62

_SIZES: tuple[int, ...] = tuple(1 << power for power in range(17))
#: Share of rows that a block size has to fit.
_NEARLY_ALL = 0.95
#: Fewer rows may fit a size by chance.
_FEW = 10

logger = logging.getLogger(__name__)


class Blocks:
    """Numbers of blocks that come row by row; dropped as soon as one row gives none."""

    def __init__(self, field: str | None) -> None:
        self.field, self.odd = field, False
        self._blocks, self._counts = array("q"), array("q")

    def add(self, record: Any) -> None:
        """Take the blocks of a row."""
        value = record.get(self.field)
        if isinstance(value, list) and all(type(one) is int and 0 <= one < LARGEST_HASH for one in value):
            self._blocks.extend(value)
            self._counts.append(len(value))
        else:
            self.odd = bool(self._counts) or value is not None
            self.field = None

    def prefixes(self, prompt: NDArray[np.int64], block_tokens: int, source: str) -> RequestPrefixes | None:
        """Return the blocks of all prompts, int64 (N,); None where a row gave none, or no block size fits."""
        if self.odd:
            logger.warning("%s: blocks of prompts are left out; not every row has a list of whole numbers", source)
        if self.field is None or not prompt.size:
            return None
        counts = np.array(self._counts, dtype=np.int64)
        size = block_size(prompt, counts, block_tokens)
        if size is None:
            logger.warning("%s: %s are left out; no block size fits them and the prompts", source, self.field)
            return None
        first = np.concatenate([[0], np.cumsum(counts)])
        return RequestPrefixes(block_tokens=size, first=first, blocks=np.array(self._blocks, dtype=np.int64))


def block_size(prompt: NDArray[np.int64], counts: NDArray[np.int64], usual: int) -> int | None:
    """Return tokens of a block; None where prompts have more blocks than any size allows.

    Parameters
    ----------
    prompt, counts
        int64, (N,): tokens and blocks of each prompt.
    usual
        What the format says.
    """

    def fits(size: int) -> bool:
        whole, started = prompt // size, -(-prompt // size)
        return bool(np.mean((counts == started) | (counts == whole)) >= _NEARLY_ALL)

    telling = prompt.size >= _FEW and counts.min() < counts.max()
    sizes = (usual, *reversed(_SIZES)) if telling else (usual,)
    if (found := next((size for size in sizes if fits(size)), None)) is not None:
        return found
    part = float(np.mean(counts <= -(-prompt // usual)))  # of prompts with numbers of their beginning only
    return usual if part >= _NEARLY_ALL else None
