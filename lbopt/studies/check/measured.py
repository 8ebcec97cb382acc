"""The function that tasks of a check run: one regime of one claim."""

from __future__ import annotations

from typing import Any

from lbopt.theory.ledger import find_claim


def measured(*, claim: str, regime: dict[str, Any], version: str, seed: int) -> list[dict[str, Any]]:
    """Return the findings as plain values; `version` is there for the key alone.

    Parameters
    ----------
    version
        Version of the code; it is part of the key of the task and not used otherwise.
    """
    found = find_claim(claim)
    slots = {**found.parameters(), **regime}.get("B")
    return [{**finding.to_dict(), "B": slots} for finding in found.measure(**regime, seed=seed)]
