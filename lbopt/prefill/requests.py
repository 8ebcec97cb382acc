"""What arrives at the prefill side: prompts with their times, and how much of each is cached where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.model.integers import integer_array

#: Arrivals later than this, s, could not be told apart by a microsecond.
LATEST = 1e9
MOST_TOKENS = 2**50


@dataclass(frozen=True, slots=True, eq=False)
class PrefillRequests:
    """Prompts in order of arrival.

    Parameters
    ----------
    arrival
        float (n,), s, ascending, from 0 on.
    length
        int (n,), tokens of the prompt, >= 1.
    hits
        int (n, N, D): tokens of the prompt that each unit of each instance need not compute, at most its length; None
        where nothing is cached.
    name
        What to call them in tables.
    """

    arrival: NDArray[np.float64]
    length: NDArray[np.int64]
    hits: NDArray[np.int64] | None = None
    name: str = "requests"

    def __post_init__(self) -> None:
        arrival = _checked_times(self.arrival)
        length = checked_lengths(self.length)
        if length.shape != arrival.shape:
            raise InputError(f"there are {arrival.size} arrivals but {length.size} lengths; expected one for each")
        object.__setattr__(self, "arrival", arrival)
        object.__setattr__(self, "length", length)
        if self.hits is not None:
            object.__setattr__(self, "hits", _checked_hits(self.hits, length))

    def __len__(self) -> int:
        return int(self.arrival.size)

    @classmethod
    def of_trace(cls, trace: Trace, *, rate: float | None = None) -> PrefillRequests:
        """Return the prompts of a trace at its times, stretched to `rate` requests a second where one is given."""
        if trace.arrival is None:
            raise InputError(f"trace '{trace.name}' has no arrival times; take its lengths with Poisson arrivals")
        arrival = trace.arrival
        if rate is not None:
            if not (np.isfinite(rate) and rate > 0):
                raise InputError(f"rate is {rate} requests a second; expected more than 0")
            span = arrival[-1] - arrival[0]
            if span == 0:
                raise InputError(
                    f"all arrivals of trace '{trace.name}' are at one time, which stretching does not bring to rate "
                    f"{rate:g}; take its lengths with Poisson arrivals, or give no rate"
                )
            arrival = arrival * ((len(trace) - 1) / span / rate)
        return cls(arrival, trace.prompt, name=trace.name)

    @classmethod
    def poisson(
        cls, rate: float, length: NDArray[np.int64] | int, seed: int, count: int | None = None
    ) -> PrefillRequests:
        """Return `count` requests that arrive at random, `rate` a second, with `length` drawn from the given ones.

        A single length is that of all requests; as many lengths as requests are taken as they come.

        Parameters
        ----------
        rate
            Arrivals a second.
        length
            int64: tokens of each prompt; one number for all, or lengths to draw from.
        seed
            Seed of gaps and lengths.
        count
            Requests; None takes one for each length, in their order.
        """
        if not (np.isfinite(rate) and rate > 0):
            raise InputError(f"rate is {rate} requests a second; expected more than 0")
        lengths = np.atleast_1d(np.asarray(length))
        n = lengths.size if count is None else count
        if n < 1:
            raise InputError(f"count is {n}; expected at least 1 request")
        gaps, draws = (np.random.default_rng([seed, part]) for part in (0, 3))
        if lengths.size != n:
            lengths = lengths[draws.integers(0, lengths.size, n)]
        return cls(np.cumsum(gaps.exponential(1 / rate, n)), lengths, name=f"poisson:rate={rate:g}")


def _checked_times(values: Any) -> NDArray[np.float64]:
    times = np.array(values, dtype=np.float64)
    if times.ndim != 1 or times.size == 0:
        raise InputError(f"arrival has shape {times.shape}; expected one time for each of at least 1 request")
    wrong = ~((times >= 0) & (times <= LATEST))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(f"arrival[{row}] is {times[row]}; expected a time of 0 to {LATEST:g} s")
    backwards = np.flatnonzero(np.diff(times) < 0)
    if backwards.size:
        row = int(backwards[0]) + 1
        raise InputError(f"arrival[{row}] = {times[row]} s is before its predecessor; sort by arrival first")
    times.flags.writeable = False
    return times


def _checked_hits(values: Any, length: NDArray[np.int64]) -> NDArray[np.int64]:
    hits = integer_array("hits", values, ndim=(3,))
    if hits.shape[0] != length.size:
        raise InputError(
            f"hits are of {hits.shape[0]} requests, but there are {length.size}; expected one row for each"
        )
    refuse_longer(hits, length)
    return hits


def checked_lengths(values: Any, beside: float = 0.0, what: str = "prompts") -> NDArray[np.int64]:
    """Return lengths of prompts, int64 (n,); with so many tokens `beside` them their sum is far from 2**63."""
    length = integer_array("length", values, ndim=(1,))
    if (length < 1).any():
        raise InputError(f"length[{int(np.argmax(length < 1))}] is 0; expected prompts of at least 1 token")
    total = float(length.sum(dtype=np.float64)) + beside
    if total >= MOST_TOKENS:
        raise InputError(f"{what} have {total:.3g} tokens in all; expected below 2**50")
    return length


def refuse_longer(hits: NDArray[np.int64], length: NDArray[np.int64]) -> None:
    """Refuse cached tokens, a row for each request, that are not 0 to its length."""
    wrong = (hits < 0) | (hits > length.reshape(-1, *[1] * (hits.ndim - 1)))
    if wrong.any():
        at = tuple(np.argwhere(wrong)[0].tolist())
        raise InputError(
            f"hits[{', '.join(map(str, at))}] is {hits[at]}, but the prompt has {length[at[0]]} tokens; expected 0 to "
            "its length"
        )
