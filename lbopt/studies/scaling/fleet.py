"""What theory computes for a fleet, without running anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

from lbopt.theory.laws.fcfs_imbalance import improvement_floor
from lbopt.theory.laws.leader_drift import levelled_imbalance
from lbopt.theory.laws.load_law import load_law
from lbopt.theory.laws.onset import onset
from lbopt.theory.laws.prompt_law import PromptLaw
from lbopt.theory.laws.slot_law import slot_law


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTheory:
    """What is known of a fleet without running anything, in tokens.

    Parameters
    ----------
    G, B, p, s_max
        The fleet and its requests.
    fcfs
        Expected imbalance of FCFS, exactly.
    levelled
        The imbalance of the exact rule below the onset, by the law of `lbopt.theory.laws.leader_drift`.
    floor
        Least improvement that Theorem 2 gives in its sharp form, where it speaks.
    onset
        B*, slots.
    """

    G: int
    B: int
    p: float
    s_max: int
    fcfs: float
    levelled: float
    floor: float
    onset: float

    @classmethod
    @cache
    def of(cls, G: int, B: int, p: float, s_max: int) -> FleetTheory:
        """Compute it.

        Parameters
        ----------
        G
            Number of workers.
        B
            Slots of a worker.
        p
            Probability that a request ends in a step.
        s_max
            Largest prompt, tokens.
        """
        law = PromptLaw.uniform(s_max)
        slot = slot_law(law, p)
        return cls(
            G=G,
            B=B,
            p=p,
            s_max=s_max,
            fcfs=load_law(slot, B).expected_imbalance(G),
            levelled=levelled_imbalance(G, p, s_max),
            floor=improvement_floor(G, B, math.sqrt(slot.variance), s_max),
            onset=onset(G, p, law),
        )
