"""What Table 1 would need: the line through its points, and the nearest pair of each configuration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from studies.staggered_answers import outcome_of

from lbopt.report.staggered_tables import OWN as TABLES
from lbopt.studies.staggered import PLACES, StaggeredConfig
from tools.studies.staggered import needs
from tools.studies.staggered.needs_tables import PLAIN, nearest_pairs


def test_places_that_were_not_asked_are_not_run() -> None:
    config = StaggeredConfig(places=("short-5k",))
    assert {task.parameters["place"] for task in config.tasks("needs")} == {"short-5k"}


def test_the_line_through_the_table() -> None:
    """94.3 ms and 0.0801 ms a token in the plain reading; others scale it by what a chunk or a rate is shared by."""
    base, slope = needs.line("unit, instance")
    assert (base, slope) == (pytest.approx(0.0943, abs=5e-5), pytest.approx(80.1e-6, abs=5e-8))
    # tokens of a unit and cycles by hand: utilisation * chunk, and 8 units * tokens / (rate * 1000)
    x = np.array([0.5183 * 3072, 0.887 * 3072, 0.53 * 5120, 0.88 * 5120])
    y = 8 * x / (np.array([57, 70, 70, 79]) * 1000)
    by_hand = ((x - x.mean()) * (y - y.mean())).sum() / ((x - x.mean()) ** 2).sum()
    assert slope == pytest.approx(by_hand)
    assert base == pytest.approx(y.mean() - by_hand * x.mean())
    assert np.abs(base + slope * x - y).max() < 1.7e-3
    assert needs.line("unit, cluster") == (pytest.approx(3 * base), pytest.approx(3 * slope))
    assert needs.line("instance, instance") == (pytest.approx(base / 8), pytest.approx(slope))
    assert needs.line("instance, cluster") == (pytest.approx(3 * base / 8), pytest.approx(3 * slope))


@pytest.mark.parametrize("tokens", [1, 1500, 3072])
def test_both_laws_of_a_pass_agree_where_units_are_alike(tokens: int) -> None:
    fullest, mean = (needs.pass_time("unit, instance", name) for name in needs.LAWS)
    assert fullest.seconds(tokens, tokens, tokens) == pytest.approx(mean.seconds(tokens, tokens, tokens))
    assert fullest.seconds(tokens, tokens, tokens / 2) > mean.seconds(tokens, tokens, tokens / 2)


def test_a_chunk_of_an_instance_is_shared_by_its_units() -> None:
    assert needs.read_place("short-3k", "instance, cluster").chunk == 3072 // 8
    assert needs.read_place("short-3k", "unit, cluster").chunk == 3072


def needs_rows(fixed: float, factor: float, **more: Any) -> list[tuple[dict[str, Any], dict[str, float | None]]]:
    """A configuration in which jsq and pooled give the printed numbers, but one of them `factor` times as high."""
    found = []
    for place in needs.PRINTED_PLACES:
        printed = PLACES[place].printed
        assert printed is not None
        keys = dict(zip(("reading", "law", "fixed", "spread", "instances"), PLAIN, strict=True)) | {"fixed": fixed}
        keys |= {"place": place} | more
        off = {"rate": float(printed.rate_off), "utilisation": printed.utilisation_off}
        on = {"rate": float(printed.rate_on), "utilisation": printed.utilisation_on * factor}
        found += [(keys | {"contender": "jsq"}, off), (keys | {"contender": "pooled"}, on)]
        found += [(keys | {"contender": "random"}, {"rate": 10.0, "utilisation": 0.5})]
        found += [(keys | {"contender": "staggered"}, {"rate": None})]
    return found


def test_the_nearest_pair_is_found_and_configurations_are_ranked() -> None:
    outcome = outcome_of("needs", needs_rows(0.0, 1.3) + needs_rows(0.4, 0.9) + needs_rows(0.45, 1.2, law="mean"))
    ranked = nearest_pairs(outcome)
    assert [(pair.configuration[2], pair.baseline, pair.rule) for pair in ranked] == [
        (0.4, "jsq", "pooled"),
        (0.45, "jsq", "pooled"),
        (0.0, "jsq", "pooled"),
    ]
    assert [pair.off_by for pair in ranked] == pytest.approx([0.1, 0.2, 0.3])
    (table,) = TABLES["needs"](outcome)
    assert table.rows[0] == ("", "printed", *[""] * 6, "57 → 70", "52 → 89", "70 → 79", "53 → 88")
    assert table.rows[1][:10] == (*("1", "fullest", "0.40 s", "1", "3", "jsq", "pooled", "10 %", "57 → 70", "52 → 80"),)
    assert table.rows[2][1] == "mean"
    assert "The best 3 of 3" in table.caption


def test_the_plain_reading_stands_wherever_it_ranks() -> None:
    better = [row for N in range(4, 16) for row in needs_rows(0.4, 1.01, instances=N)]
    (table,) = TABLES["needs"](outcome_of("needs", needs_rows(0.0, 1.5) + better))
    assert [row[0] for row in table.rows] == ["", *map(str, range(1, 11)), "13"]
    assert table.rows[-1][2:5] == ("0.00 s", "1", "3")
    (table,) = TABLES["needs"](outcome_of("needs", needs_rows(0.0, 1.5, reading="instance, cluster")))
    assert table.rows[-1][1] == "fullest, instance, cluster"


def test_a_configuration_whose_limit_nobody_keeps_is_left_out() -> None:
    keys = dict(zip(("reading", "law", "fixed", "spread", "instances"), PLAIN, strict=True))
    outcome = outcome_of(
        "needs",
        [
            (keys | {"place": place, "contender": one}, {"rate": None})
            for place in needs.PRINTED_PLACES
            for one in needs.CONTENDERS
        ],
    )
    assert nearest_pairs(outcome) == []
    (table,) = TABLES["needs"](outcome)
    assert len(table.rows) == 1
