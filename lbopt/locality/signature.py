"""Expert signatures: which experts a request's prompt used, as one unit vector.

The routing counts of a request, int (L, E), are transformed cell by cell, layers outside the mask are left out, and
what remains is flattened and divided by its length. The transform that ELDR chose weighs counts by

    w(l, e) = log((N + 1) / (df(l, e) + 1)),

df being how many of the N calibration requests used the expert at all: an expert that every request uses weighs 0.
A request without mass in the mask has the signature 0: its similarity to every signature is 0, also to itself.

Source: ELDR (arXiv 2607.00466), section on expert signatures; the rule for zero vectors is ours.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lbopt.exceptions import InputError
from lbopt.locality.gate import Floats, Ints
from lbopt.spec import unknown

#: The transforms, and which measurement each is made of.
TRANSFORMS = {
    "count": "counts",
    "count-idf": "counts",
    "sqrt-count": "counts",
    "binary": "counts",
    "gate-prob": "gate_prob",
    "gate-logit": "gate_logit",
}


@dataclass(frozen=True, slots=True)
class IdfTable:
    """How telling each expert is.

    Parameters
    ----------
    weights
        float64 (L, E), natural logarithms from 0 to log(N + 1).
    num_requests
        N, calibration requests that it was fitted on.
    """

    weights: Floats
    num_requests: int


def fit_idf(counts: ArrayLike) -> IdfTable:
    """Return the IDF table of calibration `counts`, int (N, L, E)."""
    checked = check_counts(counts)
    N = checked.shape[0]
    df = np.count_nonzero(checked, axis=0)
    return IdfTable(np.log((N + 1) / (df + 1)), N)


def transformed(transform: str, measured: ArrayLike, idf: IdfTable | None = None) -> Floats:
    """Return the cells of signatures, float64 (N, L, E), by one of `TRANSFORMS`.

    Parameters
    ----------
    measured
        (N, L, E): the counts, or for 'gate-prob' and 'gate-logit' the sum over prompt tokens of the gate's softmax or
        raw score. Only raw scores may be negative; cosines of their signatures may be too.
    idf
        The weights; for 'count-idf' alone, which needs them.

    Raises
    ------
    InputError
        if the name is unknown, the array is of another shape, negative or not finite, or weights are missing.
    """
    if transform not in TRANSFORMS:
        raise unknown("transform", transform, TRANSFORMS)
    if TRANSFORMS[transform] == "counts":
        counts = check_counts(measured)
        if transform == "sqrt-count":
            return np.sqrt(counts)
        if transform == "binary":
            return (counts > 0).astype(np.float64)
        if transform == "count":
            return counts.astype(np.float64)
        if idf is None:
            raise InputError("transform 'count-idf' needs the weights of calibration requests; fit them with fit_idf")
        if idf.weights.shape != counts.shape[1:]:
            raise InputError(
                f"the IDF table is of {idf.weights.shape} layers and experts, the counts of {counts.shape[1:]}; "
                "expected those of one model"
            )
        weighed: Floats = counts * idf.weights
        return weighed
    cells = np.array(measured, dtype=np.float64)
    _check_cube("gate scores", cells)
    if not np.isfinite(cells).all():
        raise InputError("the gate scores hold NaN or infinite values; expected finite numbers")
    if transform == "gate-prob" and (cells < 0).any():
        raise InputError(f"a sum of gate probabilities is {cells.min():g}; expected 0 or more")
    return cells


def signatures(cells: ArrayLike, layers: ArrayLike | None = None) -> Floats:
    """Return unit rows, float64 (N, N* * E), of transformed `cells`, (N, L, E); a row without mass is 0.

    Parameters
    ----------
    layers
        int (N*,), the kept layers, in the order in which they are laid side by side; None keeps all.
    """
    cube = np.asarray(cells, dtype=np.float64)
    _check_cube("cells", cube)
    kept = np.arange(cube.shape[1]) if layers is None else check_layers(layers, cube.shape[1])
    rows = cube[:, kept].reshape(cube.shape[0], -1)
    length = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
    unit: Floats = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
    return unit


def check_layers(layers: ArrayLike, num_layers: int) -> NDArray[np.intp]:
    """Return the kept layers as indices; refuse none at all, repeated ones, and those that the model does not have."""
    kept = np.asarray(layers)
    if kept.ndim != 1 or kept.size == 0:
        raise InputError("the layer mask keeps no layer; expected at least one")
    if kept.dtype.kind not in "iu":
        raise InputError(f"the layer mask is of type {kept.dtype}; expected the numbers of the kept layers")
    if not 0 <= kept.min() <= kept.max() < num_layers or np.unique(kept).size != kept.size:
        raise InputError(f"the layer mask is {kept.tolist()}; expected different numbers from 0 to {num_layers - 1}")
    return kept.astype(np.intp)


def check_counts(counts: ArrayLike) -> Ints:
    """Return routing counts as int64 (N, L, E); refuse another shape, fractions and negative ones."""
    array = np.asarray(counts)
    _check_cube("counts", array)
    if array.dtype.kind not in "iu":
        raise InputError(f"counts are of type {array.dtype}; expected whole numbers of tokens")
    if array.min() < 0:
        raise InputError(f"a count of tokens is {array.min()}; expected 0 or more")
    return array.astype(np.int64, copy=False)


def _check_cube(name: str, array: NDArray[np.generic]) -> None:
    if array.ndim != 3 or array.size == 0:
        raise InputError(f"{name} are of shape {array.shape}; expected (requests, layers, experts), none of them 0")
