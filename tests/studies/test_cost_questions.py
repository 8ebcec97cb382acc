"""What a cost study is asked: memory that holds the fleet, rows of one's own, configurations that cannot be."""

import pytest

from lbopt.exceptions import InputError
from lbopt.hardware import device_card
from lbopt.studies.cost import LoadPoint, run_cost
from tests.studies.cost_cases import POINT, config, figures


def test_workers_take_as_many_devices_as_hold_them():
    outcome = run_cost([POINT], config(devices=("h800", "mi300x")))
    counts = {(device.card.name, device.law): device.devices_per_worker for device in outcome.devices}
    # an eighth of the experts is 84 GB, more than an H800 has
    assert counts == {("h800", "calibrated"): 2, ("mi300x", "calibrated"): 1}
    assert run_cost([POINT], config(devices=("ascend-910c",))).devices[1].devices_per_worker == 4
    given = run_cost([POINT], config(step_time="roofline:device=h800,tp=4"))
    assert given.devices[0].devices_per_worker == 4  # time and money of one fleet


@pytest.mark.parametrize("law", [{}, {"step_time": "affine:fixed=0.05,per_token=1e-7"}])
def test_no_fleet_is_priced_that_its_memory_does_not_hold(law):
    """DeepSeek-V3 on two boards of 80 GB; whoever names the devices is told how many would do."""
    two = LoadPoint.of_means(85_000, 20_000, workers=2, running=35)
    message = r"deepseek-v3 on h800: 3\d\d GB of weights, .* on a worker's one device, .* a worker needs 8 devices"
    with pytest.raises(InputError, match=message):
        run_cost([two], config(devices_per_worker=1, **law))
    heavy = LoadPoint.of_means(1_000_000, 880_000, 8, 35)
    with pytest.raises(InputError, match="no number of devices up to the heads is enough: give a smaller load"):
        run_cost([heavy], config(**law))
    fits = run_cost([two], config(devices_per_worker=8, **law))
    assert fits.devices[0].devices_per_worker == 8


def test_a_published_law_speaks_of_the_fleets_that_were_measured():
    small = run_cost([POINT], config())
    assert [device.law for device in small.devices] == ["calibrated"]
    assert any("measured with 44 to 176 running requests a worker, and 35 were asked for" in n for n in small.notes)
    served = LoadPoint.of_means(440_000, 1e6, workers=144, running=88)
    assert [device.law for device in run_cost([served], config()).devices] == ["calibrated", "published slope"]
    crowded = LoadPoint.of_means(1_000_000, 1e6, workers=8, running=500)
    notes = run_cost([crowded], config(devices=("ascend-910c",))).notes
    assert any("measured with 8 to 96 running requests a worker, and 500 were asked for" in note for note in notes)


def test_rows_of_ones_own_move_the_law_and_say_how_much_surer_it_is(tmp_path):
    file = tmp_path / "my-steps.csv"
    file.write_text("running,context_tokens,step_time_ms\n8,2000,31\n32,2000,44\n35,2400,47\n")
    before = figures(run_cost([POINT], config()))["step_milliseconds"]
    outcome = run_cost([POINT], config(calibrate=str(file)))
    after = figures(outcome)["step_milliseconds"]
    assert after.high / after.low < 0.75 * before.high / before.low
    assert after.low < 47 * 1.1 and after.nominal == pytest.approx(47, rel=0.15)
    (note,) = (note for note in outcome.notes if "with the rows of" in note)
    assert "the 90 % interval of a step is 1." in note


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("running,step_time_ms\n1,2\n", "has no column context_tokens; it needs running, context_tokens and one of"),
        ("running,context_tokens\n1,2\n", "has no column of a step time; it needs running, context_tokens and one of"),
        (
            "running,context_tokens,step_time_ms,step_time_us\n1,2,3,4\n",
            "has 2 columns of a step's time, step_time_ms",
        ),
        ("running,context_tokens,step_time_ms,colour\n1,2,3,4\n", "has an unknown column colour; known are"),
        ("running,context_tokens,step_time_ms\n1,2,x\n", "line 2: step_time_ms is 'x'; expected a time above 0"),
        ("running,context_tokens,step_time_ms\n1,2,-3\n", "line 2: step_time_ms is '-3'; expected a time above 0"),
        ("running,context_tokens,step_time_ms\n1,2,0\n", "line 2: step_time_ms is '0'; expected a time above 0"),
        ("running,context_tokens,step_time_ms\n0,2,3\n", "line 2: .*running is 0.0; expected a number above 0"),
        ("running,context_tokens,step_time_ms,tp\n1,2,3,1.5\n", "line 2: tp is 1.5; expected a whole number"),
        ("running,context_tokens,step_time_ms,experts\n1,2,3,all\n", "line 2: experts are 'all'; expected parallel"),
    ],
)
def test_rows_that_cannot_be_are_refused(text, message, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        run_cost([POINT], config(calibrate=str(file)))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"devices": ()}, "no device was named"),
        ({"devices": ("h80",)}, "unknown device 'h80': did you mean h800"),
        ({"model": "deepseek"}, "unknown model 'deepseek': did you mean deepseek-v3"),
        ({"experts": "both"}, "unknown experts 'both': known: parallel, local"),
        ({"charge": "all"}, "unknown charge 'all': known: wait-spins, wait-idle, wait-busy"),
        ({"carbon": -1.0}, "carbon is -1.0; expected a finite number of zero or more"),
        ({"rental": float("nan")}, "rental is nan"),
        ({"overhead": 0.5}, "overhead is 0.5; .* 1 or more, up to 10"),
        ({"overhead": 130.0}, "overhead is 130.0; .* up to 10"),
        ({"draws": 10}, "draws is 10; expected 100 to 100000"),
        ({"devices_per_worker": 0}, "devices_per_worker is 0; expected 1 to 1,024"),
        ({"tokens_per_request": 0}, "tokens_per_request is 0; expected 1 to 8"),
        ({"accepted": 1.5}, "accepted is 1.5; expected more than 0 and at most 1"),
        ({"balancedness": 1.2}, "balancedness is 1.2; expected more than 0 and at most 1"),
        ({"kv_bytes": 0.0}, "kv_bytes is 0.0; expected more than 0 and at most 8"),
        ({"prompt_share": -1.0}, "prompt_share is -1.0; expected 0 to 1000"),
        ({"bill_devices": 0}, "bill_devices is 0; expected at least 1"),
        ({"calibrate": "a.csv", "step_time": "affine"}, "calibrate updates the calibrated law, and step_time replaces"),
        (
            {"step_time": "affine", "overlap": True},
            "overlap belongs to the calibrated law, and step_time replaces it; leave it out, or give step_time a law",
        ),
        (
            {"step_time": "affine", "prompt_share": 2.0, "balancedness": 0.8},
            "balancedness, prompt_share belong to the calibrated law, .*; leave them out, or .* calibrated:device",
        ),
        ({"step_time": "affine:fixed=0,per_token=0"}, "a step would take no time"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_configurations_that_cannot_be_are_refused(given, message):
    with pytest.raises(InputError, match=message):
        config(**given)


def test_two_cards_of_one_name_are_refused(tmp_path):
    import tomli_w

    mine = tmp_path / "mine.toml"
    mine.write_text(tomli_w.dumps(device_card("h800").to_dict()))
    with pytest.raises(InputError, match=r"the cards 'h800' and '.*mine.toml' are both named h800; give one of them"):
        config(devices=("h800", str(mine)))
