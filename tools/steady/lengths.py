"""Records that no trace holds: prompts drawn from a law or a mixture of laws, outputs geometric with a given mean.

They let classes of states reach where published traces do not: heavy tails with short outputs, a few huge requests
among small ones, a dozen repeated sizes. The laws are data, in `state_sets.toml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import Trace
from lbopt.model.integers import IntArray

#: Records that are drawn, and the seed they are drawn with.
RECORDS, SEED = 20_000, 20261124


def drawn_records(name: str, table: Mapping[str, Any]) -> Trace:
    """Return records with the lengths that a table describes; equal tables give equal records.

    Parameters
    ----------
    name
        What to call them.
    table
        `prompts`, a list of laws with their `share` (1 where it is left out), and `output`, the mean of the outputs,
        tokens. A law is "lognormal" (`mean` and `deviation` of the logarithm), "pareto" (`shape`, from `low` on) or
        "uniform", each clipped to `low` … `high`, or "choice" among `sizes`.
    """
    rng = np.random.default_rng(SEED)
    laws = table["prompts"]
    share = np.array([law.get("share", 1.0) for law in laws])
    which = rng.choice(len(laws), RECORDS, p=share / share.sum())
    drawn = np.stack([_draw(rng, law) for law in laws])
    return Trace(prompt=drawn[which, np.arange(RECORDS)], output=rng.geometric(1 / table["output"], RECORDS), name=name)


def _draw(rng: np.random.Generator, law: Mapping[str, Any]) -> IntArray:
    match law["law"]:
        case "lognormal":
            found = rng.lognormal(law["mean"], law["deviation"], RECORDS)
        case "pareto":
            found = law["low"] * (1 + rng.pareto(law["shape"], RECORDS))
        case "uniform":
            return rng.integers(law["low"], law["high"] + 1, RECORDS)
        case "choice":
            return rng.choice(np.array(law["sizes"], dtype=np.int64), RECORDS)
        case other:
            raise InputError(f"there is no law {other!r} of lengths; there are lognormal, pareto, uniform and choice")
    return np.clip(np.rint(found), law["low"], law["high"]).astype(np.int64)
