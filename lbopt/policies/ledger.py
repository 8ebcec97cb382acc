"""The ledger of a policy that solves: what each decision cost, what was proved about it, and how long it took."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

#: How sure a decision is. "proved": elementary reasoning, or a checked proof, says that it is optimal. "claimed": a
#: solver says so. "open": the bound is below its cost. "searched": lbopt's own search says so, and a policy, which has
#: milliseconds, does not check that. The places of these names are in files.
STANDINGS = ("proved", "claimed", "open", "searched")


@dataclass(slots=True)
class Ledger:
    """One line per decision; `seconds` stay out of what is written to files that a rerun has to reproduce."""

    step: list[int] = field(default_factory=list)
    imbalance: list[int] = field(default_factory=list)
    bound: list[int] = field(default_factory=list)
    standing: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.step)

    def note(self, *, step: int, imbalance: int, bound: int, standing: str, seconds: float) -> None:
        """Add a decision.

        Parameters
        ----------
        step
            Step at which the decision was taken.
        imbalance, bound
            Its imbalance and the bound, tokens.
        standing
            A name from `STANDINGS`.
        seconds
            Wall time.
        """
        self.step.append(step)
        self.imbalance.append(imbalance)
        self.bound.append(bound)
        self.standing.append(STANDINGS.index(standing))
        self.seconds.append(seconds)

    def columns(self, since: int = 0) -> dict[str, NDArray[np.int64]]:
        """Return step, imbalance, bound and standing (place in `STANDINGS`) of the decisions from `since` on."""
        return {
            name: np.array(getattr(self, name)[since:], dtype=np.int64)
            for name in ("step", "imbalance", "bound", "standing")
        }

    def tally(self, since: int = 0) -> Counter[str]:
        """Return how many decisions from `since` on are of each standing."""
        return Counter(STANDINGS[code] for code in self.standing[since:])
