"""What is read of an answer that does not stream: its usage, and what a prefiller hands over. The rest may be anything.

Nothing else of it is built.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

from lbopt.serving.router.shape import parsed

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
