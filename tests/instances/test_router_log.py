"""Logs of routers: formats, names, units, and everything that a log may say wrongly."""

import gzip
import json
import sys

import pytest
from instances.logs import check, csv_text, json_lines, plain, requests
from instances.router_logs import DATA, cells, iso, read, refused, write

from lbopt.exceptions import InputError
from lbopt.instances.router_log import FINISHED, read_router_log

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
