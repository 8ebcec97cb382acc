"""A trace: requests in arrival order, each with its prompt tokens, output tokens and, where known, arrival time.

Where it is known, a trace also says which experts of a mixture-of-experts model its requests use. Traffic repeats
prompts, so what they do to the experts is kept once a *profile*, and a request names its profile. `chosen` is what a
router may see at the hand-off from prefill to decode; `decode` is the truth of what follows.

It may say which workers serve each request: those with its model or adapter.

And it says which blocks of tokens the prompts begin with, told by numbers: equal numbers are equal tokens so far. A
block's number stands for its tokens and for all before it, as caches of prefixes hash them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.display import Displayed
from lbopt.exceptions import InputError
from lbopt.kinds import refuse_kinds
from lbopt.model.integers import BoolArray, IntArray, boolean_table, integer_array, real_array

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
    eligibility
        Which workers serve each request; None where all workers serve all.
    """

    prompt: IntArray
    output: IntArray
    arrival: FloatArray | None = None
    name: str = "trace"
    left_out: dict[str, int] = field(default_factory=dict)
    experts: RequestExperts | None = None
    prefixes: RequestPrefixes | None = None
    eligibility: Eligibility | None = None

    def __post_init__(self) -> None:
        refuse_kinds(self)
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
        for what, known in (("prefixes", self.prefixes), ("eligibility", self.eligibility)):
            if known is not None and len(known) != prompt.size:
                raise InputError(f"trace '{self.name}' has {prompt.size} requests, and {what} of {len(known)}")
        object.__setattr__(self, "prompt", prompt)
        object.__setattr__(self, "output", output)
        if self.arrival is not None:
            object.__setattr__(self, "arrival", self._checked_arrival(self.arrival, prompt.size))

    def _checked_arrival(self, values: Any, count: int) -> FloatArray:
        times = real_array("arrival", values)
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
        """SHA-256 of prompts, outputs, arrivals, expert use and eligibility; prefixes do not count."""
        sha = hashlib.sha256(b"lbopt-trace 1")
        sha.update(self.prompt.astype("<i8").tobytes())
        sha.update(self.output.astype("<i8").tobytes())
        if self.arrival is not None:
            sha.update(self.arrival.astype("<f8").tobytes())
        if self.experts is not None:
            self.experts.update(sha)
        if self.eligibility is not None:
            served = self.eligibility.allowed[self.eligibility.kind]
            sha.update(b"eligibility" + repr(served.shape).encode() + np.packbits(served).tobytes())
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
            **self._known_of(slice(begin, end)),
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
            **self._known_of(rows),
        )

    def _known_of(self, rows: Any) -> dict[str, Any]:
        """Return what is known besides of some requests, in the order of `rows`."""
        known = {name: getattr(self, name) for name in ("experts", "prefixes", "eligibility")}
        return {name: None if part is None else part.of_requests(rows) for name, part in known.items()}

    def refuse_eligibility(self, who: str) -> None:
        """Refuse requests that only some workers serve, on behalf of `who`, which sends all requests anywhere."""
        if self.eligibility is not None:
            raise InputError(
                f"trace '{self.name}' has requests that only some workers serve, and {who} would send them to any; "
                "only `simulate` keeps eligibility. Leave it out with dataclasses.replace(trace, eligibility=None)"
            )

    def _repeated_times(self, count: int) -> FloatArray | None:
        if self.arrival is None:
            return None
        period = self.arrival[-1] * len(self) / max(1, len(self) - 1)  # one mean gap after the last request
        rounds = np.arange(-(-count // len(self)))
        repeated: FloatArray = (self.arrival[None, :] + rounds[:, None] * period).ravel()[:count]
        return repeated


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RequestExperts:
    """Expert use of requests, all arrays non-writeable.

    Parameters
    ----------
    chosen
        int, (M, L, E): prompt tokens of each profile that chose the expert.
    decode
        float32, (M, L, E), in [0, 1]: chance that a decode step of the profile uses the expert.
    domain
        int64, (M,): the label of the profile, 0 or more; what a router without signatures would go by.
    profile
        int64, (N,): the profile of each request.
    gate_prob
        float, (M, L, E): sums over prompt tokens of the gate's softmax; None where they were not taken down.
    model
        Name of the model whose experts they are; may be empty.
    """

    chosen: NDArray[np.integer[Any]]
    decode: NDArray[np.float32]
    domain: IntArray
    profile: IntArray
    gate_prob: NDArray[np.floating[Any]] | None = None
    model: str = ""

    def __post_init__(self) -> None:
        M = len(self.chosen)
        if self.chosen.ndim != 3 or self.chosen.dtype.kind not in "iu" or not self.chosen.size:
            raise InputError(
                f"experts chosen by prompts are of shape {self.chosen.shape} and type {self.chosen.dtype}; "
                "expected whole numbers (profiles, layers, experts)"
            )
        decode = np.array(self.decode, dtype=np.float32)
        if decode.shape != self.chosen.shape:
            raise InputError(
                f"decode activation has shape {decode.shape}; the prompts' choices have {self.chosen.shape}"
            )
        if not ((decode >= 0) & (decode <= 1)).all():
            raise InputError("decode activation is a chance; expected numbers from 0 to 1")
        if self.gate_prob is not None and self.gate_prob.shape != self.chosen.shape:
            raise InputError(f"scores of the gate have shape {self.gate_prob.shape}; the choices {self.chosen.shape}")
        domain = integer_array("domain", self.domain, ndim=(1,))
        profile = integer_array("profile", self.profile, ndim=(1,))
        if domain.size != M or (profile.size and int(profile.max()) >= M):
            raise InputError(
                f"there are {M} profiles and {domain.size} labels, and a request is of profile "
                f"{int(profile.max()) if profile.size else 0}; expected a label for each, and profiles from 0 to "
                f"{M - 1}"
            )
        decode.flags.writeable = False
        for name, value in (("decode", decode), ("domain", domain), ("profile", profile)):
            object.__setattr__(self, name, value)
        for name in ("chosen", "gate_prob"):
            if (given := getattr(self, name)) is not None:
                view = given.view()  # read-only, so that tens of megabytes need no copy to be safe
                view.flags.writeable = False
                object.__setattr__(self, name, view)

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and experts of a layer, (L, E)."""
        return self.chosen.shape[1], self.chosen.shape[2]

    def expected_in_use(self, batch: int) -> float:
        """Return the different experts that a step of `batch` of these requests uses, mean over draws and layers."""
        often = np.bincount(self.profile, minlength=len(self.domain)) / max(1, self.profile.size)
        idle = 1 - np.tensordot(often, self.decode.astype(np.float64), axes=1)
        return float((1 - np.maximum(idle, 0.0) ** batch).sum() / self.shape[0])

    def of_requests(self, rows: Any) -> RequestExperts:
        """Return the expert use of some requests, in the order of `rows`; all profiles stay."""
        return replace(self, profile=self.profile[rows])

    def profiles_of_first(self, count: int) -> IntArray:
        """Return the different profiles of the requests, in order of appearance, `count` of them at most."""
        _, first = np.unique(self.profile, return_index=True)
        seen: IntArray = self.profile[np.sort(first)[:count]]
        return seen

    def update(self, sha: hashlib._Hash) -> None:
        """Add what requests do to the experts to a digest."""
        used = self.profiles_of_first(len(self.profile))
        place = np.zeros(len(self.domain), dtype=np.int64)
        place[used] = np.arange(used.size)
        sha.update(repr(self.shape).encode())
        for array in (
            self.chosen[used].astype("<i8"),
            self.decode[used].astype("<f4"),
            self.domain[used].astype("<i8"),
        ):
            sha.update(array.tobytes())
        if self.gate_prob is not None:
            sha.update(b"gate_prob" + self.gate_prob[used].astype("<f8").tobytes())
        sha.update(place[self.profile].astype("<i8").tobytes())


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


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Eligibility:
    """Which of G workers serve each of N requests, arrays non-writeable.

    Parameters
    ----------
    kind
        int64, (N,): a row of `allowed`; requests of one kind share a round-robin.
    allowed
        bool, (K, G): whether a worker serves requests of the kind, at least one for each.
    """

    kind: IntArray
    allowed: BoolArray

    def __post_init__(self) -> None:
        kind = integer_array("kind", self.kind, ndim=(1,))
        allowed = boolean_table("allowed", self.allowed)
        if kind.size and not kind.max() < len(allowed):
            raise InputError(
                f"a request is of kind {int(kind.max())}; expected 0 to {len(allowed) - 1}, rows of allowed"
            )
        if not allowed.any(axis=1).all():
            raise InputError(f"no worker serves kind {int(np.argmin(allowed.any(axis=1)))} of requests")
        object.__setattr__(self, "kind", kind)
        object.__setattr__(self, "allowed", allowed)

    @classmethod
    def of_pairs(cls, allowed: Any) -> Eligibility:
        """Return that of bool (N, G), whether each worker serves each request; equal rows are of one kind."""
        rows, kind = np.unique(boolean_table("allowed", allowed), axis=0, return_inverse=True)
        return cls(kind=kind.ravel(), allowed=rows)

    def __len__(self) -> int:
        return int(self.kind.size)

    def of_requests(self, rows: Any) -> Eligibility:
        """Return that of some requests, in the order of `rows`; all kinds stay."""
        return replace(self, kind=self.kind[rows])
