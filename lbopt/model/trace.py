"""A trace: requests in arrival order, each with its prompt tokens, output tokens and, where known, arrival time."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.display import Displayed
from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array
from lbopt.model.request_experts import RequestExperts
from lbopt.model.request_prefixes import RequestPrefixes

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Trace(Displayed):
    """Requests in arrival order.

    Parameters
    ----------
    prompt
        int, (N,): tokens resident when decode starts, s_i >= 0.
    output
        int, (N,): decode steps that the request runs, o_i >= 1. The truth, which no policy may see.
    arrival
        float, (N,): seconds from the start of the trace, non-decreasing; None where the source has no times.
    name
        What to call it in tables.
    left_out
        Why rows of the source are not here, and how many: {"no output tokens": 17}.
    experts
        Which experts of a mixture-of-experts model each request uses; None where that is not known.
    prefixes
        Which blocks the prompts begin with; None where that is not known.
    """

    prompt: IntArray
    output: IntArray
    arrival: FloatArray | None = None
    name: str = "trace"
    left_out: dict[str, int] = field(default_factory=dict)
    experts: RequestExperts | None = None
    prefixes: RequestPrefixes | None = None

    def __post_init__(self) -> None:
        prompt = integer_array("prompt", self.prompt, ndim=(1,))
        output = integer_array("output", self.output, ndim=(1,))
        if prompt.size == 0:
            raise InputError(f"trace '{self.name}' holds no request")
        if output.shape != prompt.shape:
            raise InputError(f"trace '{self.name}' has {prompt.size} prompts but {output.size} outputs")
        if (output < 1).any():
            row = int(np.argmax(output < 1))
            raise InputError(f"trace '{self.name}': output[{row}] is 0; a request runs at least one decode step")
        if self.experts is not None and self.experts.profile.size != prompt.size:
            raise InputError(
                f"trace '{self.name}' has {prompt.size} requests, and expert use of {self.experts.profile.size}"
            )
        if self.prefixes is not None and len(self.prefixes) != prompt.size:
            raise InputError(f"trace '{self.name}' has {prompt.size} requests, and prefixes of {len(self.prefixes)}")
        object.__setattr__(self, "prompt", prompt)
        object.__setattr__(self, "output", output)
        if self.arrival is not None:
            object.__setattr__(self, "arrival", self._checked_arrival(self.arrival, prompt.size))

    def _checked_arrival(self, values: Any, count: int) -> FloatArray:
        times = np.array(values, dtype=np.float64)
        if times.shape != (count,):
            raise InputError(f"trace '{self.name}' has {count} requests but arrival has shape {times.shape}")
        if not np.isfinite(times).all():
            raise InputError(f"trace '{self.name}': arrival[{int(np.argmin(np.isfinite(times)))}] is not a number")
        backwards = np.flatnonzero(times[1:] < times[:-1])
        if backwards.size:
            row = int(backwards[0]) + 1
            raise InputError(
                f"trace '{self.name}': arrival[{row}] = {times[row]} s is before its predecessor; sort by arrival first"
            )
        times -= times[0]
        times.flags.writeable = False
        return times

    def __repr__(self) -> str:
        times = "no arrival times" if self.arrival is None else f"{self.arrival[-1]:,.0f} s"
        return (
            f"<Trace {self.name}: {len(self):,} requests, mean prompt {self.prompt.mean():,.0f} and output "
            f"{self.output.mean():,.0f} tokens, {times}>"
        )

    def __len__(self) -> int:
        return int(self.prompt.size)

    @property
    def digest(self) -> str:
        """SHA-256 of prompts, outputs, arrivals and expert use; prefixes do not count."""
        sha = hashlib.sha256(b"lbopt-trace 1")
        sha.update(self.prompt.astype("<i8").tobytes())
        sha.update(self.output.astype("<i8").tobytes())
        if self.arrival is not None:
            sha.update(self.arrival.astype("<f8").tobytes())
        if self.experts is not None:
            self.experts.update(sha)
        return sha.hexdigest()

    @property
    def mean_resident_tokens(self) -> float:
        """Mean tokens in a slot that is never empty: (E[s o] + E[o (o - 1) / 2]) / E[o].

        A request shows the sizes s, s + 1, ..., s + o - 1, one a step.
        """
        prompt, output = self.prompt.astype(np.float64), self.output.astype(np.float64)
        return float((prompt * output + output * (output - 1) / 2).mean() / output.mean())

    def first(self, count: int) -> Trace:
        """Return the first `count` requests, in file order."""
        if not 1 <= count <= len(self):
            raise InputError(f"cannot take {count} requests: trace '{self.name}' has {len(self)}")
        return self.part(0, count)

    def part(self, begin: int, end: int) -> Trace:
        """Return requests begin..end-1, in file order, with their times counted from the first of them."""
        if not 0 <= begin < end <= len(self):
            raise InputError(f"cannot take requests {begin} to {end - 1}: trace '{self.name}' has {len(self)}")
        if (begin, end) == (0, len(self)):
            return self
        return Trace(
            prompt=self.prompt[begin:end],
            output=self.output[begin:end],
            arrival=None if self.arrival is None else self.arrival[begin:end],
            name=self.name,
            left_out=self.left_out,
            experts=None if self.experts is None else self.experts.of_requests(slice(begin, end)),
            prefixes=None if self.prefixes is None else self.prefixes.of_requests(slice(begin, end)),
        )

    def resampled(self, count: int, seed: int, *, keep_times: bool = False) -> Trace:
        """Return `count` requests drawn with replacement; with `keep_times` they arrive when the trace's requests do.

        The draw is ``numpy.random.default_rng(seed).choice(N, count, replace=True)``, the one behind Table 1 of the
        BF-IO paper (N = 8000, count = 100000, seed = 42). Times longer than the trace are continued by its repetition.
        """
        if count < 1:
            raise InputError(f"cannot draw {count} requests; expected at least 1")
        rows = np.random.default_rng(seed).choice(len(self), count, replace=True)
        return Trace(
            prompt=self.prompt[rows],
            output=self.output[rows],
            arrival=self._repeated_times(count) if keep_times else None,
            name=self.name,
            left_out=self.left_out,
            experts=None if self.experts is None else self.experts.of_requests(rows),
            prefixes=None if self.prefixes is None else self.prefixes.of_requests(rows),
        )

    def _repeated_times(self, count: int) -> FloatArray | None:
        if self.arrival is None:
            return None
        period = self.arrival[-1] * len(self) / max(1, len(self) - 1)  # one mean gap after the last request
        rounds = np.arange(-(-count // len(self)))
        repeated: FloatArray = (self.arrival[None, :] + rounds[:, None] * period).ravel()[:count]
        return repeated
