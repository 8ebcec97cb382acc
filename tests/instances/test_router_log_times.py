"""Times of a router's log: units, date-times, durations, and their order."""

import numpy as np
import pytest
from instances.logs import EPOCH, check, csv_text, plain, requests
from instances.router_logs import DATA, cells, iso, read, refused, write

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

# -- units ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("unit", "factor"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
@pytest.mark.parametrize("origin", [0, EPOCH])
@pytest.mark.parametrize("named", ["{}_{}", "{} [{}]", "{}({})", "{}"])
def test_units(tmp_path, unit, factor, origin, named):
    columns = plain(DATA, arrival=None, start=None, finish=None)
    for name in ("arrival", "start", "finish"):
        milliseconds = [origin * 1000 + round(1000 * t) for t in DATA[name]]
        columns[named.format(name, unit)] = [m / 1000 if unit == "s" else m * (factor // 1000) for m in milliseconds]
    log = read(tmp_path, columns)
    check(log, DATA)
    assert {reading.unit for reading in log.columns if reading.quantity == "finish"} == {unit}
    assert log.origin == ("2025-01-01T00:00:00.000000000Z" if origin else None)


def test_a_unit_is_given(tmp_path):
    columns = plain(DATA, **{name: 60 * DATA[name] for name in ("arrival", "start", "finish")})
    scaled = {**DATA, **{name: 0.06 * DATA[name] for name in ("arrival", "start", "finish")}}
    check(read(tmp_path, columns, unit="ms"), scaled)
    with pytest.raises(InputError, match="unit is 'h'; expected s, ms, us or ns"):
        read(tmp_path, columns, unit="h")


def test_a_unit_that_the_name_says_wrongly_is_refused(tmp_path):
    columns = {f"{name}_ms" if name in ("arrival", "start", "finish") else name: c for name, c in plain(DATA).items()}
    assert "a token takes" in refused(tmp_path, columns)
    check(read(tmp_path, columns, unit="s"), DATA)


def test_an_absurd_unit_that_is_asked_for_is_noted(tmp_path):
    log = read(tmp_path, plain(DATA), unit="us")
    assert any("in the unit that the option named" in note for note in log.notes)


@pytest.mark.parametrize("suffix", ["", "Z", "+00:00"])
def test_date_times(tmp_path, suffix):
    times = {name: iso(DATA[name], suffix) for name in ("arrival", "start", "finish")}
    log = read(tmp_path, plain(DATA, **times))
    check(log, DATA)
    assert log.origin == "2025-01-01T00:00:00.000000000Z"


def test_date_times_of_the_logging_module(tmp_path):
    times = {
        name: [t.replace("T", " ").replace(".", ",") for t in iso(DATA[name], "")] for name in ("arrival", "start")
    }
    check(read(tmp_path, plain(DATA, **times, finish=iso(DATA["finish"]))), DATA)


def test_a_bad_date_time_is_refused(tmp_path):
    times = {name: iso(DATA[name]) for name in ("arrival", "start", "finish")}
    times["finish"][7] = "yesterday"
    assert "line 9: finish is 'yesterday'; expected a date-time" in refused(tmp_path, plain(DATA, **times))


@pytest.mark.parametrize(
    ("column", "hours", "said"), [("finish", -2, "before"), ("finish", 2, "behind"), ("arrival", 5.5, "before")]
)
def test_columns_in_different_zones_are_refused(tmp_path, column, hours, said):
    times = {name: iso(DATA[name] + (3600 * hours if name == column else 0)) for name in ("arrival", "start", "finish")}
    message = refused(tmp_path, plain(DATA, **times))
    assert f"{int(abs(hours))} h {round(abs(hours) % 1 * 60):02} min {said}" in message
    assert "zones differ" in message


def test_dates_beside_a_clock_are_refused(tmp_path):
    assert "do not count from the same moment" in refused(tmp_path, plain(DATA, arrival=iso(DATA["arrival"])))


# -- durations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1, 1000])
def test_durations_in_place_of_times(tmp_path, scale):
    columns = plain(DATA, start=None, finish=None)
    columns["queue_time"] = np.round(scale * (DATA["start"] - DATA["arrival"]), 6)
    columns["e2e_latency"] = np.round(scale * (DATA["finish"] - DATA["arrival"]), 6)
    log = read(tmp_path, columns)
    check(log, DATA)
    said = {reading.quantity: reading for reading in log.columns}
    assert said["start"].column == "arrival + queue_time"
    assert said["finish"].column == "arrival + e2e_latency"


def test_ttft_counts_the_first_token(tmp_path):
    columns = plain(DATA, start=None, output_tokens=DATA["output"] + 1, prompt_tokens=DATA["prompt"] - 1)
    columns["ttft_ms"] = np.round(1000 * (DATA["start"] - DATA["arrival"]), 3)
    check(read(tmp_path, columns), DATA)
    assert any("waits include prefill" in note for note in read(tmp_path, columns).notes)
    columns["ttft"] = columns.pop("ttft_ms")
    check(read(tmp_path, columns), DATA)


def test_first_token_times(tmp_path):
    columns = plain(DATA, output_tokens=DATA["output"] + 1, prompt_tokens=DATA["prompt"] - 1)
    columns["first_token_time"] = columns.pop("start")
    check(read(tmp_path, columns), DATA)
    columns["start"] = DATA["arrival"]  # when prefill was scheduled
    check(read(tmp_path, columns), DATA)
    del columns["arrival"]  # when the request started
    check(read(tmp_path, columns), DATA)


def test_one_token_needs_no_decode_step(tmp_path):
    columns = plain(DATA, output_tokens=cells(DATA["output"] + 1, {3: "1", 5: "0"}))
    columns["first_token"] = columns.pop("start")
    log = read(tmp_path, columns)
    assert log.left_out == {"no decode step": 2}
    assert len(log) == 38
    assert log.output.min() >= 1


def test_time_per_token_and_time_of_decoding(tmp_path):
    took = DATA["finish"] - DATA["start"]
    check(read(tmp_path, plain(DATA, finish=None, tpot_ms=1000 * took / DATA["output"])), DATA)
    check(read(tmp_path, plain(DATA, finish=None, decode_time=1000 * took)), DATA)


def test_a_ttft_of_unclear_unit_is_refused(tmp_path):
    columns = plain(DATA, start=None, finish=DATA["arrival"] + 40.0 + DATA["output"] * 0.02, ttft=[30.0] * 40)
    columns["finish"] = DATA["arrival"] + 35.0 + DATA["output"] * 0.02
    assert "'ttft' may be in s or in ms" in refused(tmp_path, columns)


def test_units_that_several_readings_leave_open_are_asked_for(tmp_path):
    columns = plain(DATA, start=None, finish=None, queue_time=[0.0] * 40)
    took = DATA["finish"] - DATA["arrival"]
    columns["e2e_latency_ms"] = np.round(1000 * took)
    slow = dict(columns, arrival=10 * DATA["arrival"])  # a worker that serves 0.5 requests in s, and 500 in ms
    assert "column 'arrival' may be in s or in ms; call it arrival_s or arrival_ms" in refused(tmp_path, slow)
    check(log := read(tmp_path, columns), {**DATA, "start": DATA["arrival"]})
    assert any("'arrival' was taken to be in s, by how busy workers are" in note for note in log.notes)
    mixed = dict(columns, ttft=np.round(DATA["start"] - DATA["arrival"], 3), e2e_latency=1000 * took)
    del mixed["e2e_latency_ms"], mixed["queue_time"]
    log = read(tmp_path, mixed)  # a first token after 0.3 ms is none
    assert {one.unit for one in log.columns if one.quantity == "start"} == {"s"}


def test_without_arrivals_waits_cannot_be_judged(tmp_path):
    log = read(tmp_path, plain(DATA, arrival=None))
    np.testing.assert_allclose(log.arrival, log.start)
    assert any("waits cannot be judged" in note for note in log.notes)


# -- order ------------------------------------------------------------------------------------------------------------


def test_swapped_columns_are_refused(tmp_path):
    message = refused(tmp_path, plain(DATA, start=DATA["finish"], finish=DATA["start"]))
    assert "line 2: finish (finish) lies" in message
    assert "swapped" in message


def test_skewed_clocks_are_refused(tmp_path):
    finish = DATA["finish"].copy()
    finish[::3] = DATA["start"][::3] - 0.2
    assert "the clocks of two machines differ" in refused(tmp_path, plain(DATA, finish=finish))


def test_few_rows_out_of_order_are_left_out(tmp_path):
    data = requests(3000)
    finish = data["finish"].copy()
    finish[7] = data["start"][7] - 1
    log = read(tmp_path, plain(data, finish=finish))
    assert log.left_out == {"times out of order": 1}
    assert any("1 rows are left out" in note for note in log.notes)
    assert len(log) == 2999


def test_a_millisecond_out_of_order_is_in_order(tmp_path):
    log = read(tmp_path, plain(DATA, arrival=np.where(np.arange(40) == 7, DATA["start"] + 0.0009, DATA["arrival"])))
    assert len(log) == 40
    assert (log.arrival <= log.start).all()


def test_requests_that_decode_absurdly_fast_are_refused(tmp_path):
    finish = np.where(np.arange(40) % 3 == 0, DATA["start"] + 0.0001, DATA["finish"])
    assert "tokens a second" in refused(tmp_path, plain(DATA, finish=finish))


def test_swapped_prompt_and_output_are_refused(tmp_path):
    message = refused(tmp_path, plain(DATA, prompt_tokens=DATA["output"], output_tokens=DATA["prompt"]))
    assert "as long to decode as their prompts are long" in message
    assert "--column prompt=NAME --column output=NAME" in message


def test_one_column_that_counts_otherwise_is_refused(tmp_path):
    data = requests(400)
    message = refused(tmp_path, plain(data, finish=1000 * data["finish"]))  # milliseconds break no order
    assert "do not follow the output" in message
    assert "do not follow the output" in refused(tmp_path, plain(data, finish=EPOCH + data["finish"]))


def test_times_that_are_too_coarse_are_refused(tmp_path):
    columns = plain(DATA, **{name: np.floor(DATA[name] / 2) * 2 for name in ("arrival", "start", "finish")})
    assert "the times are too coarse" in refused(tmp_path, columns)
    data = requests(200)
    data["finish"] = data["start"] + 0.1 * data["output"]
    times = {name: np.floor(data[name]) for name in ("arrival", "start", "finish")}
    assert any("whole seconds" in note for note in read(tmp_path, plain(data, **times)).notes)


def test_a_last_line_that_is_cut_within_a_number_is_refused(tmp_path):
    text = csv_text({**plain(DATA, finish=None), "finish": list(DATA["finish"])}).rstrip()
    with pytest.raises(InputError, match=r"line 41: finish .* before start.*may be truncated"):
        read_router_log(write(tmp_path, text[: text.rindex(",") + 2]))


def test_arrivals_that_cannot_be_read_are_not_passed_over(tmp_path):
    message = refused(tmp_path, plain(DATA, arrival=["11/16/2025 10:00"] * 40))
    assert "column 'arrival' holds text; expected times" in message
