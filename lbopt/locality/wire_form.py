"""A request's expert counts as one word of text, for a header or a field of JSON.

Base64 of a zlib stream of 16-bit counts, least byte first, layer by layer: of all layers of the model, or of those that
the routing table keeps, in its order. Which of the two it is, its length says. Counts that do not fit are halved until
they do, those above 0 staying so: cosines do not depend on the scale. A prompt of 256 tokens through 48 layers of 128
experts makes some 9 kB, its 21 kept layers some 4 kB.
"""

from __future__ import annotations

import base64
import binascii
import zlib

import numpy as np
from numpy.typing import ArrayLike

from lbopt.exceptions import InputError
from lbopt.locality.workload import Ints, MoEShape, counted

_LARGEST = 2**16 - 1


def counts_as_text(counts: ArrayLike, layers: ArrayLike | None = None) -> str:
    """Return the text of one request's counts.

    Parameters
    ----------
    counts
        int (L, E), prompt tokens that chose each expert.
    layers
        int (N*,), the layers to tell, as of a routing table; None tells all.

    Raises
    ------
    InputError
        If counts are not whole numbers of 0 or more.
    """
    told = np.asarray(counts)
    if told.ndim != 2 or told.dtype.kind not in "iu" or (told.size and told.min() < 0):
        raise InputError(f"counts are of shape {told.shape} and type {told.dtype}; expected whole numbers >= 0, (L, E)")
    if layers is not None:
        told = told[np.asarray(layers)]
    told = told.astype(np.int64)
    while told.size and told.max() > _LARGEST:
        told = (told + 1) // 2  # 1 stays 1
    return base64.b64encode(zlib.compress(told.astype("<u2").tobytes())).decode("ascii")


def rows_as_text(rows: ArrayLike, num_experts: int) -> str:
    """Return the text of the counts of a prompt whose tokens chose the experts of `rows`, int (n, L, k).

    Layers with zeros alone have no experts, as engines tell it, and are left out.

    Raises
    ------
    InputError
        If a token's experts are not known (-1), or none of `num_experts`.
    """
    experts = np.asarray(rows)
    if experts.ndim != 3 or not experts.size or experts.dtype.kind not in "iu":
        raise InputError(
            f"rows are of shape {experts.shape} and type {experts.dtype}; expected whole numbers, (n, L, k)"
        )
    if experts.min() < 0 or experts.max() >= num_experts:
        raise InputError(
            f"rows hold experts {experts.min()} to {experts.max()}; expected 0 to {num_experts - 1}, all of them known"
        )
    experts = experts[:, (experts != 0).any(axis=(0, 2))]
    return counts_as_text(counted(experts, num_experts))


def counts_of_text(text: str, shape: MoEShape, layers: Ints) -> Ints:
    """Return the counts that a text tells, int64 (L, E); layers that it does not tell are 0.

    Parameters
    ----------
    text
        As `counts_as_text` returns it.
    shape
        The model.
    layers
        int64 (N*,), the layers of the routing table.

    Raises
    ------
    InputError
        If the text is no such text, or of another model.
    """
    L, E = shape.num_layers, shape.num_experts
    sizes = {2 * L * E: np.arange(L), 2 * layers.size * E: layers}
    largest = max(sizes)
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), largest + 1)
    except (binascii.Error, zlib.error, ValueError) as error:
        raise InputError(f"the experts of the request are no text of counts ({error}); see counts_as_text") from None
    if len(data) not in sizes or not stream.eof:
        raise InputError(
            f"the experts of the request are {len(data):,} bytes; expected {2 * L * E:,} for {L} layers of {E} "
            f"experts, or {2 * layers.size * E:,} for the {layers.size} that the table keeps"
        )
    counts = np.zeros((L, E), dtype=np.int64)
    told = sizes[len(data)]
    counts[told] = np.frombuffer(data, dtype="<u2").reshape(told.size, E)
    return counts
