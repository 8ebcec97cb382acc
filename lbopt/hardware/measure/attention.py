"""What is timed: one layer of attention in decode, one query token a request over the request's resident KV.

Two kinds. *Latent*: all heads read one vector per token, whose first part serves as value too, as in DeepSeek-V3 after
absorption (512 latent and 64 rotary values, 128 heads). *Grouped-query*: a group of heads shares the key and the value
of one KV head, as in Qwen3 and Llama 3. Both read every resident value once, which is why time should be linear in
resident tokens; their ratios of arithmetic to bytes differ by an order of magnitude.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lbopt.exceptions import InputError
from lbopt.spec import unknown


@dataclass(frozen=True, slots=True)
class AttentionShape:
    """The sizes of one attention layer; with `latent`, values are the first `value_dim` entries of the keys."""

    name: str
    title: str
    heads: int
    kv_heads: int
    key_dim: int
    value_dim: int
    latent: bool

    @property
    def values_per_token(self) -> int:
        """Values that a resident token keeps in one layer."""
        return self.kv_heads * (self.key_dim if self.latent else self.key_dim + self.value_dim)

    @property
    def flops_per_token(self) -> int:
        """Floating-point operations per resident token and query token: two products, two operations each."""
        return 2 * self.heads * (self.key_dim + self.value_dim)


#: By the model that has such a layer; the numbers are those of its public configuration.
SHAPES: dict[str, AttentionShape] = {
    shape.name: shape
    for shape in (
        AttentionShape("deepseek-v3", "latent, 576 values, 128 heads", 128, 1, 576, 512, True),
        AttentionShape("qwen3-30b-a3b", "grouped, 4 KV heads of 128, 32 heads", 32, 4, 128, 128, False),
        AttentionShape("llama-3-70b", "grouped, 8 KV heads of 128, 64 heads", 64, 8, 128, 128, False),
    )
}
#: Tokens of a block: long contexts are whole blocks, which kernels take side by side without a copy.
BLOCK = 2048
DEFAULT_SHAPES = ("deepseek-v3", "qwen3-30b-a3b")


def attention_shape(name: str) -> AttentionShape:
    """Return the shape of that name."""
    if name not in SHAPES:
        raise unknown("attention", name, SHAPES)
    return SHAPES[name]


@dataclass(frozen=True, slots=True)
class Point:
    """A place of the grid: `batch` requests of `context` resident tokens each."""

    batch: int
    context: int

    @property
    def tokens(self) -> int:
        """Resident tokens of the whole batch."""
        return self.batch * self.context


def grid(least: int, most: int, points: int, batches: Sequence[int]) -> list[Point]:
    """Return `points` resident totals in geometric steps from `least` to `most` for every batch size.

    A total is rounded to a multiple of its batch, long contexts down to whole blocks; totals that become equal by that
    are taken once.

    Parameters
    ----------
    least, most
        Smallest and largest resident total, tokens.
    points
        Totals in geometric steps.
    batches
        Batch sizes, requests.
    """
    if max(batches) > least:
        raise InputError(f"batch {max(batches)} has more requests than the least number of tokens, {least}")
    totals = np.geomspace(least, most, points)
    return [
        Point(batch, context)
        for batch in sorted(set(batches))
        for context in sorted({whole_blocks(int(total)) for total in np.floor(totals / batch + 0.5)})
        if batch * context <= most
    ]


def whole_blocks(context: int, nearest: bool = False) -> int:
    """Return a context of at least a token; one of 8 blocks or more in whole blocks, rounded down or to the nearest."""
    if context < 8 * BLOCK:
        return max(1, context)
    return (context + (BLOCK // 2 if nearest else 0)) // BLOCK * BLOCK


def split(load: int, batch: int) -> tuple[int, ...]:
    """Return the contexts of `batch` requests that hold `load` tokens together, as equal as integers allow."""
    base, more = divmod(load, batch)
    return tuple(base + 1 if place < more else base for place in range(batch))
