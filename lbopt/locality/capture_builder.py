"""A capture grown request by request, from the experts that an engine says each token was routed to.

An engine tells rows: for each token, at each layer, the numbers of the k experts that it chose. Rows of the prompt
become counts, rows of the generated tokens the decode activation, the share of them that chose an expert. What engines
do to rows, and what is made of it:

- A layer without experts has zeros in all rows of vLLM's and SGLang's arrays. Such layers are left out, as the first
  request shows them, unless `layers` names those to keep.
- A token whose row is not known (computed before, and found in the cache of prefixes) has -1. Its request is left out:
  counts of half a prompt would be another prompt's.
- A request without a generated token tells nothing of decode, and is left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.locality.capture import Capture
from lbopt.locality.gate import Ints, MoEShape, check_choices, check_whole
from lbopt.locality.signature import check_layers


class CaptureBuilder:
    """Takes down requests of one model.

    Parameters
    ----------
    num_experts
        E, routed experts of a layer.
    model, source
        Name of the model, and the engine that tells, with its version.
    layers
        Layers to keep, of those that rows have; None = all but those that choose nothing.

    Attributes
    ----------
    left_out
        Requests that were left out, by reason.
    """

    def __init__(
        self, num_experts: int, *, model: str = "", source: str = "", layers: Sequence[int] | None = None
    ) -> None:
        check_whole("num_experts", num_experts, 1)
        self.model, self.source = model, source
        self.left_out: Counter[str] = Counter()
        self._num_experts = num_experts
        self._layers = None if layers is None else np.asarray(layers)
        self._shape: MoEShape | None = None
        self._counts: list[Ints] = []
        self._decode: list[NDArray[np.float64]] = []
        self._domain: list[int] = []

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, prompt: ArrayLike, decode: ArrayLike, domain: int | None = None) -> str:
        """Take one request down; return why it was left out, "" where it was not.

        Parameters
        ----------
        prompt, decode
            int (n, L, k) and (m, L, k): experts of each prompt token and of each generated one.
        domain
            Label of the request; of all requests or of none.

        Raises
        ------
        InputError
            If rows are not of the model, or a token chose an expert twice.
        """
        rows, made = np.asarray(prompt), np.asarray(decode)
        for name, array in (("prompt", rows), ("decode", made)):
            if array.ndim != 3 or array.dtype.kind not in "iu":
                raise InputError(
                    f"rows of {name} are of shape {array.shape} and type {array.dtype}; expected whole numbers "
                    "(tokens, layers, experts of a token)"
                )
        reason = _lacking(rows, made)
        if reason:
            self.left_out[reason] += 1
            return reason
        if rows.shape[1:] != made.shape[1:]:
            raise InputError(
                f"rows of prompt and decode have {rows.shape[1:]} and {made.shape[1:]} layers and experts of a token; "
                "expected the same"
            )
        if self._shape is None:
            self._begin(rows, made)
        assert self._shape is not None and self._layers is not None
        check_layers(self._layers, rows.shape[1])
        if self._counts and (domain is None) != (not self._domain):
            raise InputError("some requests have a domain and some have none; give it of all or of none")
        chosen = self.count(rows)
        self._decode.append(self.count(made) / len(made))
        self._counts.append(chosen)
        if domain is not None:
            self._domain.append(domain)
        return ""

    def count(self, rows: NDArray[Any]) -> Ints:
        """Return how often tokens chose each expert in kept layers, int64 (L, E); the first request has said which."""
        if self._shape is None or self._layers is None:
            raise InputError("no request has been taken down yet; add one first")
        return count_rows(rows[:, self._layers], self._shape)

    def capture(self) -> Capture:
        """Return what was taken down.

        Raises
        ------
        InputError
            If that is nothing.
        """
        if not self._counts or self._shape is None:
            reasons = ", ".join(f"{number} {reason}" for reason, number in self.left_out.items()) or "none was added"
            raise InputError(
                f"no request was taken down ({reasons}); let the engine tell routed experts of whole prompts"
            )
        return Capture(
            self.model,
            self._shape.experts_per_token,
            np.stack(self._counts),
            np.stack(self._decode),
            domain=np.array(self._domain, dtype=np.int64) if self._domain else None,
            source=self.source,
        )

    def _begin(self, rows: NDArray[Any], made: NDArray[Any]) -> None:
        if self._layers is None:
            both = np.concatenate([rows, made])
            has_experts = (both != 0).any(axis=(0, 2))
            if not has_experts.any():
                raise InputError("all rows are 0; expected the numbers of experts that tokens chose")
            self._layers = np.flatnonzero(has_experts)
        kept = check_layers(self._layers, rows.shape[1])
        self._layers = kept
        self._shape = MoEShape(kept.size, self._num_experts, rows.shape[2])


def count_rows(rows: ArrayLike, shape: MoEShape) -> Ints:
    """Return how often the tokens of `rows`, int (n, L, k), chose each expert, int64 (L, E)."""
    experts = check_choices(rows, shape)
    L, E = shape.num_layers, shape.num_experts
    cells = experts + E * np.arange(L)[:, np.newaxis]
    return np.bincount(cells.ravel(), minlength=L * E).reshape(L, E).astype(np.int64)


def _lacking(rows: NDArray[Any], made: NDArray[Any]) -> str:
    if not len(rows):
        return "without rows of the prompt"
    if not len(made):
        return "without a generated token"
    if rows.min() < 0 or made.min() < 0:
        return "with tokens whose experts are not known"
    return ""
