"""What an engine says of tokens, believed where it can be true: a count beyond any context is no count."""

from __future__ import annotations

from typing import Any, NamedTuple

#: Tokens of one prompt or answer. No context is longer, and sums over all slots of a fleet stay far inside int64.
MOST_TOKENS = 2**24


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
