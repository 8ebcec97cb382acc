"""Which experts of a mixture-of-experts model the requests of a trace use.

Traffic repeats prompts, so what they do to the experts is kept once a *profile*, and a request names its profile.
`chosen` is what a router may see at the hand-off from prefill to decode; `decode` is the truth of what follows.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.model.integers import IntArray, integer_array


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
