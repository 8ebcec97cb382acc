"""Choices of a gate: which experts each token of a chunk takes at each layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.locality.gate import Ints, MoEShape


def check_choices(choices: ArrayLike, shape: MoEShape) -> Ints:
    """Return choices as int64 (n, L, k), n >= 1; refuse those that are not of the model, and one expert twice."""
    experts = np.asarray(choices)
    L, E, k = shape.num_layers, shape.num_experts, shape.experts_per_token
    if experts.ndim != 3 or experts.shape[1:] != (L, k) or len(experts) == 0 or experts.dtype.kind not in "iu":
        raise InputError(
            f"choices are of shape {experts.shape} and type {experts.dtype}; expected whole numbers (n, {L}, {k})"
        )
    if experts.min() < 0 or experts.max() >= E:
        wrong = experts.min() if experts.min() < 0 else experts.max()
        raise InputError(f"a token chose expert {wrong}; expected 0 to {E - 1}")
    ordered = np.sort(experts, axis=2)
    if (ordered[:, :, 1:] == ordered[:, :, :-1]).any():
        raise InputError("a token chose one expert twice in a layer; expected different ones")
    return experts.astype(np.int64, copy=False)
