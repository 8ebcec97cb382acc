"""A capture: what calibration requests did to the experts of one model, in a file.

It is an .npz archive with `counts` and `decode`, (N, L, E) each, optionally `gate_prob` and `gate_logit` of that shape
and `domain`, (N,), and a JSON text `about` with the format's name and version, the model's name and experts_per_token,
and optionally the engine that they are from (`source`), which readers before it leave aside.
Counts may be of any integer type, activations of any real one: a capture of 1,000 requests is some tens of megabytes.

Two laws hold of every capture and are checked: each layer of a request's counts sums to k times its prompt tokens, the
same for all layers, and each layer of its decode activation sums to k.

A capture grown request by request, from the experts that an engine says each token was routed to.

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

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.locality.archive import Format, member, read_archive, write_archive
from lbopt.locality.signature import check_layers
from lbopt.locality.workload import ExpertActivity, Floats, Ints, MoEShape, check_choices, counted

FORMAT = Format("lbopt-expert-capture", 1, "capture of calibration requests", "lbopt export task")

#: How far a layer's decode activation may be from k in sum: float32 activations of a few hundred experts.
_ROUNDING = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Capture:
    """Requests of one model; arrays are as in `ExpertActivity`, and None where nothing was written down.

    Raises
    ------
    InputError
        If shapes differ, or a request breaks one of the two laws, naming it.
    """

    model: str
    experts_per_token: int
    counts: Ints
    decode: Floats
    gate_prob: Floats | None = None
    gate_logit: Floats | None = None
    domain: Ints | None = None
    source: str = ""

    def __post_init__(self) -> None:
        for name in ("counts", "decode", "gate_prob", "gate_logit", "domain"):
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, np.asarray(given))
        if self.counts.dtype.kind not in "iu":
            raise InputError(f"counts are of type {self.counts.dtype}; expected whole numbers of tokens")
        _check_counts(self.counts, self.experts_per_token)
        for name in ("decode", "gate_prob", "gate_logit"):
            array = getattr(self, name)
            if array is not None and array.shape != self.counts.shape:
                raise InputError(f"{name} is of shape {array.shape}, and counts of {self.counts.shape}: expected one")
            if array is not None and not np.isfinite(array).all():
                r, layer, e = np.argwhere(~np.isfinite(array))[0]
                raise InputError(f"{name} of request {r}, layer {layer}, expert {e} is {array[r, layer, e]}")
        _check_decode(self.decode, self.experts_per_token)
        if self.domain is not None and self.domain.shape != self.counts.shape[:1]:
            raise InputError(f"domain is of shape {self.domain.shape}; expected one for each of {len(self.counts)}")

    @property
    def shape(self) -> MoEShape:
        """Layers, experts and choices a token of the model."""
        return MoEShape(self.counts.shape[1], self.counts.shape[2], self.experts_per_token)


def capture_of(activity: ExpertActivity, experts_per_token: int, model: str = "") -> Capture:
    """Return the activity of a synthetic workload as a capture."""
    return Capture(
        model,
        experts_per_token,
        activity.counts,
        activity.decode,
        activity.gate_prob,
        activity.gate_logit,
        activity.domain,
    )


def write_capture(capture: Capture, path: str | os.PathLike[str]) -> None:
    """Write a capture to `path`, whole or not at all; what was there is replaced."""
    arrays: dict[str, NDArray[Any]] = {"counts": _narrow(capture.counts)}
    for name in ("decode", "gate_prob", "gate_logit"):
        if (array := getattr(capture, name)) is not None:
            arrays[name] = _compact(array)
    if capture.domain is not None:
        arrays["domain"] = _narrow(capture.domain)
    about = {"model": capture.model, "experts_per_token": capture.experts_per_token}
    if capture.source:
        about["source"] = capture.source
    write_archive(Path(path), FORMAT, about, arrays)


def read_capture(path: str | os.PathLike[str]) -> Capture:
    """Read a capture.

    Raises
    ------
    InputError
        If there is no such file, it is no capture, of a newer version or damaged, or breaks a law of captures.
    """
    about, arrays = read_archive(Path(path), FORMAT)
    where = f"capture '{path}'"
    counts = member(arrays, "counts", "iu", 3, where)
    reals = {
        name: member(arrays, name, "iuf", 3, where).astype(np.float64, copy=False)
        for name in ("decode", "gate_prob", "gate_logit")
        if name == "decode" or name in arrays
    }
    domain = member(arrays, "domain", "iu", 1, where).astype(np.int64) if "domain" in arrays else None
    model, k = about.get("model"), about.get("experts_per_token")
    if not isinstance(model, str) or not isinstance(k, int) or isinstance(k, bool):
        raise InputError(f"{where} does not say its model and experts_per_token; write it with write_capture")
    try:
        source = str(about.get("source") or "")
        return Capture(model, k, counts.astype(np.int64), domain=domain, source=source, **reals)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def _narrow(values: Ints) -> NDArray[Any]:
    """Return whole numbers in the narrowest type that holds them."""
    low, high = (int(values.min()), int(values.max())) if values.size else (0, 0)
    return values.astype(np.promote_types(np.min_scalar_type(low), np.min_scalar_type(high)))


def _compact(values: Floats) -> NDArray[Any]:
    """Return reals in half the room where that loses nothing: activations counted over 64 steps are such."""
    short = values.astype(np.float32)
    return short if np.array_equal(short, values) else values


def _check_counts(counts: Ints, k: int) -> None:
    if counts.ndim != 3 or not counts.size:
        raise InputError(f"counts are of shape {counts.shape}; expected (requests, layers, experts), none of them 0")
    MoEShape(counts.shape[1], counts.shape[2], k)
    if counts.min() < 0:
        r, layer, e = np.argwhere(counts < 0)[0]
        raise InputError(f"counts of request {r}, layer {layer}, expert {e} are {counts[r, layer, e]}; expected >= 0")
    sums = counts.sum(axis=2)
    wrong = np.argwhere((sums != sums[:, :1]) | (sums % k != 0))
    if wrong.size:
        r, layer = wrong[0]
        raise InputError(
            f"counts of request {r} sum to {sums[r, layer]} at layer {layer} and to {sums[r, 0]} at layer 0; expected "
            f"{k} experts for each of its prompt tokens at every layer"
        )
    over = np.argwhere(counts > sums[:, :, np.newaxis] // k)
    if over.size:
        r, layer, e = over[0]
        raise InputError(
            f"expert {e} at layer {layer} was chosen {counts[r, layer, e]} times by request {r}, which has "
            f"{sums[r, layer] // k} prompt tokens; expected at most once a token"
        )


def _check_decode(decode: Floats, k: int) -> None:
    outside = np.argwhere((decode < -_ROUNDING) | (decode > 1 + _ROUNDING))
    if outside.size:
        r, layer, e = outside[0]
        raise InputError(
            f"decode of request {r}, layer {layer}, expert {e} is {decode[r, layer, e]:g}; expected 0 to 1"
        )
    sums = decode.sum(axis=2)
    wrong = np.argwhere(np.abs(sums - k) > _ROUNDING * k)
    if wrong.size:
        r, layer = wrong[0]
        raise InputError(
            f"decode of request {r} sums to {sums[r, layer]:g} at layer {layer}; expected {k}, the experts of a token"
        )


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
        whole("num_experts", num_experts, 1)
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
        return counted(check_choices(rows[:, self._layers], self._shape), self._num_experts)

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


def _lacking(rows: NDArray[Any], made: NDArray[Any]) -> str:
    if not len(rows):
        return "without rows of the prompt"
    if not len(made):
        return "without a generated token"
    if rows.min() < 0 or made.min() < 0:
        return "with tokens whose experts are not known"
    return ""
