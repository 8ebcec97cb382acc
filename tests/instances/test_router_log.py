"""Logs of routers: formats, names, units, and everything that a log may say wrongly."""

import gzip
import json
import sys

import numpy as np
import pytest
from instances.logs import EPOCH, check, csv_text, json_lines, plain, requests

from lbopt.exceptions import InputError
from lbopt.instances.router_log import FINISHED, RUNNING, read_router_log

DATA = requests()


def write(tmp_path, text, name="log.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(tmp_path, table, **options):
    return read_router_log(write(tmp_path, csv_text(table)), **options)


def refused(tmp_path, table, **options):
    with pytest.raises(InputError) as error:
        read(tmp_path, table, **options)
    assert "r7" not in str(error.value)
    return str(error.value)


def iso(seconds, suffix="Z"):
    return [str(np.datetime64(EPOCH * 1000 + round(1000 * t), "ms")) + suffix for t in seconds]


def cells(values, changes):
    """Texts of a column with some cells replaced."""
    texts = [str(value) for value in values]
    for place, text in changes.items():
        texts[place] = text
    return texts


# -- files ------------------------------------------------------------------------------------------------------------

TEXT = csv_text(plain(DATA))
FILES = {
    "comma": TEXT,
    "semicolon": csv_text(plain(DATA), ";"),
    "tab": csv_text(plain(DATA), "\t"),
    "bar": csv_text(plain(DATA), "|"),
    "CRLF": TEXT.replace("\n", "\r\n"),
    "no final newline": TEXT.rstrip(),
    "BOM": b"\xef\xbb\xbf" + TEXT.encode(),
    "gzip": gzip.compress(TEXT.encode()),
    "blank lines": TEXT.replace("\n", "\n\n", 5) + "\n  \n",
    "JSON lines": json_lines(plain(DATA)),
    "JSON lines with a blank one": json_lines(plain(DATA)).replace("\n", "\n\n", 3),
    "JSON array": json.dumps([json.loads(line) for line in json_lines(plain(DATA)).splitlines()], indent=1),
    "JSON below a key": json.dumps({"requests": [json.loads(line) for line in json_lines(plain(DATA)).splitlines()]}),
    "nested JSON": "".join(f'{{"meta_info": {line}}}\n' for line in json_lines(plain(DATA)).splitlines()),
}


@pytest.mark.parametrize("kind", FILES)
def test_each_kind_of_file_reads_the_same(tmp_path, kind):
    log = read_router_log(write(tmp_path, FILES[kind]))
    check(log, DATA)
    assert log.left_out == {}
    assert log.name == "log.csv"
    assert set(log.ending) == {FINISHED}


def test_parquet(tmp_path):
    pd = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pd.DataFrame(plain(DATA))
    frame["finish"] = pd.to_datetime(iso(DATA["finish"]))
    frame["arrival"] = pd.to_datetime(iso(DATA["arrival"], "+00:00"))
    frame["start"] = pd.to_datetime(iso(DATA["start"], "+00:00"))
    frame.to_parquet(tmp_path / "log.parquet")
    check(read_router_log(tmp_path / "log.parquet"), DATA)


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pyarrow is not installed; pip install 'lbopt\[parquet\]'"):
        read_router_log(write(tmp_path, b"PAR1...."))


def test_a_header_in_the_middle_is_skipped_and_counted(tmp_path):
    lines = TEXT.splitlines()
    log = read_router_log(write(tmp_path, "\n".join([*lines[:9], lines[0], *lines[9:]])))
    check(log, DATA)
    assert log.left_out == {"repeated header": 1}


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda line: line + ",", "line 6: 8 fields; expected 7"),
        (lambda line: line.rsplit(",", 1)[0], "line 6: 6 fields; expected 7"),
        (lambda line: '"' + line, "not a CSV row"),
    ],
)
def test_a_row_of_another_width_is_refused(tmp_path, spoil, said):
    lines = TEXT.splitlines()
    lines[5] = spoil(lines[5])
    with pytest.raises(InputError, match=said):
        read_router_log(write(tmp_path, "\n".join(lines)))


def test_every_row_one_field_wider_than_the_header_is_refused(tmp_path):
    """Pandas takes the first column for an index, and every column for its neighbour."""
    lines = TEXT.splitlines()
    with pytest.raises(InputError, match="line 2: 8 fields; expected 7"):
        read_router_log(write(tmp_path, "\n".join([lines[0], *("0," + line for line in lines[1:])])))


@pytest.mark.parametrize("end", [-3, -25])
def test_a_truncated_last_line_is_refused(tmp_path, end):
    wide = csv_text({**plain(DATA), "note": ["fine"] * 40}).rstrip()
    last = wide[: wide.rindex("\n") + 1]
    text = last + wide.rsplit("\n", 1)[1].rsplit(",", 2 if end < -10 else 1)[0] + ("," if end == -3 else "")
    with pytest.raises(InputError, match=r"line 41.*may be truncated"):
        read_router_log(write(tmp_path, text))


def test_truncated_json_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"line 40: .*truncated"):
        read_router_log(write(tmp_path, FILES["JSON lines"][:-30]))
    with pytest.raises(InputError, match="truncated"):
        read_router_log(write(tmp_path, FILES["JSON array"][:-30]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("worker\n1\n", "one column"),
        ("a,b\n", "no row below its header"),
        ("1,2,3\n4,5,6\n", "line 1 holds numbers"),
        ("a,a,b\n1,2,3\n", "2 columns are called 'a'"),
        ('{"a": 1,\n "b": 2}', "is one JSON object"),
        ('{"a": 1}\n7\n', "line 2 is 7; expected a JSON object"),
    ],
)
def test_what_is_no_log_is_refused(tmp_path, text, said):
    with pytest.raises(InputError, match=said):
        read_router_log(write(tmp_path, text))


# -- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("separator", [",", " ", "_", "\u202f", "'"])
def test_thousands_separators(tmp_path, separator):
    columns = plain(DATA, prompt_tokens=[f"{n:,}".replace(",", separator) for n in DATA["prompt"]])
    check(read_router_log(write(tmp_path, csv_text(columns, ";"))), DATA)
    check(read_router_log(write(tmp_path, csv_text(columns))), DATA)


def test_decimal_commas(tmp_path):
    columns = {name: [str(cell).replace(".", ",") for cell in column] for name, column in plain(DATA).items()}
    check(read_router_log(write(tmp_path, csv_text(columns, ";"))), DATA)


def test_thousands_in_milliseconds(tmp_path):
    columns = plain(DATA, arrival=None, start=None, finish=None)
    for name in ("arrival", "start", "finish"):
        columns[f"{name}_ms"] = [f"{round(1000 * t):,}" for t in DATA[name]]
    check(read_router_log(write(tmp_path, csv_text(columns, ";"))), DATA)


@pytest.mark.parametrize(
    ("column", "cell", "said"),
    [
        ("prompt_tokens", "-5", "line 9: prompt_tokens is '-5'"),
        ("prompt_tokens", "many", "line 9: prompt_tokens is 'many'"),
        ("prompt_tokens", "12.5", "line 9: prompt_tokens is '12.5'"),
        ("prompt_tokens", "", "line 9: no prompt"),
        ("output_tokens", "-1", "line 9: output_tokens is '-1'"),
        ("output_tokens", "1e99", "line 9: output_tokens"),
        ("worker", "", "line 9: no worker"),
        ("arrival", "", "line 9: no arrival"),
        ("start", "soon", "line 9: start is 'soon'"),
        ("finish", "inf", "line 9: finish is 'inf'"),
    ],
)
def test_a_bad_cell_is_refused_with_its_line(tmp_path, column, cell, said):
    columns = plain(DATA)
    columns[column] = cells(columns[column], {7: cell})
    assert said in refused(tmp_path, columns)


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


def test_without_arrivals_waits_cannot_be_judged(tmp_path):
    log = read(tmp_path, plain(DATA, arrival=None))
    np.testing.assert_allclose(log.arrival, log.start)
    assert any("waits cannot be judged" in note for note in log.notes)


# -- columns ----------------------------------------------------------------------------------------------------------


def test_names_are_recognised_without_their_spelling(tmp_path):
    columns = plain(DATA)
    spelled = ["Request-ID", "Arrival Time", "Start.Time", "FinishedAt", "InputTokens", "completion_tokens", "POD NAME"]
    log = read(tmp_path, dict(zip(spelled, columns.values(), strict=True)))
    check(log, DATA)
    assert {reading.column for reading in log.columns} == set(spelled)
    assert not any(reading.given for reading in log.columns)


def test_columns_are_named(tmp_path):
    columns = plain(DATA, worker=None, a=DATA["worker"], b=DATA["prompt"], worker_id=[0] * 40)
    log = read(tmp_path, columns, columns={"worker": "a", "prompt": "b"})
    check(log, {**DATA, "prompt": DATA["prompt"]})
    assert {(r.quantity, r.column) for r in log.columns if r.given} == {("worker", "a"), ("prompt", "b")}


def test_wrong_options_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no column 'wroker' for worker; .*did you mean 'worker'"):
        read(tmp_path, plain(DATA), columns={"worker": "wroker"})
    with pytest.raises(InputError, match=r"'promt' is no quantity of a log; .*did you mean 'prompt'"):
        read(tmp_path, plain(DATA), columns={"promt": "prompt_tokens"})


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("worker", "which worker served a request: no column is called like it; name it with --column worker=NAME"),
        ("prompt_tokens", "how many tokens a prompt has"),
        ("output_tokens", "how many tokens were generated"),
        ("start", "when decoding started"),
        ("finish", "when a request finished"),
    ],
)
def test_a_missing_quantity_is_named_with_the_columns(tmp_path, column, said):
    message = refused(tmp_path, plain(DATA, **{column: None}))
    assert said in message
    assert "the columns are " in message


def test_text_of_prompts_is_not_their_length(tmp_path):
    check(read(tmp_path, plain(DATA, prompt=["Say it"] * 40)), DATA)
    message = refused(tmp_path, plain(DATA, prompt_tokens=None, prompt=["Say it"] * 40))
    assert "column 'prompt' holds text; expected whole numbers" in message


def test_two_workers_that_differ_are_refused(tmp_path):
    columns = plain(DATA, dp_rank=DATA["prompt"] % 2)
    message = refused(tmp_path, columns)
    assert "'worker' and 'dp_rank' both may say which worker" in message
    assert "--column worker=NAME" in message
    check(read(tmp_path, columns, columns={"worker": "worker"}), DATA)
    assert len(read(tmp_path, columns, columns={"worker": "worker+dp_rank"}).workers) == 6


def test_a_column_that_follows_from_the_worker_is_no_second_one(tmp_path):
    check(read(tmp_path, plain(DATA, node=[f"rack{w // 2}" for w in DATA["worker"]])), DATA)


def test_two_prompts_that_differ_are_refused(tmp_path):
    columns = plain(DATA, input_tokens=DATA["prompt"] + 1)
    assert "'prompt_tokens' and 'input_tokens' both may say how many tokens a prompt has" in refused(tmp_path, columns)
    check(read(tmp_path, {**columns, "input_tokens": DATA["prompt"]}), DATA)


def test_a_worker_of_each_row_is_none(tmp_path):
    assert "has 40 values in 40 rows" in refused(tmp_path, plain(DATA, worker=[f"host{i}" for i in range(40)]))


@pytest.mark.parametrize("pattern", ["dp{}", "10.0.0.3:8000/dp{}", "{}.0", "pod-{}-x"])
def test_workers_are_in_natural_order(tmp_path, pattern):
    data = requests(60, 12)
    log = read(tmp_path, plain(data, worker=[pattern.format(w) for w in data["worker"]]))
    check(log, data)
    assert log.workers == tuple((pattern if pattern != "{}.0" else "{}").format(w) for w in range(12))


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


# -- endings ----------------------------------------------------------------------------------------------------------


def test_a_request_that_still_runs(tmp_path):
    log = read(
        tmp_path,
        plain(DATA, finish=cells(DATA["finish"], {3: "", 5: "NaN"}), output_tokens=cells(DATA["output"], {9: ""})),
    )
    running = log.ending == RUNNING
    assert running.sum() == 3
    assert np.isnan(log.finish[running]).all()
    assert sorted(log.output[running]) == sorted([DATA["output"][3], DATA["output"][5], 0])


def test_words_of_status(tmp_path):
    words = {
        "stop": "finished",
        "LENGTH": "finished",
        "200": "finished",
        "FinishReason.STOP": "finished",
        "client_disconnect": "cancelled",
        "499": "cancelled",
        "Abort": "cancelled",
        "timeout": "timed out",
        "504": "timed out",
        "evicted": "pre-empted",
        "retry": "retried",
        "503": "cancelled",
        "error": "cancelled",
        "{'type': 'abort', 'message': 'x'}": "cancelled",
    }
    status = [*words, *["ok"] * (40 - len(words))]
    log = read(tmp_path, plain(DATA, status=status))
    by_id = dict(zip(log.ids.tolist(), log.ending.tolist(), strict=True))
    assert [by_id[f"r{i}"] for i in range(len(words))] == list(words.values())
    assert any("2 attempts failed with an error" in note for note in log.notes)


def test_the_worse_of_two_status_columns_counts(tmp_path):
    log = read(tmp_path, plain(DATA, status=["200"] * 40, finish_reason=cells(["stop"] * 40, {7: "abort"})))
    assert (log.ending == "cancelled").sum() == 1


def test_an_unknown_word_is_refused_where_it_is_frequent(tmp_path):
    columns = plain(DATA, status=cells(["ok"] * 40, {7: "zonk"}))
    assert "line 9: status is 'zonk'" in refused(tmp_path, columns)
    check(read(tmp_path, columns, columns={"status": ""}), DATA)
    check(read(tmp_path, columns, columns={"status": "-"}), DATA)
    data = requests(300)
    log = read(tmp_path, plain(data, status=cells(["ok"] * 300, {7: "zonk"})))
    assert log.left_out == {"unknown status": 1}


def test_a_request_that_never_started_is_left_out(tmp_path):
    columns = plain(DATA, start=cells(DATA["start"], {7: ""}), finish=cells(DATA["finish"], {7: ""}))
    log = read(tmp_path, {**columns, "worker": cells(DATA["worker"], {7: ""})})
    assert log.left_out == {"never started to decode": 1}


def test_a_finished_request_without_a_start_is_counted(tmp_path):
    log = read(tmp_path, plain(DATA, start=cells(DATA["start"], {7: "", 9: ""})))
    assert log.left_out == {"no start of decoding": 2}
    assert any("workers held more than is seen" in note for note in log.notes)


def test_no_request_that_started_is_refused(tmp_path):
    assert "holds no request" in refused(
        tmp_path, plain(DATA, start=[*[""] * 39, "1.0"], finish=[""] * 39 + ["2.0"], output_tokens=["0"] * 40), unit="s"
    )


# -- ids --------------------------------------------------------------------------------------------------------------


def again(columns, place, **changes):
    """Columns with a copy of one row at the end, some of its cells changed."""
    return {name: [*column, changes.get(name, column[place])] for name, column in columns.items()}


def test_doubled_rows_are_counted(tmp_path):
    log = read(tmp_path, again(again(plain(DATA), 7), 8))
    check(log, DATA)
    assert log.left_out == {"doubled": 2}


def test_identical_rows_without_ids(tmp_path):
    columns = plain(DATA, request_id=None)
    log = read(tmp_path, columns)
    check(log, DATA)
    assert len(set(log.ids)) == 40
    assert "identical to an earlier one" in refused(tmp_path, again(columns, 7))
    log = read(tmp_path, again(plain(requests(300), request_id=None), 7))
    assert len(log) == 301
    assert any("1 rows are identical" in note for note in log.notes)


def test_attempts_before_the_last_are_retried(tmp_path):
    columns = plain(DATA, status=cells(["ok"] * 40, {7: "timeout", 8: "evicted"}))
    late = {"start": DATA["start"][7] + 50, "finish": DATA["finish"][7] + 50, "status": "ok"}
    log = read(
        tmp_path,
        again(
            again(columns, 7, **late), 8, **late | {"start": DATA["start"][8] + 50, "finish": DATA["finish"][8] + 50}
        ),
    )
    assert log.ending[log.ids == "r7"].tolist() == ["retried", FINISHED]
    assert log.ending[log.ids == "r8"].tolist() == ["pre-empted", FINISHED]


def test_finished_twice_at_once_is_refused(tmp_path):
    other = {"worker": (DATA["worker"][7] + 1) % 3, "start": DATA["start"][7] + 0.001}
    message = refused(tmp_path, again(plain(DATA), 7, **other))
    assert "line 9 and line 42 have one id" in message
    assert "--column id=NAME" in message
    log = read(tmp_path, again(plain(DATA), 7, start=DATA["start"][7] + 0.001))  # one worker: the first was in vain
    assert log.ending[log.ids == "r7"].tolist() == ["retried", FINISHED]


def test_finished_one_after_the_other_is_noted(tmp_path):
    log = read(tmp_path, again(plain(DATA), 7, start=DATA["start"][7] + 50, finish=DATA["finish"][7] + 50))
    assert (log.ending == FINISHED).all()
    assert any("1 ids name several finished requests" in note for note in log.notes)


def test_cached_tokens_and_models_are_remarked_on(tmp_path):
    log = read(tmp_path, plain(DATA, cached_tokens=DATA["prompt"] // 2, model=["a", "b"] * 20))
    assert any("of the prompt tokens were cached" in note for note in log.notes)
    assert any("2 models" in note for note in log.notes)
    log = read(tmp_path, plain(DATA, cached_tokens=DATA["prompt"] * 2))
    assert any("exceeds the prompt" in note for note in log.notes)
