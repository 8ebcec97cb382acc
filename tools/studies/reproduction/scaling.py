"""The G-scaling table of the EP-barrier post, with several seeds so that its noise can be seen.

Single-request BR-0 with ties to the lightest worker is JSQ-Load in every state: for a given prompt its score falls with
the load, so the lightest worker is always among the best. What the post prints between the two is noise, ties or
tracking; a row per fleet asks our runs for it.
"""

from __future__ import annotations

from typing import Any

from lbopt.hardware.published import published_table
from lbopt.studies.printed import within
from tools.studies.reproduction import dilution, reasons
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.dilution import BY_STEPS, LOAD, B, cell, gain
from tools.studies.reproduction.question import Question, asked, published_number

TABLE = "ep-barrier-scaling"
OVERHEAD = 0.5
COLUMNS = {
    "JSQ-Load": "jsq_load_gain_percent",
    "BR-0": "br0_gain_percent",
    "Fast-Phi": "fast_phi_gain_percent",
}


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows."""
    found = []
    for row in published_table(TABLE).rows:
        G = int(float(row["workers"]))
        shared: dict[str, Any] = {
            "item": "scaling",
            "unit": "%",
            "source": TABLE,
            "requests": config.trace_name("burstgpt"),
            "fleet": f"G = {G}, B = {B}; b = {OVERHEAD:g}",
            "arrivals": f"Poisson by steps, load {LOAD:g}",
            "dispatch": "immediate",
            "seeds": config.all_seeds,
            "tolerance": within(),
            "single_run": True,
        }
        runs = {rule: cell(config, "scaling", rule, G, LOAD, BY_STEPS) for rule in (*COLUMNS, "JSQ")}
        for rule, column in COLUMNS.items():
            found.append(
                asked(
                    quantity=f"throughput gain, {rule} over JSQ, G = {G}",
                    published=float(row[column]),
                    cells=(runs[rule], runs["JSQ"]),
                    figure=lambda run, jsq: gain(run, jsq, OVERHEAD),
                    why=reasons.of_barrier(rule, G * B, also=_other_print(rule, G)),
                    **shared,
                )
            )
        found.append(
            asked(
                quantity=f"gain of BR-0 less that of JSQ-Load, G = {G}",
                published=float(row[COLUMNS["BR-0"]]) - float(row[COLUMNS["JSQ-Load"]]),
                cells=(runs["BR-0"], runs["JSQ-Load"], runs["JSQ"]),
                figure=lambda br_0, load, jsq: gain(br_0, jsq, OVERHEAD) - gain(load, jsq, OVERHEAD),
                why=reasons.of_runs(reasons.of_one_rule),
                **(shared | {"unit": "points"}),
            )
        )
    return found


def _other_print(rule: str, G: int) -> str:
    """Return what the post's two tables print for a cell that both have; empty for others."""
    if rule not in dilution.COLUMNS or G != dilution.G:
        return ""
    other = published_number(dilution.TABLE, dilution.COLUMNS[rule], overhead=OVERHEAD)
    own = published_number(TABLE, COLUMNS[rule], workers=float(G))
    return f"; the post's two tables print {own:g} and {other:g} % for this cell"
