"""How each problem of the library is made: equal on every machine, from packaged data and seeds alone.

A recipe module has `RECIPES`: name of an entry -> function without arguments that returns its `Draft`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tools.library.archive import Draft
from tools.library.recipes import adversarial, cold, hard, hard_steps, partition, steady, tiny

#: Class -> the recipes of its entries, in the order of the library.
RECIPES: Mapping[str, Mapping[str, Callable[[], Draft]]] = {
    "tiny": tiny.RECIPES,
    "steady": steady.RECIPES,
    "cold": cold.RECIPES,
    "partition": partition.RECIPES,
    "hard": {**hard.RECIPES, **hard_steps.RECIPES},
    "adversarial": adversarial.RECIPES,
}

__all__ = ["RECIPES"]
