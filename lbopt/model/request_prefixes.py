"""Which blocks of tokens the prompts of a trace begin with, told by numbers: equal numbers are equal tokens so far.

A block's number stands for its tokens and for all before it, as caches of prefixes hash them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RequestPrefixes:
    """Blocks of the prompts of N requests, arrays non-writeable.

    Parameters
    ----------
    block_tokens
        Tokens of a block.
    first
        int64, (N + 1,): where the blocks of each request begin in `blocks`, and where the last one's end.
    blocks
        int64, (K,), 0 or more: numbers of blocks, in the order of the prompt.
    """

    block_tokens: int
    first: IntArray
    blocks: IntArray

    def __post_init__(self) -> None:
        first = integer_array("first", self.first, ndim=(1,))
        blocks = integer_array("blocks", self.blocks, ndim=(1,))
        if self.block_tokens < 1:
            raise InputError(f"blocks of prefixes have {self.block_tokens} tokens; expected at least 1")
        if not first.size or first[0] != 0 or first[-1] != blocks.size or (np.diff(first) < 0).any():
            raise InputError(
                f"blocks of {max(0, first.size - 1)} requests do not add up to the {blocks.size} there are"
            )
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "blocks", blocks)

    def __len__(self) -> int:
        return int(self.first.size) - 1

    def of_requests(self, rows: Any) -> RequestPrefixes:
        """Return the prefixes of some requests, in the order of `rows`: a slice, numbers, or one truth value each."""
        chosen = np.arange(len(self))[rows]
        counts = np.diff(self.first)[chosen]
        first = np.concatenate([[0], np.cumsum(counts)])
        at = np.arange(first[-1]) + np.repeat(self.first[:-1][chosen] - first[:-1], counts)
        return RequestPrefixes(block_tokens=self.block_tokens, first=first, blocks=self.blocks[at])

    def full_blocks(self, prompt: IntArray) -> tuple[NDArray[np.int64], NDArray[np.int64], int]:
        """Return `first` and `blocks` of the blocks that prompts fill, numbered from 0, and how many numbers there are.

        Only full blocks can be shared: the last one of a prompt mostly is not.
        """
        counts = np.minimum(np.diff(self.first), prompt // self.block_tokens)
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        at = np.arange(first[-1]) + np.repeat(self.first[:-1] - first[:-1], counts)
        names, numbers = np.unique(self.blocks[at], return_inverse=True)
        return first, numbers.astype(np.int64), int(names.size)
