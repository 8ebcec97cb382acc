"""Records of trees of patterns, which older versions wrote and the checker still reads."""

from collections.abc import Iterable
from typing import Any


def branch(worker: int, patterns: Iterable[Iterable[int]]) -> dict[str, Any]:
    """Return the record of a branch; the subtrees of the patterns have to follow it in the same order."""
    return {"worker": int(worker), "patterns": [sorted(map(int, pattern), reverse=True) for pattern in patterns]}


def dead(workers: Iterable[int]) -> dict[str, Any]:
    """Return the record of a leaf."""
    return {"dead": [int(g) for g in workers]}
