"""Tables of a staggering study, from rows made by hand."""

from __future__ import annotations

import math
from typing import Any

import pytest
from studies.staggered_answers import KNOWN, made_up, outcome_of

from lbopt.report.staggered_questions import question_tables
from lbopt.report.staggered_tables import OWN as TABLES
from lbopt.report.staggered_tables import STEPS, short, staggered_tables
from lbopt.studies.printed import NO_ANSWER, VERDICTS
from lbopt.studies.staggered import (
    CONTENDERS,
    IMMEDIATE,
    LATE,
    questions,
)
from lbopt.studies.staggered.items import fleet, law, load, split
from lbopt.studies.staggered.places import AHEAD
from lbopt.table import Table

#: Tables of an item's own, over all places.
OWN = {"law": 2, "load": 6, "fleet": 2, "limit": 3, "latency": 3, "ahead": 12, "split": 3}


def by_title(tables: list[Table], start: str) -> Table:
    (found,) = (table for table in tables if table.title.startswith(start))
    return found


def row_of(table: Table, first: str) -> tuple[str, ...]:
    (found,) = (row for row in table.rows if row[0] == first)
    return found


@pytest.mark.some(5)
@pytest.mark.parametrize("item", KNOWN)
@pytest.mark.parametrize("seeds", [1, 2])
def test_an_item_shows_its_own_tables(item: str, seeds: int) -> None:
    tables = staggered_tables(made_up(item, seeds=seeds))
    own, beside = tables[: OWN[item]], tables[OWN[item] :]
    assert not any("printed and ours" in table.title for table in own)
    assert [table.title for table in beside] == (
        [*(f"{name}: printed and ours" for name in SUBJECTS[item]), "Verdicts by baseline"] if SUBJECTS[item] else []
    )
    for table in tables:
        assert {len(row) for row in table.rows} == {len(table.headers)}, table.title
        assert "nan" not in " ".join(" ".join(row) for row in table.rows)
        assert len(table.caption) > 40
    if seeds == 1:
        assert "±" not in " ".join(" ".join(row) for table in own for row in table.rows)


SUBJECTS = {
    "law": ("law",),
    "load": ("load, short-3k", "load, short-5k", "load, long-16k"),
    "fleet": (),
    "limit": ("limit, short-3k", "limit, short-5k"),
    "latency": (),
    "ahead": ("ahead, short-3k", "ahead, short-5k", "ahead, long-16k"),
    "split": (),
}


@pytest.mark.more
def test_all_tables_of_a_whole_study() -> None:
    tables = staggered_tables(made_up())
    titles = [table.title for table in tables]
    assert len(titles) == len(set(titles)) == sum(OWN.values()) + sum(map(len, SUBJECTS.values())) + 1
    assert titles[-1] == "Verdicts by baseline"
    subjects = [title.removesuffix(": printed and ours") for title in titles if title.endswith("printed and ours")]
    assert subjects == [name for item in KNOWN for name in SUBJECTS[item]], "a place's tables stand together"


def test_places_that_were_not_asked_are_not_shown() -> None:
    tables = staggered_tables(made_up(places=("short-5k",)))
    for table in tables:
        text = " ".join([table.title, *(cell for row in table.rows for cell in row)])
        assert "short-3k" not in text and "long-16k" not in text, table.title


def test_nothing_ended_shows_nothing() -> None:
    assert staggered_tables(made_up(seeds=0)) == []


def test_waits_are_shown_times_the_fleet() -> None:
    keys = {"capacity": "none", "load": 0.5, "policy": "spacing"}
    outcome = outcome_of("law", [(keys | {"instances": N}, {"wait": 0.2 / N}) for N in (1, 4, 10)])
    table = TABLES["law"](outcome)[0]
    assert table.headers == ("load, policy", "1", "4", "10", "exact")
    assert row_of(table, "0.5, spacing") == ("0.5, spacing", "0.200", "0.200", "0.200", "0.226")
    assert row_of(table, "0.5, random") == ("0.5, random", "–", "–", "–", "0.226 N")
    assert row_of(table, "2, tick")[-1] == "0.500"
    assert row_of(table, "2, jsq")[-1] == "–"
    assert len(table.rows) == len(law.LOADS) * len(law.POLICIES)


def test_waits_with_a_capacity_go_by_its_share() -> None:
    keys = {"capacity": 4, "load": 3.8, "policy": "pooled", "instances": 2}
    table = TABLES["law"](outcome_of("law", [(keys, {"wait": 0.75})]))[1]
    assert row_of(table, "95 %, pooled") == ("95 %, pooled", "1.500")
    assert len(table.rows) == len(law.SHARES) * len(law.POLICIES)


def test_a_change_is_paired_and_shown_with_its_interval() -> None:
    outcome = made_up("load", places=("short-3k",))
    table = by_title(TABLES["load"](outcome), "short-3k: mean time to first token by load, against jsq")
    keys = {"place": "short-3k", "against": "jsq", "load": 0.8}
    changes, own = [], []
    for rows in outcome.rows["load"].values():
        base = rows.value("ttft", **keys, contender="jsq")
        rule = rows.value("ttft", **keys, contender="staggered-bypass")
        assert base is not None and rule is not None
        changes.append(100 * (rule / base - 1))
        own.append(1e3 * base)
    mean = sum(changes) / 3
    half = 4.30265 * math.sqrt(sum((one - mean) ** 2 for one in changes) / 2 / 3)  # Student, two degrees of freedom
    row = row_of(table, "80 %")
    assert row[2].split(" ")[0] == f"{sum(own) / 3:,.0f}"
    assert row[table.headers.index(short("staggered-bypass"))] == f"{mean:+.1f} ± {half:.1f}".replace("-", "−")
    assert len(table.rows) == len(load.LOADS)
    assert len(table.headers) == 3 + len(LATE)


def test_captions_say_what_all_share_once() -> None:
    for tables in (TABLES["load"](made_up("load")), TABLES["fleet"](made_up("fleet"))):
        assert ["Pooled: the first free" in table.caption for table in tables] == [True] + [False] * (len(tables) - 1)
        assert "± is half of a 95 % interval over 3 seeds." in tables[0].caption
    assert "One seed: no interval." in TABLES["load"](made_up("load", seeds=1))[0].caption
    for table in TABLES["fleet"](made_up("fleet")):
        assert "At 80 % of the highest rate" in table.caption


def test_fleets_are_rows() -> None:
    table = TABLES["fleet"](made_up("fleet"))[1]
    assert table.title == "short-3k: mean time to first token by instances, against jsq"
    assert [row[0] for row in table.rows] == [str(N) for N in fleet.FLEETS]


def test_a_baseline_that_keeps_no_limit_has_no_rows() -> None:
    outcome = outcome_of("load", [({"place": "short-3k", "against": "jsq", "load": 0.4, "contender": "jsq"}, {})])
    (table,) = TABLES["load"](outcome)
    assert table.rows == []


def test_the_table_of_limits_begins_with_what_is_printed() -> None:
    tables = TABLES["limit"](made_up("limit"))
    first = tables[0]
    assert first.rows[0] == ("printed, off", "57", "51.8", "223", "–")
    assert first.rows[1] == ("printed, on", "70", "88.7", "311", "–")
    assert [row[0] for row in first.rows[2:]] == list(CONTENDERS)
    assert tables[1].rows[1][:4] == ("printed, on", "79", "88.0", "456")
    assert [row[0] for row in tables[2].rows] == list(CONTENDERS), "nothing is printed of long prompts"


def test_a_contender_that_keeps_no_limit_is_a_dash() -> None:
    table = TABLES["limit"](outcome_of("limit", [({"place": "short-3k", "contender": "random"}, {"rate": None})]))[0]
    assert row_of(table, "random") == ("random", *["–"] * 4)


def test_rules_that_send_ahead_stand_against_the_better_baseline() -> None:
    """And beside what the best staggered rule has without a latency, with the same baselines."""
    keys: dict[str, Any] = {"fleet": "short-3k", "load": 0.7}
    seed: list[tuple[dict[str, Any], dict[str, float | None]]] = []
    for latency, times in (
        (0.0, {"round-robin": 1.0, "jsq": 0.8, "staggered": 0.6, "staggered-whole": 0.4}),
        (0.02, {"round-robin": 0.8, "jsq": 1.0, "staggered": 8.0, "ahead": 0.4, "ahead-10": 0.6}),
    ):
        of = keys | {"latency": latency}
        seed += [(of | {"contender": one}, {"ttft": ttft, "on_device": ttft / 10}) for one, ttft in times.items()]
    service, device = TABLES["ahead"](outcome_of("ahead", seed))
    assert service.headers[:5] == ("ms", "load", "round-robin (ms)", "jsq (ms)", "at 0 ms")
    assert service.rows == [("20", "70 %", "800", "1,000", "−50.0", "+900.0", "–", "−50.0", "–", "−25.0")]
    assert device.rows == [("20", "70 %", "80", "100", "–", "800", "–", "40", "–", "60")]


def test_the_limit_and_the_latency_of_the_other_reading() -> None:
    (table, *_) = TABLES["limit"](made_up("limit", sending="ahead"))
    assert [row[0] for row in table.rows[2:]] == [*IMMEDIATE, *AHEAD]
    (table, *_) = TABLES["latency"](made_up("latency", sending="both"))
    assert [row[0] for row in table.rows] == [*CONTENDERS, *AHEAD]
    (table, *_) = TABLES["load"](made_up("load", sending="ahead"))
    assert table.headers[3:] == tuple(AHEAD) and "Ahead: sent before" in table.caption


def test_what_is_worth_what() -> None:
    """Late binding halves the time to first token; the interval costs a tenth of it."""
    ttft = dict.fromkeys(((binding, one) for binding in split.BINDINGS for one in split.ALLOCATIONS), 1.0)
    ttft["on arrival", "least-loaded"] = 2.0
    ttft["late, interval", "pbaa"] = 1.1
    seed = [
        ({"place": "short-3k", "binding": binding, "allocation": one}, {"ttft": value, "wait": 0.25})
        for (binding, one), value in ttft.items()
    ]
    steps, times, waits = TABLES["split"](outcome_of("split", seed))
    assert steps.headers == ("step", "short-3k")
    assert row_of(steps, "late binding, least-loaded")[1] == "−50.0"
    assert row_of(steps, "interval, pbaa")[1] == "+10.0"
    assert row_of(steps, "balance when late: round-robin to pbaa")[1] == "0.0"
    assert [row[0] for row in steps.rows] == list(STEPS)
    assert row_of(times, "short-3k: late, interval")[4] == "1,100"
    assert row_of(waits, "short-3k: late")[1:] == ("–",) * 5, "how many passes is not known"


def test_steps_are_of_ways_that_are_run() -> None:
    known = {way for ways in STEPS.values() for way in ways}
    assert {binding for binding, _ in known} <= set(split.BINDINGS)
    assert {allocation for _, allocation in known} <= set(split.ALLOCATIONS)
    assert not any(binding == "on arrival" and allocation.startswith("pbaa") for binding, allocation in known)


def test_statements_by_rule_and_baseline() -> None:
    keys = {"place": "short-3k"}
    seed = [
        (keys | {"contender": "jsq"}, {"rate": 57.0, "utilisation": 0.5183}),
        (keys | {"contender": "pooled"}, {"rate": 60.0, "utilisation": 0.6}),
        (keys | {"contender": "staggered"}, {"rate": 50.0, "utilisation": None}),
    ]
    outcome = outcome_of("limit", seed, seed)
    table = by_title(question_tables(outcome), "limit, short-3k")
    assert table.headers == ("statement (printed), rule", "random", "round-robin", "jsq", "jsq-tokens", "itself")
    assert row_of(table, "requests/s (57), baseline")[1:4] == (NO_ANSWER, NO_ANSWER, "57.0 agrees")
    titles = [row[0] for row in table.rows]
    at = titles.index("requests/s, gain (+22.8 %)")
    assert set(table.rows[at][1:]) == {""}
    assert table.rows[at + 1][0].strip() == "pooled"
    assert table.rows[at + 1][3] == "+5.3 weaker"
    assert table.rows[at + 3][3] == "−12.3 differs"
    at = titles.index("chunk utilisation, gain (+36.9 points)")
    assert table.rows[at + 1][3] == "+8.2 weaker"
    assert table.rows[at + 3][3] == NO_ANSWER
    assert table.rows[titles.index("requests/s (70)") + 1][5] == "60.0 agrees"


def test_rules_that_are_all_alike_are_one_row() -> None:
    seed: list[tuple[dict[str, Any], dict[str, float | None]]] = []
    for at, against in ((at, base) for at in load.LOADS for base in ("random", "round-robin", "jsq", "jsq-tokens")):
        keys = {"place": "short-3k", "against": against, "load": at}
        seed += [(keys | {"contender": rule}, {"ttft": 0.5}) for rule in LATE]
        seed.append((keys | {"contender": against}, {"ttft": 1.0}))
    table = by_title(question_tables(outcome_of("load", seed, seed)), "load, short-3k")
    titles = [row[0] for row in table.rows]
    at = titles.index("mean TTFT at the baseline's peak (lower)")
    assert table.rows[at + 1] == ("    every rule", *["−50.0 agrees"] * 4)


def test_counts_are_those_of_the_statements() -> None:
    outcome = made_up()
    table = by_title(staggered_tables(outcome), "Verdicts by baseline")
    assert table.headers == ("baseline", *VERDICTS, NO_ANSWER, "all")
    assert [row[0] for row in table.rows] == ["random", "round-robin", "jsq", "jsq-tokens", "itself", "all"]
    answers = outcome.asked()
    assert len(answers) == len([one for one in questions() if one.item in KNOWN])
    for row in table.rows:
        asked = [one for one in answers if row[0] in ("all", one.question.against or "itself")]
        assert row[-1] == str(len(asked))
        assert [int(cell) for cell in row[1:6]] == [sum(one.verdict == v for one in asked) for v in VERDICTS]
    total = [sum(int(row[column]) for row in table.rows[:-1]) for column in range(1, 8)]
    assert total == [int(cell) for cell in table.rows[-1][1:]]


def test_one_seed_decides_nothing() -> None:
    total = by_title(staggered_tables(made_up("limit", seeds=1)), "Verdicts").rows[-1]
    assert total[2] == total[-1]
