"""How long an answer is, where the client does not insist on `max_tokens`: drawn by a hash of the prompt.

Equal prompts have equal lengths, whichever worker answers, in whichever order. Names: ``geometric:mean=256``, the
geometric law on 1, 2, ...; ``max-tokens``, always the limit; or a trace or family, whose outputs are drawn from.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from lbopt.exceptions import InputError
from lbopt.spec import options_of

#: From the digest of a prompt to tokens; None = as many as the client allows.
Lengths = Callable[[int], int | None]

#: Requests of a family whose outputs are drawn from.
_DRAWS = 4096


def geometric(mean: float = 256.0) -> Lengths:
    """Return the geometric law: an answer ends after each token with the same chance."""
    if not mean >= 1 or math.isinf(mean):
        raise InputError(f"output lengths 'geometric': mean is {mean:g}; expected at least 1 token")
    stay = math.log1p(-1 / mean) if mean > 1 else -math.inf

    def draw(digest: int) -> int:
        uniform = (digest + 0.5) / 2**64
        return 1 + int(math.log(uniform) / stay)

    return draw


def _limit(_digest: int) -> None:
    """Draw nothing."""


def make_lengths(text: str) -> Lengths:
    """Return the law that `text` names."""
    name, _, rest = text.partition(":")
    if name == "max-tokens":
        return _limit
    if name == "geometric":
        return geometric(**options_of("output lengths", name, rest, geometric))
    from lbopt.instances import families, open_trace

    trace = open_trace(text, count=_DRAWS, seed=0) if text in families.ALL_NAMES else open_trace(text)
    outputs = trace.output.tolist()
    return lambda digest: int(outputs[digest % len(outputs)])
