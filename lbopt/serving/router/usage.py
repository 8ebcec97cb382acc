"""What an engine says of tokens, believed where it can be true: a count beyond any context is no count.

Of an answer that does not stream nothing but that, and what a prefiller hands over, is built: the rest may be anything.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
from msgspec import UNSET, Raw, UnsetType

from lbopt.serving.router.shape import parsed

#: Bytes of an answer that are looked through.
_LARGEST = 2**24
#: Tokens of one prompt or answer. No context is longer, and sums over all slots of a fleet stay far inside int64.
MOST_TOKENS = 2**24


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


class Usage(NamedTuple):
    """Tokens of the prompt and of the answer; None where the engine says none that can be."""

    prompt: int | None
    made: int | None


def count_of(value: Any) -> int | None:
    """Return a number of tokens, 0 to `MOST_TOKENS`; None where it is none."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def usage_of(answer: Any) -> Usage:
    """Return what an answer or an event, parsed, says under `usage`."""
    usage = answer.get("usage") if isinstance(answer, dict) else None
    if not isinstance(usage, dict):
        return Usage(None, None)
    return Usage(count_of(usage.get("prompt_tokens")), count_of(usage.get("completion_tokens")))
