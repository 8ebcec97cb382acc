"""Where BalanceRoute's rules are run: requests on a fleet, and the published group they are held against.

The step time is affine, and fixed so that the step of a full and balanced fleet takes 60 ms, the engine step that the
paper quotes, whatever a token costs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.drawn import pool_of
from tools.studies.reproduction.question import Cell, published_number

TABLE = "balance-route"
B = 72
BALANCED_SECONDS = 0.060
NANOSECONDS = 100.0

#: Of the proprietary trace the paper gives the number of requests, their means and that they are heavy-tailed (its
#: section on the set-up); the spread of the logarithm is assumed.
PUBLISHED_COUNT = 8_000
PUBLISHED_LENGTHS = {"prompt_mean": 3197.0, "output_mean": 1185.0, "sigma": 1.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Requests on a fleet.

    Parameters
    ----------
    kind
        "burstgpt", "azure" or "means".
    requests, content, count, label
        As in `Cell`, and what rows say of them.
    resident
        Mean tokens of a slot that is never empty.
    G, group
        The fleet, and the published group.
    seeds
        All seeds.
    """

    kind: str
    requests: tuple[tuple[str, Any], ...]
    content: str
    count: int
    label: str
    resident: float
    G: int
    group: str
    seeds: tuple[int, ...]

    def share(self, slope: float = NANOSECONDS) -> float:
        """Return which share of the balanced step depends on the load, at so many ns a token."""
        return slope * 1e-9 * B * self.resident / BALANCED_SECONDS

    def cell(self, policy: str, load: float | None, slope: float = NANOSECONDS) -> Cell:
        """Return a rule's run."""
        if self.share(slope) > 1:
            raise InputError(
                f"requests of '{self.label}' hold {self.resident:,.0f} tokens on average: {B} of them at {slope:g} ns "
                f"a token take longer than the balanced step of {1e3 * BALANCED_SECONDS:g} ms; give a trace of "
                "shorter requests"
            )
        fixed = BALANCED_SECONDS * (1 - self.share(slope))
        return Cell(
            requests=self.requests,
            content=self.content,
            count=self.count,
            G=self.G,
            B=B,
            policy=policy,
            load=load,
            step_time=f"affine:fixed={fixed!r},per_token={slope * 1e-9!r}",
        )

    def shared(self, load: float | None, slope: float = NANOSECONDS) -> dict[str, Any]:
        """Return what all rows of a load have in common."""
        return {
            "item": "balance-route",
            "source": f"{TABLE} {self.group}",
            "requests": self.label,
            "fleet": f"G = {self.G}, B = {B}; balanced step 60 ms, {slope:g} ns a token",
            "arrivals": "closed loop" if load is None else f"Poisson, load {load:g}",
            "seeds": self.seeds,
        }

    def printed(self, column: str, method: str) -> float:
        """Return a number of the group that this place is held against."""
        return published_number(TABLE, column, group=self.group, method=method)


def of_trace(config: ReproductionConfig, kind: str, G: int, group: str, longer_than: int) -> Place:
    """Return requests of a trace of which the outputs exceed `longer_than`.

    Parameters
    ----------
    longer_than
        Tokens; shorter outputs are left out.
    """
    pool = pool_of(config.trace(kind), longer_than)
    return Place(
        kind=kind,
        requests=(("trace", config.trace(kind)), ("longer_than", longer_than)),
        content=pool.digest,
        count=config.count("balance-route", G),
        label=config.trace_name(kind) + (f", output > {longer_than}" if longer_than else ""),
        resident=pool.mean_resident_tokens,
        G=G,
        group=group,
        seeds=config.all_seeds,
    )


def of_published_means(config: ReproductionConfig, G: int, group: str) -> Place:
    """Return lognormal requests with the means of the proprietary trace."""
    prompt, output, sigma = (PUBLISHED_LENGTHS[name] for name in ("prompt_mean", "output_mean", "sigma"))
    return Place(
        kind="means",
        requests=tuple(PUBLISHED_LENGTHS.items()),
        content="",
        count=round((config.requests or PUBLISHED_COUNT) * G / 8),
        label=f"lognormal, seeded: prompt {prompt:g}, output {output:g} (the paper's means), spread {sigma:g}",
        resident=prompt + (output * math.exp(sigma**2) - 1) / 2,
        G=G,
        group=group,
        seeds=config.all_seeds,
    )
