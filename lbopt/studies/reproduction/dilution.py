"""The overhead table of the EP-barrier post: how a mean term in the step time dilutes the gain of balance.

Beside the reading under which the table makes sense (`barrier_tax.py`) stand the two others: all slots busy, and the
law as the clock of the arrivals. The last rows need no run: the table against its own law (`dilution_law.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lbopt.hardware.published import published_table
from lbopt.studies.printed import within, within_effect, within_points
from lbopt.studies.reproduction import reasons
from lbopt.studies.reproduction.barrier_tax import BY_STEPS, LOAD, B, cell, gain, law_as_clock
from lbopt.studies.reproduction.config import ReproductionConfig
from lbopt.studies.reproduction.dilution_law import COLUMNS, TABLE, diluted, published_barrier
from lbopt.studies.reproduction.drawn import pool_of
from lbopt.studies.reproduction.question import Question, Row, asked, published_number

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
