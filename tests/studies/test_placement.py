"""The placement study: what it refuses, what a layer is, when an optimum counts as proved, and what is kept."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.locality import MoEShape
from lbopt.locality.placement import greedy_placement, load_bounds, rank_loads
from lbopt.studies.placement import PlacedLayer, PlacementConfig, cell, run_placement
from lbopt.studies.placement.cell import layers_of

SMALL: dict[str, Any] = {
    **{"ranks": (2, 4), "worlds": 1, "clusters": 3, "experts": 8, "top_k": 2, "layers": 2},
    **{"requests": 60, "batch": 8, "draws": 40},
}


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"ranks": (3,)}, "ranks are 3; expected 2 or more, a divisor of the 8 experts"),
        ({"ranks": (1,)}, "ranks are 1; expected at least 2 each"),
        ({"ranks": ()}, "ranks are none; expected at least 2 each"),
        ({"kinds": ()}, "no kind was named"),
        ({"kinds": ("tusk",)}, "unknown kind 'tusk': did you mean task"),
        ({"worlds": 0}, "worlds is 0; expected at least 1"),
        ({"draws": 0}, "draws is 0; expected at least 1"),
        ({"top_k": 9}, "top_k is 9; expected 1 to the 8 experts"),
        ({"clusters": 61}, "clusters is 61; 60 requests make as many clusters at most"),
        ({"resolution": 0.0}, "resolution is 0.0; expected 1e-9 to 1"),
        ({"resolution": math.nan}, "resolution is nan"),
        ({"time_limit": 0.0}, "time_limit is 0.0; expected seconds above 0"),
        ({"time_limit": math.inf}, "time_limit is inf"),
        ({"seed": -1}, "seed is -1; expected 0 or more"),
    ],
)
def test_refused_before_anything_runs(changes: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says) as refused:
        PlacementConfig(**{**SMALL, **changes})
    assert "\n" not in str(refused.value)


def test_everything_named_twice_is_done_once() -> None:
    config = PlacementConfig(**{**SMALL, "ranks": (4, 2, 4), "kinds": ("task", "uniform", "task")})
    assert [tuple(one.values()) for one in config.cells()] == [
        ("task", 0, 2),
        ("task", 0, 4),
        ("uniform", 0, 2),
        ("uniform", 0, 4),
    ]
    assert (
        config.task(kind="task", world=0, R=2).seed == config.task(kind="task", world=0, R=4).seed
    )  # the same layers at every R
    assert config.task(kind="task", world=0, R=2).seed != config.task(kind="uniform", world=0, R=2).seed


def test_layers_of_a_world() -> None:
    found = layers_of("task", MoEShape(2, 16, 2), 60, 3, 8, 5)
    assert [(one.cluster, one.layer) for one in found] == [(0, 0), (1, 1), (2, 0)]
    for one in found:
        assert one.weights.shape == (16,)
        assert 2 <= one.weights.sum() <= 16  # a batch activates at least the k experts of one token
        assert one.live is None or np.allclose(one.live.sum(axis=1), 2)
    random = layers_of("exponential", MoEShape(2, 16, 2), 60, 3, 8, 5)
    assert len(random) == 3
    assert all(one.live is None for one in random)
    assert len({one.weights.tobytes() for one in random}) == 3


def least_on_two_ranks(weights: np.ndarray) -> float:
    half = weights.size // 2
    sums = [sum(weights[list(chosen)]) for chosen in combinations(range(weights.size), half)]
    return min(max(one, weights.sum() - one) for one in sums)


@pytest.mark.jit
@pytest.mark.parametrize("law", ["uniform", "exponential", "heavy"])
@pytest.mark.parametrize("resolution", [1e-6, 1e-3, 0.1])
def test_the_excess_is_kept(law: str, resolution: float) -> None:
    for seed in range(4):
        rng = np.random.default_rng(seed)
        weights = {"uniform": rng.random(12), "exponential": rng.exponential(size=12), "heavy": rng.pareto(1, 12)}[law]
        found = cell._exactly(weights, greedy_placement(weights, 2), 2, resolution, 5.0)
        least = least_on_two_ranks(weights)
        assert found.proof != "none"
        assert found.excess <= resolution
        assert least - 1e-9 <= rank_loads(weights, found.ranks, 2).max() <= least + found.excess + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_the_exact_placement_is_never_worse_than_greedy(seed: int) -> None:
    weights = np.random.default_rng(seed).random(9)
    greedy = greedy_placement(weights, 3)
    exact = cell._exactly(weights, greedy, 3, 1.0, 5.0)  # rounded to whole experts, nearly all weights are alike
    assert rank_loads(weights, exact.ranks, 3).max() <= rank_loads(weights, greedy, 3).max()
    assert exact.proof != "none" and exact.excess <= 1.0


def test_what_is_proved_of_a_coarser_rounding_is_not_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell, "ROUNDINGS", (10.0,))
    proofs = set()
    for seed in range(20):
        weights = np.random.default_rng(seed).random(9)
        exact = cell._exactly(weights, greedy_placement(weights, 3), 3, 0.02, 5.0)
        proofs.add(exact.proof)
        assert (exact.proof == "none") == (exact.excess > 0.02)
    assert proofs == {"none", "within"}


def test_one_layout_is_that_of_all_clusters() -> None:
    weights, everywhere = np.array([4.0, 3.0, 2.0, 1.0]), np.array([4.0, 1.0, 2.0, 3.0])
    live = np.tile([1.0, 1.0, 0.0, 0.0], (8, 1))  # experts 0 and 1 are always active: apart in one, together in other
    own, other = greedy_placement(weights, 2), greedy_placement(everywhere, 2)
    assert own[0] != own[1] and other[0] == other[1]
    found = cell._in_service(cell.Layer(0, 0, weights, everywhere, live), own, own, 2, 4, 5, 0)
    assert (found["busiest_greedy"], found["busiest_exact"], found["busiest_one_layout"]) == (1.0, 1.0, 2.0)


def test_nearness_to_a_bound_counts_and_nothing_else_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no search ends, greedy is proved exactly where it is within the resolution of a bound."""
    weights = np.random.default_rng(0).random(16)
    greedy = greedy_placement(weights, 4)
    above = rank_loads(weights, greedy, 4).max() - max(load_bounds(weights, 4))
    monkeypatch.setattr(cell, "_at_scale", lambda *_: (greedy, "none"))
    for resolution, proof in ((above / 2, "none"), (above * 2, "within")):
        found = cell._exactly(weights, greedy, 4, resolution, 1.0)
        assert (found.proof, found.excess) == (proof, pytest.approx(above))


@pytest.mark.jit
def test_the_heaviest_expert_proves_what_the_mean_does_not() -> None:
    weights = np.array([9.0, 1, 1, 1, 1, 1, 1, 1])
    found = cell._exactly(weights, greedy_placement(weights, 4), 4, 1e-3, 1.0)
    assert (found.proof, rank_loads(weights, found.ranks, 4).max()) == ("heaviest", 10.0)


@pytest.mark.jit
def test_study_from_end_to_end(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    store, config = tmp_path / "s.sqlite", PlacementConfig(**SMALL)
    outcome = run_placement(config, store=store)
    assert len(outcome.layers) == 2 * 4 * 3
    for one in outcome.layers:
        assert one.proved
        assert one.greedy >= one.exact - one.excess
        assert one.exact >= one.bound - 1e-9
        assert one.bound >= one.mean_load
        assert one.gap >= -1e-4
        if one.in_service:
            assert one.busiest_greedy >= one.on_average_greedy
            assert one.busiest_exact >= one.on_average_exact
            assert one.busiest_one_layout >= one.on_average_one_layout
    assert any(one.in_service for one in outcome.layers)
    assert [(R, kind, len(rows)) for R, kind, rows in outcome.groups()][:3] == [
        (2, "all", 12),
        (2, "task", 3),
        (2, "language", 3),
    ]
    monkeypatch.setattr(cell, "place", None)  # whoever computes again fails
    again = run_placement(config, store=store, collect_only=True)
    assert again.layers == outcome.layers
    more = run_placement(PlacementConfig(**{**SMALL, "worlds": 2}), store=store, collect_only=True)
    assert more.layers == outcome.layers
    assert "8 of 16 results are not in" in more.notes[0]


def test_what_is_not_proved_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from lbopt.studies import running
    from lbopt.studies.placement import PlacementOutcome
    from lbopt.studies.running import Stored

    row = {
        **{"cluster": 0, "layer": 0, "mean_load": 1.0, "bound": 1.0, "greedy": 1.2, "exact": 1.1},
        **{"proof": "none", "excess": 0.1, "seconds": 1.0},
    }

    def stored(tasks: Any, **options: Any) -> Stored:
        answers = {task.key: {"layers": [row]} for task in tasks}
        return Stored(answers=answers, failures={}, missing=(), interrupted=False, notes=())

    monkeypatch.setattr(running, "run_stored", stored)
    outcome: PlacementOutcome = run_placement(PlacementConfig(**{**SMALL, "kinds": ("uniform",), "ranks": (4,)}))
    assert outcome.notes == [
        "not proved in time at R = 4: 1 of 1 layers; the placements found are at most 0.1 above the least"
    ]
    assert outcome.layers == [PlacedLayer(kind="uniform", world=0, R=4, **row)]
    assert outcome.layers[0].gap == pytest.approx(1.2 / 1.1 - 1)
