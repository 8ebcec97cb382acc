"""A sealed record as a trace that tells prefixes, in Mooncake's form, which the rest of lbopt reads.

Mooncake names blocks of 512 tokens, a record hashes blocks of bytes. All prompts of a model and kind get one ratio of
bytes to tokens, that of their sums, so that equal beginnings stay equal: block j of tokens gets the last hash whose
bytes end before 512 * (j + 1) tokens do. Hashes become numbers in the order in which they come up, so that a trace has
nothing of the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from lbopt.instances.readers.formats import BLOCK_TOKENS

Group = tuple[str, str]


def prefix_trace(outcomes: Iterable[tuple[dict[str, Any], int]]) -> tuple[str, int]:
    """Return the lines of a trace, in order of arrival, and how many there are.

    Parameters
    ----------
    outcomes
        Outcomes of requests, and the bytes of a block of hashes of each.
    """
    told = [(row, block) for row, block in outcomes if _is_told(row) and block > 0]
    sums: dict[Group, list[int]] = {}
    for row, _ in told:
        sizes = sums.setdefault(_group(row), [0, 0])
        sizes[0] += row["prompt_bytes"]
        sizes[1] += row["prompt"]
    told.sort(key=lambda pair: pair[0]["arrival"])
    numbers: dict[str, int] = {}
    begun = told[0][0]["arrival"] if told else 0.0
    lines = []
    for row, block in told:
        size, tokens = sums[_group(row)]
        hashes, named = row["prefix"], []
        for j in range(row["prompt"] // BLOCK_TOKENS):
            last = int((j + 1) * BLOCK_TOKENS * size / tokens / block) - 1
            if not 0 <= last < len(hashes):
                break
            # two blocks of tokens may end in one block of bytes: the number tells their order, too
            named.append(numbers.setdefault(f"{hashes[last]}/{j}", len(numbers)))
        line = {
            "timestamp": round(1000 * (row["arrival"] - begun), 3),
            "input_length": row["prompt"],
            "output_length": row["output"],
            "hash_ids": named,
        }
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")
    return "".join(lines), len(lines)


def _group(row: dict[str, Any]) -> Group:
    return str(row.get("model")), str(row.get("prefix_kind"))


def _is_told(row: dict[str, Any]) -> bool:
    """Return whether an outcome is that of a whole request with hashes."""
    hashes = row.get("prefix")
    return (
        row.get("ending") == "finished"
        and not row.get("recomputations")  # its prompt has what was generated before
        and isinstance(hashes, list)
        and all(isinstance(one, str) for one in hashes)
        and all(type(row.get(name)) is int and row[name] > 0 for name in ("prompt", "output", "prompt_bytes"))
        and isinstance(row.get("arrival"), int | float)
    )
