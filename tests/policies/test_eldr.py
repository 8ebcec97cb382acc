"""eldr as a policy: names, bands, who it learns from, and what it cannot do."""

from dataclasses import replace

import numpy as np
import pytest
from simulator.expert_traces import expert_trace

from lbopt.exceptions import InputError
from lbopt.hardware import AffineStepTime
from lbopt.kernels.routing.codes import BAND_UNIT
from lbopt.locality.fit import fit_routing
from lbopt.locality.routing_table import write_table
from lbopt.model import Fleet, StepProblem, Trace
from lbopt.policies import Observation, make_policy
from lbopt.policies.decide import decide
from lbopt.policies.experts import calibration, eldr_by
from lbopt.simulator import ClosedLoop, SimulationSetting, simulate

SETTING = SimulationSetting(Fleet(3, 4), ClosedLoop(5), step_time=AffineStepTime(0.01, 1e-5))
#: Two draws of the same prompts, as a trace and its calibration set share a model.
TRACE, TRAINING = (expert_trace(4, count=count, profiles=30, layers=3, experts=12) for count in (200, 150))


def workers(policy, trace=TRACE, training=TRAINING):
    return simulate(trace, make_policy(policy), SETTING, training=training).requests["worker"]


def test_names():
    assert make_policy("eldr").name == "eldr"
    assert make_policy("eldr:tau=0.2,clusters=vanilla").name == "eldr:tau=0.2,clusters=vanilla"
    assert make_policy("eldr:tau=0.1").name == "eldr"


def test_width_nothing_is_the_nearest_centroid():
    table = fit_routing(calibration(TRAINING.experts), 3).table
    nearest = table.similarities(TRACE.experts.chosen).argmax(axis=1)
    assert (workers("eldr:tau=0") == nearest[TRACE.experts.profile]).all()


@pytest.mark.parametrize("tau", [0.0, 0.05, 0.1, 0.3, 1.0])
def test_the_width_is_that_of_the_name(tau):
    assert make_policy(f"eldr:tau={tau}").parameters["width"] * BAND_UNIT == pytest.approx(tau, abs=1e-15)
    similar = fit_routing(calibration(TRAINING.experts), 3).table.similarities(TRACE.experts.chosen)
    chosen = similar[TRACE.experts.profile, workers(f"eldr:tau={tau}")]
    gaps = similar.max(axis=1)[TRACE.experts.profile] - chosen
    assert gaps.max() <= tau + 2e-12
    assert tau in (0.0, 1.0) or gaps.max() > tau / 2, "a wider band is used"


@pytest.mark.parametrize("tau", [-0.1, 1.1, float("nan")])
def test_a_width_that_cannot_be_is_refused_with_a_table_too(tau):
    with pytest.raises(InputError, match="expected a width from 0 to 1, in cosines"):
        eldr_by(fit_routing(calibration(TRAINING.experts), 3).table, tau)


def test_the_whole_width_joins_the_shortest_queue():
    run = simulate(TRACE, make_policy("eldr:tau=1"), SETTING, training=TRAINING, keep_loads=True)
    shortest = simulate(TRACE, make_policy("jsq"), SETTING, keep_loads=True)
    counts = [np.bincount(one.requests["worker"], minlength=3) for one in (run, shortest)]
    assert abs(counts[0] - counts[1]).max() <= 8, "only ties differ"


def test_a_table_from_a_file_routes_like_the_fit_that_made_it(tmp_path):
    path = tmp_path / "table.npz"
    write_table(fit_routing(calibration(TRAINING.experts), 3).table, path)
    assert (workers(f"eldr:table={path}", training=None) == workers("eldr")).all()


def test_transforms_and_clusters_are_fitted():
    assert (workers("eldr:tau=0,transform=binary") != workers("eldr:tau=0")).any()
    assert workers("eldr:tau=0,clusters=vanilla").size == len(TRACE)


def test_errors(tmp_path):
    bare = Trace(prompt=TRACE.prompt, output=TRACE.output)
    table = fit_routing(calibration(TRAINING.experts), 4).table
    write_table(table, tmp_path / "four.npz")
    write_table(fit_routing(calibration(expert_trace().experts), 3).table, tmp_path / "other.npz")
    for policy, trace, training, words in (
        ("eldr:tau=1.5", TRACE, TRAINING, "tau is 1.5"),
        ("eldr:clusters=round", TRACE, TRAINING, "round"),
        ("eldr:transform=idf", TRACE, TRAINING, "count-idf"),
        ("eldr:transform=gate-prob", TRACE, TRAINING, "gate_prob"),
        ("eldr", bare, TRAINING, "does not say which"),
        ("eldr", TRACE, None, "needs requests to fit"),
        (f"eldr:table={tmp_path / 'four.npz'}", TRACE, None, "4 centroids.*3 workers"),
        (f"eldr:table={tmp_path / 'other.npz'}", TRACE, None, "layers"),
        (f"eldr:table={tmp_path / 'none.npz'}", TRACE, None, "none.npz"),
        (f"eldr:table={tmp_path / 'four.npz'},seed=3", TRACE, None, "leave them out"),
    ):
        with pytest.raises(InputError, match=words):
            workers(policy, trace, training)


def test_a_frozen_state_has_no_experts():
    seen = Observation.of_problem(StepProblem(base=[[1], [2]], slots=[1, 1], work=[[3]]))
    with pytest.raises(InputError, match="a frozen state does not say"):
        decide(make_policy("eldr"), seen)


def test_a_table_of_another_model_of_the_same_shape_is_refused(tmp_path):
    write_table(fit_routing(calibration(TRAINING.experts), 3, model="one").table, str(tmp_path / "one.npz"))
    other = replace(TRACE, experts=replace(TRACE.experts, model="another"))
    with pytest.raises(InputError, match=r"'one'.*'another'"):
        workers(f"eldr:table={tmp_path / 'one.npz'}", other, None)


def test_only_a_rule_that_fits_its_own_table_learns():
    """Studies give requests to learn from to those, and to nobody else."""
    assert make_policy("eldr").guide.learns
    assert not make_policy("eldr:table=routing.npz").guide.learns
    assert not eldr_by(fit_routing(calibration(TRAINING.experts), 3).table).guide.learns
