"""Problems found by search, written down: small, and bad for a rule, a bound or the exact search.

`adversarial.json` holds them with the search that found each; ``python -m tools.library.adversarial`` finds
them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from lbopt.instances.library import Origin
from lbopt.model import StepProblem
from tools.library.archive import Draft

_AGAINST = {
    "br-0": "the rule BR-0 leaves {reached:,} tokens idle.",
    "max-min": "max-min, the oldest requests largest first to the lightest worker, leaves {reached:,} tokens idle.",
    "largest-first": "the largest requests of the pool, largest first to the lightest worker, leave {reached:,} idle.",
    "greedy": "the best of six greedy assignments leaves {reached:,} tokens idle.",
    "elementary-bound": "closed-form reasoning proves no more than {reached:,} tokens.",
    "pattern-bound": "the linear bound over patterns, at the root of the exact search, is {reached:,} tokens.",
    "effort": "long for the exact search in its size: about {reached:,} units of work.",
}


def _draft(name: str, row: dict[str, Any]) -> Draft:
    shape = {key: row[key] for key in ("workers", "requests", "most_slots", "largest", "trials", "reached")}
    return Draft(
        name=name,
        kind="adversarial",
        explanation="Found by search: " + _AGAINST[row["against"]].format(reached=row["reached"]),
        origin=Origin(
            recipe="adversarial",
            source=f"hill climbing against {row['against']}, tools.library.adversarial",
            seed=row["seed"],
            parameters={"against": row["against"], **shape},
        ),
        problem=StepProblem.now(loads=row["loads"], slots=row["slots"], sizes=row["sizes"]),
    )


def _recipes() -> dict[str, Callable[[], Draft]]:
    rows = json.loads(Path(__file__).with_name("adversarial.json").read_text(encoding="utf-8"))
    named = {f"adversarial-{row['against']}-g{row['workers']}-n{row['requests']}": row for row in rows}
    return {name: partial(_draft, name, row) for name, row in named.items()}


RECIPES = _recipes()
