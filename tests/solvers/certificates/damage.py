"""Damage to the JSON values of a certificate, whatever they mean."""

import random
from typing import Any


def damaged(value: Any, rng: random.Random) -> Any:
    """Change one number, or drop, double or swap entries, somewhere inside nested lists and objects."""
    if rng.random() < 0.05:
        return rng.choice([None, "1", 1.5, [], {}, True, 2**200])
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice([value + 1, value - 1, 2 * value, -value, 0, value + rng.randint(-50, 50)])
    if value is None or isinstance(value, str | float):
        return 0
    if isinstance(value, dict):
        if not value:
            return {"empty": True}
        key = rng.choice(sorted(value))
        return {**value, key: damaged(value[key], rng)}
    if not value:
        return [0]
    at = rng.randrange(len(value))
    kind = rng.random()
    if kind < 0.15:
        return value[:at] + value[at + 1 :]
    if kind < 0.3:
        return [*value[:at], value[at], *value[at:]]
    if kind < 0.4:
        other = rng.randrange(len(value))
        swapped = list(value)
        swapped[at], swapped[other] = swapped[other], swapped[at]
        return swapped
    return [*value[:at], damaged(value[at], rng), *value[at + 1 :]]
