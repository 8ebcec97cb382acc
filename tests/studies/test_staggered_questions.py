"""What is printed of staggering against rows made by hand: every verdict, and the figures behind them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest
from studies.staggered_answers import KNOWN, load_rows, made_up

from lbopt.studies.staggered import Judged, Question, Rows, StaggeredConfig, StaggeredOutcome, questions

BELOW = "short-3k: mean TTFT below 80 % load"


def question_of(quantity: str, rule: str, against: str, printed: str | None = None) -> Question:
    (found,) = (
        asked
        for asked in questions()
        if (asked.quantity, asked.rule, asked.against) == (quantity, rule, against)
        and printed in (None, asked.printed.text)
    )
    return found


def outcome_of(item: str, rows: Iterable[Rows]) -> StaggeredOutcome:
    return StaggeredOutcome(StaggeredConfig(items=(item,)), {item: dict(enumerate(rows))})


def test_questions_have_a_name_of_their_own_and_a_range() -> None:
    names = [(asked.item, asked.quantity, asked.printed.text, asked.rule, asked.against) for asked in questions()]
    assert len(set(names)) == len(names)
    for asked in questions():
        assert asked.printed.low < asked.printed.high
        assert asked.printed.text
        assert asked.rule or asked.against


def test_every_question_is_answered_by_the_rows_of_its_item() -> None:
    """Every question has runs that are planned."""
    outcome = made_up()
    planned = [asked for asked in questions() if asked.item in KNOWN]
    judged = [one for one in outcome.judged() if one.question.item in KNOWN]
    assert [one.question.quantity for one in judged] == [asked.quantity for asked in planned]
    assert all(len(one.values) == 3 and all(map(math.isfinite, one.values)) for one in judged)
    assert {one.question.item for one in made_up("limit").judged()} == {"limit"}


@pytest.mark.parametrize(
    ("late", "verdict"),
    [
        ((0.65, 0.66, 0.64), "agrees"),
        ((0.75, 0.751, 0.749), "weaker"),
        ((0.5, 0.501, 0.499), "stronger"),
        ((1.2, 1.21, 1.19), "differs"),
        ((0.72, 0.62, 0.82), "undecided"),
        ((0.65,), "undecided"),  # one seed has no interval
    ],
)
def test_a_verdict_sees_what_was_planted(late: tuple[float, ...], verdict: str) -> None:
    """The baseline's first token comes after a second, the rule's after these."""
    outcome = outcome_of("load", (load_rows({"jsq": 1.0, "pooled": value}) for value in late))
    (judged,) = (one for one in outcome.judged() if one.question.quantity == BELOW)
    assert (judged.question.rule, judged.question.against) == ("pooled", "jsq")
    assert judged.values == pytest.approx([100 * (value - 1) for value in late])
    assert judged.verdict == verdict


def test_a_mean_over_loads_needs_them_all() -> None:
    """Means of changes, each of one load; loads of 80 % and more do not belong to it."""
    asked, rows = question_of(BELOW, "pooled", "jsq"), Rows()
    for load, value in ((0.4, 0.9), (0.5, 0.8), (0.6, 0.7), (0.7, 0.6), (0.8, 99.0)):
        keys = {"place": "short-3k", "against": "jsq", "load": load}
        rows.add([(keys | {"contender": "jsq"}, {"ttft": 1.0}), (keys | {"contender": "pooled"}, {"ttft": value})])
        assert (asked.figure(rows) is None) is (load < 0.7)
    assert asked.figure(rows) == pytest.approx(-25.0)


def limit_rows(**values: tuple[float, float]) -> Rows:
    rows = Rows()
    for name, (rate, used) in values.items():
        keys = {"place": "short-3k", "contender": name.replace("_", "-")}
        rows.add([(keys, {"rate": rate, "utilisation": used})])
    return rows


def test_figures_of_the_table() -> None:
    rows = limit_rows(round_robin=(57.0, 0.5183), staggered=(70.0, 0.887))
    values = {
        (one.question.quantity, one.question.rule, one.question.against): one.values[0]
        for one in outcome_of("limit", [rows]).judged()
    }
    assert values == {
        ("short-3k: requests/s", "", "round-robin"): 57.0,
        ("short-3k: requests/s", "staggered", ""): 70.0,
        ("short-3k: chunk utilisation", "", "round-robin"): pytest.approx(51.83),
        ("short-3k: chunk utilisation", "staggered", ""): pytest.approx(88.7),
        ("short-3k: requests/s, gain", "staggered", "round-robin"): pytest.approx(22.807, abs=1e-3),
        ("short-3k: chunk utilisation, gain", "staggered", "round-robin"): pytest.approx(36.87),
    }


def test_the_table_agrees_with_itself() -> None:
    """Every statement about a run with the printed numbers holds."""
    rows = [limit_rows(jsq=(57.0, 0.5183), staggered=(70.0, 0.887))] * 2
    found = outcome_of("limit", rows).judged()
    assert {one.verdict for one in found} == {"agrees"}
    swapped = [limit_rows(jsq=(70.0, 0.887), staggered=(57.0, 0.5183))] * 2
    gains = [one for one in outcome_of("limit", swapped).judged() if "gain" in one.question.quantity]
    assert [one.verdict for one in gains] == ["differs", "differs"]


@pytest.mark.parametrize(
    ("wait", "verdict"), [(0.05, "agrees"), (0.2, "weaker"), (0.001, "stronger"), (1.0, "differs")]
)
def test_a_wait_is_held_against_the_baseline_as_a_change(wait: float, verdict: str) -> None:
    """A tenth of the wait is printed: less of it is stronger, twice the wait is the other way."""
    asked = question_of("wait, change, 0.5 requests a pass", "tick", "random")
    keys = {"instances": 10, "capacity": "none", "load": 0.5}
    rows = Rows()
    rows.add([(keys | {"policy": "random"}, {"wait": 0.5}), (keys | {"policy": "tick"}, {"wait": wait})])
    value = asked.figure(rows)
    assert value == pytest.approx(100 * (wait / 0.5 - 1))
    assert value is not None
    assert Judged(asked, (value, value)).verdict == verdict


def test_no_wait_of_the_baseline_is_no_answer() -> None:
    asked = question_of("wait, change, 0.5 requests a pass", "tick", "random")
    keys = {"instances": 10, "capacity": "none", "load": 0.5}
    rows = Rows()
    rows.add([(keys | {"policy": "random"}, {"wait": 0.0}), (keys | {"policy": "tick"}, {"wait": 0.05})])
    assert asked.figure(rows) is None
    assert all(one.question is not asked for one in outcome_of("law", [rows]).judged())
