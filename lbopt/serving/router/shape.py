"""How deep and how wide a JSON text is, seen without building any of it.

A few MiB of brackets become millions of objects wherever they are built, here or in an engine, which answers nobody
meanwhile. Brackets are counted where they stand outside of texts, block by block, so that no step holds the interpreter
for long.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from lbopt.exceptions import InputError

#: Arrays and objects within each other; arrays, objects and fields in all. What is beyond them is no request.
DEEPEST = 128
WIDEST = 2**17

_BLOCK = 2**16
#: Bytes of a text that is built without a look at its shape.
_SMALL = 2**16
_STEPS = np.zeros(256, dtype=np.int8)
_STEPS[list(b"[{")] = 1
_STEPS[list(b"]}")] = -1
_COUNTED = np.zeros(256, dtype=bool)
_COUNTED[list(b"[{:")] = True


def refuse_shape(text: bytes) -> None:
    """Raise where a JSON text is too deep or too wide.

    Parameters
    ----------
    text
        Valid JSON.

    Raises
    ------
    InputError
        With the limit.
    """
    if sum(map(text.count, (b"[", b"{", b":"))) <= DEEPEST:
        return  # not even if each stood in the one before
    depth = width = begin = 0
    in_text = False
    while begin < len(text):
        part = text[begin : begin + _BLOCK]
        begin += len(part)
        if (len(part) - len(part.rstrip(b"\\"))) % 2:  # what it escapes is in the next block
            part, begin = part[:-1], begin + 1
        if b"\\" in part:
            part = part.replace(b"\\\\", b"").replace(b'\\"', b"")
        signs = np.frombuffer(part, dtype=np.uint8)
        is_outside = (np.cumsum(signs == ord('"'), dtype=np.int32) + in_text) % 2 == 0
        depths = depth + np.cumsum(np.where(is_outside, _STEPS[signs], 0), dtype=np.int32)
        if not len(signs):
            continue
        width += int(np.count_nonzero(_COUNTED[signs] & is_outside))
        if depths.max() > DEEPEST:
            raise InputError(f"the body is nested deeper than {DEEPEST}; expected arrays and objects in few levels")
        if width > WIDEST:
            raise InputError(f"the body has more than {WIDEST:,} arrays, objects and fields")
        depth, in_text = int(depths[-1]), not is_outside[-1]


def parsed(text: bytes) -> Any:
    """Return what a JSON text of an engine says.

    Raises
    ------
    ValueError
        Where it is none, too deep or too wide.
    RecursionError
        Where a short one is too deep.
    """
    if len(text) > _SMALL:
        refuse_shape(text)
    return json.loads(text)
