"""JSON from outside: how deep and how wide it is, seen without building any of it, and the little that is read.

A few MiB of brackets become millions of objects wherever they are built, here or in an engine, which answers nothing
meanwhile. Brackets are counted where they stand outside of texts, block by block, so that no step holds the interpreter
for long.

Of an answer that does not stream its usage is read, and what a prefiller hands over. The rest may be anything, and is
not built.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, Raw, UnsetType

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


#: Bytes of an answer that are looked through.
_LARGEST = 2**24


class _Answer(msgspec.Struct, gc=False):
    usage: Raw | UnsetType = UNSET
    kv_transfer_params: Raw | UnsetType = UNSET


_read = msgspec.json.Decoder(_Answer).decode


def read_answer(data: bytes) -> dict[str, Any]:
    """Return the fields `usage` and `kv_transfer_params` of an answer, where it has them.

    Raises
    ------
    ValueError
        Where it is no JSON object, or too large.
    """
    if len(data) > _LARGEST:
        raise ValueError(f"more than {_LARGEST} bytes")
    try:
        answer = _read(data)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(str(error)) from None
    fields = {"usage": answer.usage, "kv_transfer_params": answer.kv_transfer_params}
    return {name: parsed(bytes(raw)) for name, raw in fields.items() if isinstance(raw, Raw)}
