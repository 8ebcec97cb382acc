"""What tables and pictures of a staggering study say alike: names of rules, shares, intervals, changes."""

from __future__ import annotations

from lbopt import numbers
from lbopt.statistics import MeanOverSeeds
from lbopt.studies.staggered import StaggeredOutcome
from lbopt.studies.staggered.rows import Key

#: Contenders whose names are too long for the head of a column.
_SHORT = {
    "staggered-bypass": "bypass",
    "staggered-free": "free",
    "staggered-whole": "whole",
    "staggered-bypass-whole": "bypass, whole",
}
#: Said where the short names are shown first.
RULES_SAID = (
    "Pooled: the first free instance takes what waits. Staggered: one dispatch in T/N, as printed, instances in turn; "
    "bypass: an idle instance is served before; free: the next is who has been free the longest; whole: that too, and "
    "what would exceed the chunk is kept back."
)

AHEAD_SAID = " Ahead: sent before the predicted end of a pass; 2, 10: with predictions so many percent off."

percent = numbers.fixed(1)


def share(value: Key) -> str:
    """Return a share as whole percent."""
    return numbers.fixed(0, 100, " %")(float(value))


def short(contender: str) -> str:
    """Return the name of a contender as heads of columns have it."""
    return _SHORT.get(contender, contender)


def interval_said(outcome: StaggeredOutcome, item: str) -> str:
    """Return what ± is in the tables of an item, or that there is none."""
    seeds = len(outcome.rows[item])
    return "One seed: no interval." if seeds < 2 else f"± is half of a 95 % interval over {seeds} seeds."


def mean_of(outcome: StaggeredOutcome, item: str, quantity: str, keys: dict[str, Key]) -> MeanOverSeeds | None:
    """Return a quantity of the row with these keys, over seeds.

    Parameters
    ----------
    outcome
        The study.
    item
        The item.
    quantity
        Name of the value.
    keys
        Values of the columns that select the row.
    """
    return outcome.mean(item, lambda rows: rows.value(quantity, **keys))


def change_of(
    outcome: StaggeredOutcome, item: str, quantity: str, base: str, keys: dict[str, Key]
) -> MeanOverSeeds | None:
    """Return the change in % against the contender `base`, paired by seeds.

    Parameters
    ----------
    outcome
        The study.
    item
        The item.
    quantity
        Name of the value.
    base
        The contender that it is compared with.
    keys
        Values of the columns that select the row.
    """
    return outcome.mean(item, lambda rows: rows.change(quantity, base, **keys))


def values_of(outcome: StaggeredOutcome, item: str, key: str) -> list[Key]:
    """Return the values that a key takes in the rows of an item, in their order, each once."""
    by_seed = outcome.rows.get(item, {}).values()
    return list(dict.fromkeys(keys[key] for rows in by_seed for keys, _ in rows if key in keys))
