"""The overhead table of the EP-barrier post: how a mean term in the step time dilutes the gain of balance.

Beside the reading under which the table makes sense (`barrier_tax.py`) stand the two others: all slots busy, and the
law as the clock of the arrivals. The last rows need no run: the table against its own law (`dilution_law.py`).

What the step-time law alone says of the dilution table: no run is needed to check a table against its own law.

If the placement does not depend on the overhead b, a column is (x + b) / (y + b) - 1, and its entry at b = 0 fixes
y = x / (1 + gain(0)). One number, the x of JSQ, is left for both columns and six entries.

The simulations of the EP-barrier post, as far as it describes them: what its two tables have in common.

The post gives a step of max_g a L_g + b mean L, about 70 % utilisation and 5,000 requests, and says not how its clock
runs. With arrivals by the clock, throughput below saturation is what arrives, but for ramp and drain. Its tables make
sense where requests arrive by steps: the placement then does not depend on b, and throughput is the tokens made over
the sum of step times,

    gain(b) = (x + b) / (y + b) - 1,        x = E[max] / E[mean] under JSQ, y under the other rule.

So arrivals are counted in steps here (a constant step of 60 ms), and the law is applied to the loads afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lbopt.hardware.published import published_table
from lbopt.studies.printed import within, within_points
from tools.studies.reproduction import reasons
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.drawn import pool_of
from tools.studies.reproduction.question import Cell, Question, Row, asked, published_number
from tools.studies.reproduction.tolerances import within_effect

B = 72
LOAD = 0.7
STEP_SECONDS = 0.060
BY_STEPS = f"affine:fixed={STEP_SECONDS!r},per_token=0"
#: All bind on arrival; BR-0 is the post's single-request rule, without the cap of the deployed bypass.
RULES = {
    "JSQ": "jsq",
    "JSQ-Load": "jsq-load:admission=immediate",
    "Fast-Phi": "fast-phi",
    "BR-0": "br-0-bypass:overbooking=none",
}


def cell(config: ReproductionConfig, item: str, rule: str, G: int, load: float | None, step_time: str) -> Cell:
    """Return the run of a rule.

    Parameters
    ----------
    load
        Share of saturation; None for a closed loop.
    """
    trace = config.trace("burstgpt")
    return Cell(
        requests=(("trace", trace), ("longer_than", 0)),
        content=pool_of(trace, 0).digest,
        count=config.count(item, G),
        G=G,
        B=B,
        policy=RULES[rule],
        load=load,
        step_time=step_time,
    )


def law_as_clock(config: ReproductionConfig, overhead: float) -> str:
    """Return the post's step time with a scaled so that a step takes 60 ms where all slots hold the mean request."""
    tokens = B * pool_of(config.trace("burstgpt"), 0).mean_resident_tokens
    own = STEP_SECONDS / (tokens * (1 + overhead))
    return f"mean-term:per_token={own!r},per_mean_token={own * overhead!r},fixed=0"


def throughput(run: Mapping[str, float], overhead: float) -> float:
    """Return tokens a unit of time, a = 1, of a run whose steps did not depend on the law."""
    return run["running"] / (run["max_load"] + overhead * run["mean_load"])


def gain(run: Mapping[str, float], jsq: Mapping[str, float], overhead: float) -> float:
    """Return the throughput over JSQ's in %."""
    return 100 * (throughput(run, overhead) / throughput(jsq, overhead) - 1)


TABLE = "ep-barrier-overhead"
COLUMNS = {"JSQ-Load": "jsq_load_gain_percent", "Fast-Phi": "fast_phi_gain_percent"}


def diluted(at_zero: float, x: float, overhead: float) -> float:
    """Return the gain in % at an overhead from that without, where JSQ's heaviest load is x times the mean."""
    y = x / (1 + at_zero / 100)
    return 100 * ((x + overhead) / (y + overhead) - 1)


def implied_barrier(overheads: Sequence[float], columns: Sequence[Sequence[float]]) -> float:
    """Return the x that fits all columns best, by least squares; entry 0 of each is the gain without overhead."""
    from scipy.optimize import minimize_scalar

    def misses(x: float) -> float:
        found = [
            diluted(column[0], x, b) - gain
            for column in columns
            for b, gain in zip(overheads[1:], column[1:], strict=True)
        ]
        return float(np.square(found).sum())

    return float(minimize_scalar(misses, bounds=(1.0, 10.0), method="bounded", options={"xatol": 1e-9}).x)


def published_barrier() -> float:
    """Return the x that the published table implies."""
    table = published_table(TABLE)
    overheads = table.numbers("overhead").tolist()
    return implied_barrier(overheads, [table.numbers(column).tolist() for column in COLUMNS.values()])


G = 8
#: Half a unit of the last printed digit, of the entry itself and of the one at b = 0 that it is computed from.
ROUNDING = 0.1
#: The overhead of the post, at which the law is also tried as a clock.
OWN_OVERHEAD = 0.5


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows."""
    shared: dict[str, Any] = {
        "item": "dilution",
        "requests": config.trace_name("burstgpt"),
        "source": TABLE,
        "seeds": config.all_seeds,
        "unit": "%",
        "dispatch": "immediate",
    }
    overheads = published_table(TABLE).numbers("overhead").tolist()
    after_the_run = [
        asked(
            quantity=f"throughput gain, {rule} over JSQ, b = {b:g}",
            published=published_number(TABLE, column, overhead=b),
            fleet=f"G = {G}, B = {B}",
            arrivals="closed loop" if load is None else f"Poisson by steps, load {load:g}",
            cells=tuple(cell(config, "dilution", one, G, load, BY_STEPS) for one in (rule, "JSQ")),
            figure=lambda run, jsq, b=b: gain(run, jsq, b),
            tolerance=within(),
            single_run=True,
            why=_why(rule, column),
            **shared,
        )
        for load in (LOAD, None)
        for rule, column in COLUMNS.items()
        for b in overheads
    ]
    return after_the_run + _by_the_clock(config, shared) + _by_the_law(config, shared)


def _why(rule: str, column: str) -> Callable[[Row], str]:
    """Return the barriers of a rule and of JSQ here, beside those that the table implies."""
    x = published_barrier()
    y = x / (1 + published_number(TABLE, column, overhead=0.0) / 100)
    return reasons.of_barrier(rule, G * B, (y, x))


def _by_the_clock(config: ReproductionConfig, shared: dict[str, Any]) -> list[Question]:
    clock = law_as_clock(config, OWN_OVERHEAD)
    return [
        asked(
            quantity=f"throughput gain{text}, {rule} over JSQ, b = {OWN_OVERHEAD:g}",
            published=published_number(TABLE, column, overhead=OWN_OVERHEAD),
            fleet=f"G = {G}, B = {B}; full balanced step 60 ms",
            arrivals=f"Poisson by the law's clock, load {LOAD:g}",
            cells=tuple(cell(config, "dilution", one, G, LOAD, clock) for one in (rule, "JSQ")),
            figure=lambda run, jsq, name=name: 100 * (run[name] / jsq[name] - 1),
            tolerance=within(),
            single_run=True,
            why=_why(rule, column),
            **shared,
        )
        for rule, column in COLUMNS.items()
        for text, name in (("", "throughput"), (" over the makespan", "throughput_makespan"))
    ]


def _by_the_law(config: ReproductionConfig, shared: dict[str, Any]) -> list[Question]:
    """Return the table against its own law, and the one number that this leaves against ours."""
    x = published_barrier()
    alone = shared | {"fleet": "none", "arrivals": "none", "dispatch": "none", "requests": "none", "cells": ()}
    rows = [
        asked(
            quantity=f"gain of {rule} at b = {row['overhead']:g} from its gain at b = 0, with one x = {x:.3f} for all",
            published=float(row[column]),
            figure=lambda column=column, b=float(row["overhead"]): diluted(
                published_number(TABLE, column, overhead=0.0), x, b
            ),
            tolerance=within_points(ROUNDING, "the rounding of the two printed numbers"),
            nothing=None,
            why=reasons.of_rounding(ROUNDING),
            exact=True,
            **alone,
        )
        for rule, column in COLUMNS.items()
        for row in published_table(TABLE).rows
        if float(row["overhead"]) > 0
    ]
    ours = asked(
        quantity="heaviest over mean load under JSQ, as the table implies it",
        published=x,
        fleet=f"G = {G}, B = {B}",
        arrivals=f"Poisson by steps, load {LOAD:g}",
        cells=(cell(config, "dilution", "JSQ", G, LOAD, BY_STEPS),),
        figure=lambda jsq: jsq["max_load"] / jsq["mean_load"],
        tolerance=within_effect(),
        nothing=1.0,
        single_run=True,
        why=reasons.of_sizes(pool_of(config.trace("burstgpt"), 0)),
        **(shared | {"unit": ""}),
    )
    return [*rows, ours]
