"""What a cost study must not get wrong: one test for each slip that other tests would not notice."""

from dataclasses import replace

import numpy as np
import pytest

from lbopt.hardware import BarrierForm, device_card, model_card
from lbopt.hardware.calibrated import StepFeatures, shipped_posterior
from lbopt.hardware.price import CHARGES, FleetConstants, price_step
from lbopt.policies import make_policy
from lbopt.simulator import simulate
from lbopt.studies.cost import CostConfig, LoadPoint, Rerun, run_cost
from lbopt.studies.cost.config import CHARGE_NAMES
from lbopt.studies.cost.device_law import DeviceDraws, DrawnForm
from lbopt.studies.progress import Silent
from lbopt.studies.requests import RequestSource
from lbopt.studies.scenario import Scenario
from lbopt.studies.training import training_for

POINT = LoadPoint.of_means(85_000, 200_000, workers=8, running=35)


def draws(device="h800", **given):
    return DeviceDraws.of(CostConfig(**{"devices": (device,), "draws": 400, **given}), device)


def test_the_building_adds_to_kilowatts_as_to_joules():
    one = np.array([1.0])
    fleet = FleetConstants(0.05 * one, 0 * one, 400.0, 16, 100 * one, 600 * one, 2 * one)
    plain, housed = price_step(fleet), price_step(fleet, overhead=1.3)
    assert housed.kilowatts[0] == pytest.approx(1.3 * plain.kilowatts[0])
    assert housed.kilowatts[0] * 1e3 == pytest.approx(housed.joules_per_token[0] * housed.tokens_per_second[0])
    assert housed.wait_energy_share[0] == plain.wait_energy_share[0]


def test_the_heaviest_is_never_drawn_below_the_mean():
    point = replace(LoadPoint.of_means(100, 4, workers=4, running=3), max_load_error=50.0)
    step = DrawnForm.of([BarrierForm(1.0, 0.01)] * 2, 4, 3).step(point, np.array([-3.0, 3.0]), np.zeros(2))
    assert step.waited_seconds.tolist() == pytest.approx([0, 0.01 * (1 + 150)])


def test_an_idle_power_is_never_drawn_above_the_peak():
    card = device_card("h800")
    near = replace(card.constants["peak_power"], low=60.0, value=90.0)
    device = replace(draws(draws=5000), card=replace(card, constants={**card.constants, "peak_power": near}))
    assert (device.of_constant("idle_power") > device.of_constant("peak_power")).any()
    idle, peak = device.watts
    assert (idle <= peak).all()


def test_bytes_of_a_worker_by_hand():
    """Grouped heads are shared by the devices of a worker, as far as there are heads; latent vectors are not."""
    own = model_card("qwen3-30b-a3b").common_parameters + 151_936 * 2048  # with the embedding
    device = draws(model="qwen3-30b-a3b")
    for count, copies in ((1, 1), (2, 2), (8, 4)):
        of_experts = 48 * 128 * 3 * 2048 * 768 / (8 * count)  # shared by the devices of all workers
        activations = 35 * (4 * 151_936 + 20 * 2048)
        expected = 2 * (own / count + of_experts) + 110_000 * 98_304 / copies + activations
        assert device.memory.bytes_per_device(POINT, count) == pytest.approx(expected)
    latent = draws().memory
    one, two = (latent.bytes_per_device(replace(POINT, max_load=load), 2) for load in (85_000, 185_000))
    assert two - one == pytest.approx(100_000 * 70_272)


def test_tokens_a_request_are_made_and_computed():
    given = {"devices": ("ascend-910c",), "draws": 100, "model": "deepseek-v3"}
    one, two = (run_cost([POINT], CostConfig(**given, tokens_per_request=count)).devices[0] for count in (1, 2))
    first, second = (device.points[0].figures for device in (one, two))
    assert second["step_milliseconds"].nominal > 1.02 * first["step_milliseconds"].nominal
    for figures, count in ((first, 1), (second, 2)):
        made = figures["tokens_per_second"].nominal * figures["step_milliseconds"].nominal / 1e3
        assert made == pytest.approx(8 * 35 * count)


def test_a_slope_that_explains_more_than_the_published_step_leaves_no_negative_rest():
    heavy = LoadPoint.of_means(3_000_000, 0, workers=8, running=35)
    form = draws("ascend-910c").form("published slope", heavy, 4)
    assert (form.level >= 0).all() and (form.level == 0).any()


def test_energy_saved_under_a_charge_compares_that_charge():
    outcome = run_cost([POINT, POINT.balanced("level")], CostConfig(devices=("h800",), draws=100))
    today, level = outcome.devices[0].points
    for charge in CHARGES:
        saved = 1 - level.joules_by_charge[charge].nominal / today.joules_by_charge[charge].nominal
        assert level.energy_saved_by_charge[charge].nominal == pytest.approx(saved)
    idle, spins, busy = (
        level.energy_saved_by_charge[CHARGE_NAMES[name]].nominal for name in ("wait-idle", "wait-spins", "wait-busy")
    )
    assert 0 < idle < spins < busy
    assert busy == pytest.approx(level.figures["time_saved_share"].nominal)


def test_runs_of_a_what_if_are_those_of_their_seeds(tmp_path):
    """Seeds draw requests, steer policies that draw, and train predictors, as in a study of that fleet's own."""
    rng = np.random.default_rng(0)
    file = tmp_path / "trace.csv"
    lines = "".join(f"{p},{o}\n" for p, o in zip(rng.integers(10, 900, 900), rng.integers(2, 90, 900), strict=True))
    file.write_text("a,b\n" + lines)
    source = RequestSource(trace=str(file), prompt_column="a", output_column="b", count=300, train_share=0.3)
    scenario = Scenario(requests=source, num_workers=4, slots_per_worker=4)
    routers = {
        "power-of-two": ("power-of-two", {"horizon": None, "predictor": "oracle"}),
        "br-h": ("br-h", {"horizon": 4, "predictor": "survival"}),
    }
    points = Rerun(scenario, routers, (3, 8)).on("slots", 4, Silent())
    for point, (spec, given) in zip(points, routers.values(), strict=False):
        gaps = []
        for seed in (3, 8):
            policy = make_policy(spec, {name: value for name, value in given.items() if value is not None})
            training = training_for(scenario, [policy], seed, num_seeds=2)
            run = simulate(source.draw_for(seed, num_seeds=2), policy, scenario.setting, seed=seed, training=training)
            gaps.append(run.metrics().imbalance_tokens)
        assert point.imbalance == pytest.approx(np.mean(gaps))
        assert point.max_load_error >= abs(gaps[0] - gaps[1]) / 2 / 4 * (1 - 1e-12)
        assert gaps[0] != gaps[1]


def test_what_is_published_of_one_model_says_nothing_of_another():
    assert draws("ascend-910c").laws(POINT)[0] == ["calibrated", "published slope"]
    assert draws("ascend-910c", model="qwen3-30b-a3b").laws(POINT) == (["calibrated"], [])
    assert draws("h100").laws(POINT) == (["calibrated"], [])


def test_the_calibrated_form_is_the_calibrated_law():
    """Affine in the load: at any load the form gives what the law gives of that step."""
    device, believed = draws(), shipped_posterior()
    form = device.form("calibrated", POINT, 2)
    for load in (85_000.0, 170_000.0):
        point = LoadPoint.of_means(load, 0, workers=8, running=35)
        law = believed.nominal(StepFeatures.of([device.decode_step(point, 2)]))[0]
        assert form.level[0] + form.per_token[0] * load == pytest.approx(law, rel=1e-12)
