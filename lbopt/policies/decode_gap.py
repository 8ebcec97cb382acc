"""Algorithm 3 of SBS (`iqr`), or any policy, beside the exact programs D1 to D3 on one decode batch.

`lbopt gap` does so on sampled states of a fleet, with the programs as the policies of `decode_programs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lbopt.policies.decide import decide
from lbopt.policies.observation import Observation
from lbopt.policies.table import make_policy
from lbopt.solvers.decode import DecodeBatch, barrier_time, count_then_load, level_then_load


@dataclass(frozen=True, slots=True)
class DecodeRow:
    """A rule or an exact program on one batch; `optimal` is None for a rule.

    `largest_count` in requests, `largest_load` in tokens, `barrier` in the caller's unit of time.
    """

    name: str
    largest_count: int
    largest_load: int
    barrier: int
    optimal: bool | None = None


def compare_decode(
    batch: DecodeBatch,
    alpha: int,
    beta: int,
    policies: Sequence[str] = ("iqr",),
    time_limit: float | None = None,
    seed: int = 0,
) -> list[DecodeRow]:
    """Return a row for each policy and each of D1, D2 and D3; all on the barrier alpha * count + beta * load.

    `time_limit` in seconds is for each program.
    """
    rows = [_row(name, batch, place_by_policy(batch, name, seed), alpha, beta) for name in policies]
    for name, found in (
        ("D1", count_then_load(batch, time_limit, seed)),
        ("D2", level_then_load(batch, time_limit, seed)),
        ("D3", barrier_time(batch, alpha, beta, time_limit, seed)),
    ):
        rows.append(_row(name, batch, found.unit, alpha, beta, found.optimal))
    return rows


def place_by_policy(batch: DecodeBatch, policy: str, seed: int = 0) -> NDArray[np.int64]:
    """Return the unit of each request, int64 (m,), as a policy decides it."""
    N, m = batch.count.size, batch.length.size
    nobody, since = np.zeros(N, dtype=np.int64), np.zeros(m, dtype=np.int64)
    seen = Observation(0, 0.0, batch.load, batch.room, batch.count, nobody, nobody, batch.length, since, np.arange(m))
    return decide(make_policy(policy), seen, seed=seed)


def _row(
    name: str, batch: DecodeBatch, unit: NDArray[np.int64], alpha: int, beta: int, optimal: bool | None = None
) -> DecodeRow:
    count, load = max(batch.counts_after(unit)), max(batch.loads_after(unit))
    return DecodeRow(name, count, load, batch.barrier_after(unit, alpha, beta), optimal)
