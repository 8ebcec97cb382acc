"""BR-H, BalanceRoute with lookahead (arXiv 2605.06113, algorithm 3); what the paper leaves open is a field."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kernels.arrays import Record, Records, records
from lbopt.kernels.routing import codes
from lbopt.kernels.routing.state import parameters_of
from lbopt.policies.observation import Observation
from lbopt.policies.policy import LARGEST_OPTION, Admission, check_age_bound, check_choice, check_option, named
from lbopt.policies.projection import Projection
from lbopt.predictors import Foresight, check_predictor

WINDOW_ORDERS = ("size", "arrival")
KEYS = ("lexicographic", "product")
SUBSETS = ("enumerate", "bit-set", "all-sums")
UPDATES = ("constant", "profile")

#: Scores stay below 2^62, and loads are seldom beyond 2^27 tokens: what is left goes into the weights.
_SCORE_BITS, _USUAL_BITS = 61, 27


@dataclass(frozen=True, slots=True)
class BrH:
    """BR-H.

    Parameters
    ----------
    horizon
        H, steps. 0 asks for no forecast; with alpha = 1 and beta = G it is BR-0, decision for decision.
    alpha, beta, gamma
        Reward scale (> 0), price of overflow (>= 0), discount in (0, 1]. 48 and 0.9 are the centre of the paper's
        sweep; alpha was never swept.
    stage_switch, window, window_order, key, age_bound
        As in `br_0`.
    subset
        How stage 2 chooses: "enumerate", "bit-set" (two probes) or "all-sums"; they agree on the score.
    growth
        Tokens that a running request is projected to gain a step: 1, or 0 as in the authors' earlier simulator.
    departures
        How running requests leave the projection: "cut", "fractional" or "weighted", see `Projection`.
    boundary
        "alive": a forecast of H or more counts at h = H too; "literal": every request is gone there.
    update
        What an admitted request adds to the projection: "constant", its prompt at every step; "profile": it grows, and
        ends by its own forecast; scores then count it so, too.
    predictor, refresh, gate, floor, hold_anchor
        The forecast, see `Foresight`.
    """

    horizon: int = 80
    alpha: float = 1.0
    beta: float = 48.0
    gamma: float = 0.9
    stage_switch: int = 7
    window: int = 4
    window_order: str = "size"
    key: str = "lexicographic"
    subset: str = "enumerate"
    growth: int = 1
    departures: str = "cut"
    boundary: str = "alive"
    update: str = "constant"
    age_bound: int | None = None
    predictor: str = "survival"
    refresh: int | None = None
    gate: float = 0.5
    floor: float = 1.0
    hold_anchor: bool = False

    def __post_init__(self) -> None:
        _ = self.foresight  # refuses a horizon, gate or floor that cannot be
        if not 0 < self.alpha <= 1e6:
            raise InputError(f"policy 'br-h': alpha is {self.alpha}; expected a positive number up to 1e6")
        if not 0 <= self.beta <= 1e6:
            raise InputError(f"policy 'br-h': beta is {self.beta}; expected 0 to 1e6")
        if not 0 < self.gamma <= 1:
            raise InputError(f"policy 'br-h': gamma is {self.gamma}; expected a discount in (0, 1]")
        check_option("br-h", "stage_switch", self.stage_switch, 0, LARGEST_OPTION)
        check_option("br-h", "window", self.window, 1, codes.LARGEST_WINDOW)
        check_choice("br-h", "window_order", self.window_order, WINDOW_ORDERS)
        check_choice("br-h", "key", self.key, KEYS)
        check_choice("br-h", "subset", self.subset, SUBSETS)
        check_choice("br-h", "update", self.update, UPDATES)
        _ = self._projection  # refuses a growth, departures or boundary that cannot be
        check_predictor(self.predictor)
        check_age_bound("br-h", self.age_bound)

    @property
    def name(self) -> str:
        """What tables call it: the options that differ from their defaults."""
        return named("br-h", self)

    @property
    def admission(self) -> Admission:
        """Pooled: which requests start is half of the decision."""
        return "pooled"

    @property
    def foresight(self) -> Foresight | None:
        """The forecast that it asks for; none without a window."""
        wanted = Foresight(self.horizon, self.predictor, self.refresh, self.gate, self.floor, self.hold_anchor)
        return wanted if self.horizon else None

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Run one scheduling round."""
        projection = self._projection
        projected = projection.of_workers(observation)
        profiles = projection.of_waiting(observation) if self.update == "profile" else observation.sizes[:, None]
        heaviest = int(projected.max()) + int(profiles.sum(axis=0).max())  # a profile can outgrow its prompt by far
        bits = max(_USUAL_BITS, heaviest.bit_length())
        terms = _terms(self.horizon, self.alpha, self.beta, self.gamma, bits).copy()
        from lbopt.kernels.routing.balance_route import balance_route

        choice, free = np.empty(observation.sizes.size, dtype=np.int64), observation.free_slots.copy()
        balance_route(
            *(self._parameters(), terms, projected, free),
            *(observation.waited, observation.sizes, profiles, choice),
        )
        return choice

    @property
    def _projection(self) -> Projection:
        return Projection("br-h", self.horizon, self.growth, self.departures, self.boundary)

    def _parameters(self) -> Record:
        return parameters_of(
            stage_switch=self.stage_switch,
            window_size=self.window,
            window_by_arrival=self.window_order == "arrival",
            key_product=self.key == "product",
            age_bound=-1 if self.age_bound is None else self.age_bound,
            subset=SUBSETS.index(self.subset),
        )


def weights(
    horizon: int, alpha: float, beta: float, gamma: float, bits: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return alpha * gamma^h and beta * gamma^h, int64 (H+1,) each, in the finest units for loads below 2^bits.

    Parameters
    ----------
    alpha, beta, gamma
        Weights of the score and discount of a step, as in `BrH`.
    """
    discounts = gamma ** np.arange(horizon + 1)
    room = 2.0 ** (_SCORE_BITS - bits) / float((alpha + beta) * discounts.sum())
    if room < 2:
        raise InputError(
            f"policy 'br-h': loads of 2^{bits} tokens are too large for alpha {alpha:g}, beta {beta:g} and horizon "
            f"{horizon}; divide all tokens by a common factor"
        )
    scale = 2.0 ** int(np.log2(room))
    return np.rint(alpha * discounts * scale).astype(np.int64), np.rint(beta * discounts * scale).astype(np.int64)


@lru_cache(maxsize=64)
def _terms(horizon: int, alpha: float, beta: float, gamma: float, bits: int) -> Records:
    """Return these weights as `balance_route` takes them."""
    from lbopt.kernels.routing.horizon import TERM

    terms = records(horizon + 1, TERM)
    terms.reward, terms.penalty = weights(horizon, alpha, beta, gamma, bits)
    return terms
