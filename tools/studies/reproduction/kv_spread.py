"""Decode under staggered batch scheduling (arXiv 2512.16134, figures 7 and 8): the spread of KV over 32 units.

Nothing of the production traffic is published but means: 2.5K tokens a request with its output, prompts of 1K, 35
requests a unit, 85K tokens a unit. Lengths are lognormal here with those means; a spread of the logarithm of 0.8 is the
one with which the last of them holds too. Arrivals are Poisson and counted in steps, so the loads do not depend on the
step time, which is applied afterwards: t0 + 26 ns a token of the heaviest unit (FlashMLA on H800 is bound by compute).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lbopt.hardware.published import published_table
from lbopt.studies.printed import within
from tools.studies.reproduction import reasons
from tools.studies.reproduction.config import ReproductionConfig
from tools.studies.reproduction.question import Cell, Question, asked
from tools.studies.reproduction.tolerances import within_effect

TABLE = "staggered-batch-decode"
G, BATCH = 32, 35
#: Far more slots than requests: a unit of the source has no fixed number.
B = 128
LENGTHS: dict[str, float] = {"prompt_mean": 1000.0, "output_mean": 1500.0, "sigma": 0.8}
#: What is not published and might matter to their rule: a heavier tail, and requests handed over in batches.
VARIANTS: dict[str, dict[str, float]] = {
    "a spread of 1.2 instead": LENGTHS | {"sigma": 1.2},
    "batches of 75": LENGTHS | {"batch": 75.0},
}
SECONDS_PER_TOKEN = 26e-9
FIXED_MILLISECONDS = (5, 10, 20, 40)
RULES = {
    "round-robin": "round-robin",
    "JSQ": "jsq",
    "IQR": "iqr",
    "JSQ-Load": "jsq-load:admission=immediate",
    "BR-0": "br-0",
}
BASELINES = ("round-robin", "JSQ")
THEIRS = "IQR"


def questions(config: ReproductionConfig) -> list[Question]:
    """Return the rows."""
    runs = {rule: _cell(config, policy, LENGTHS) for rule, policy in RULES.items()}
    shared: dict[str, Any] = {
        "item": "kv-spread",
        "source": TABLE,
        "requests": "lognormal, seeded: prompt {prompt_mean:g}, output {output_mean:g}, spread {sigma:g}".format(
            **LENGTHS
        ),
        "fleet": f"G = {G}, {BATCH} requests a unit on average",
        "arrivals": "Poisson by steps",
        "seeds": config.all_seeds,
    }
    off, on = published_table(TABLE).rows
    return [
        *(
            asked(
                quantity=f"KV of a unit, {text} over units and time, {rule}",
                unit="ktokens",
                published=published,
                cells=(runs[rule],),
                figure=lambda run, name=name: run[name] / 1e3,
                tolerance=within(),
                nothing=None,
                why=why,
                dispatch=_binding(rule),
                **shared,
            )
            for rule, row in (("round-robin", off), ("JSQ", off), (THEIRS, on))
            for text, published, name, why in (
                ("mean", _middle(row), "band_mean", reasons.of_unit(G)),
                ("deviation", _half(row), "band_deviation", reasons.of_runs(reasons.of_band)),
            )
        ),
        *(
            asked(
                quantity=f"deviation over units, {rule} over {baseline}",
                nothing=1.0,
                published=_half(on) / _half(off),
                cells=(runs[rule], runs[baseline]),
                figure=lambda run, base: run["deviation"] / base["deviation"],
                tolerance=within_effect(),
                why=reasons.of_units(rule),
                dispatch=f"{_binding(rule)}, baseline immediate",
                **shared,
            )
            for rule in (THEIRS, "JSQ-Load", "BR-0")
            for baseline in BASELINES
        ),
        *(
            asked(
                quantity=f"throughput gain, {rule} over {baseline}, t0 = {fixed} ms",
                unit="%",
                published=float(on["throughput_gain_percent"]),
                cells=(runs[rule], runs[baseline]),
                figure=lambda run, base, fixed=fixed: throughput_gain(run, base, fixed / 1e3),
                tolerance=within(),
                why=reasons.of_reading(SECONDS_PER_TOKEN, fixed / 1e3),
                dispatch=f"{_binding(rule)}, baseline immediate",
                **shared,
            )
            for rule, baseline in ((THEIRS, "round-robin"), (THEIRS, "JSQ"), ("JSQ-Load", "round-robin"))
            for fixed in FIXED_MILLISECONDS
        ),
        *(
            asked(
                quantity=f"deviation over units, {THEIRS} over {baseline}",
                nothing=1.0,
                published=_half(on) / _half(off),
                cells=tuple(_cell(config, RULES[rule], lengths) for rule in (THEIRS, baseline)),
                figure=lambda run, base: run["deviation"] / base["deviation"],
                tolerance=within_effect(),
                why=reasons.of_units(THEIRS),
                dispatch=f"{_binding(THEIRS)}, baseline immediate",
                **(shared | {"requests": f"{shared['requests']}, with {variant}"}),
            )
            for variant, lengths in VARIANTS.items()
            for baseline in BASELINES
        ),
    ]


def throughput_gain(run: Mapping[str, float], base: Mapping[str, float], fixed_seconds: float) -> float:
    """Return the throughput over the baseline's in % where a step takes t0 + 26 ns a token of the heaviest unit."""
    rates = [one["running"] / (fixed_seconds + SECONDS_PER_TOKEN * one["max_load"]) for one in (run, base)]
    return 100 * (rates[0] / rates[1] - 1)


def _cell(config: ReproductionConfig, policy: str, lengths: Mapping[str, float]) -> Cell:
    return Cell(
        requests=tuple(sorted(lengths.items())),
        content="",
        count=config.count("kv-spread"),
        G=G,
        B=B,
        policy=policy,
        load=BATCH / B,
        step_time="affine:fixed=0.04,per_token=0",
    )


def _binding(rule: str) -> str:
    return "pooled" if rule in (THEIRS, "BR-0") else "immediate"


def _middle(row: Mapping[str, float | str]) -> float:
    return (float(row["band_low_ktokens"]) + float(row["band_high_ktokens"])) / 2


def _half(row: Mapping[str, float | str]) -> float:
    return (float(row["band_high_ktokens"]) - float(row["band_low_ktokens"])) / 2
