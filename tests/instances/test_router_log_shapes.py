"""One log written in any supported shape reads back to the same arrays."""

import gzip

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from instances.logs import EPOCH, check, csv_text, json_lines, plain, requests

from lbopt.exceptions import InputError
from lbopt.instances.router_log import read_router_log

SHAPES = st.fixed_dictionaries(
    {
        "seed": st.integers(0, 10_000),
        "count": st.integers(12, 60),
        "workers": st.integers(1, 12),
        "delimiter": st.sampled_from([",", ";", "\t", "|", "JSON"]),
        "unit": st.sampled_from(["s", "ms", "us", "ns", "date-time", "zoned"]),
        "epoch": st.booleans(),
        "named": st.booleans(),
        "shuffled": st.booleans(),
        "ids": st.booleans(),
        "packed": st.booleans(),
        "first_token": st.booleans(),
        "comma": st.booleans(),
        "worker": st.sampled_from(["{}", "pod-{}", "10.0.0.{}:8000"]),
    }
)


def stamps(seconds, shape):
    milliseconds = np.rint(1000 * seconds).astype(np.int64)
    if shape["unit"] in ("date-time", "zoned"):
        zone = 2 * 3_600_000 if shape["unit"] == "zoned" else 0
        suffix = "+02:00" if zone else ""
        return [str(np.datetime64(int(EPOCH * 1000 + m + zone), "ms")) + suffix for m in milliseconds]
    milliseconds = milliseconds + (EPOCH * 1000 if shape["epoch"] else 0)
    if shape["unit"] == "s":
        return [float(m) / 1000 for m in milliseconds]
    return [int(m) * {"ms": 1, "us": 10**3, "ns": 10**6}[shape["unit"]] for m in milliseconds]


def written(shape, data):
    """Return the columns of a log in a shape."""
    unit = shape["unit"] if shape["named"] and shape["unit"] in ("s", "ms", "us", "ns") else ""
    more = int(shape["first_token"])
    columns = plain(data, arrival=None, start=None, finish=None, prompt_tokens=data["prompt"] - more)
    columns["output_tokens"] = list(data["output"] + more)
    columns["worker"] = [shape["worker"].format(w) for w in data["worker"]]
    for name in ("arrival", "start", "finish"):
        called = "first_token" if more and name == "start" else name
        columns[called + (f"_{unit}" if unit else "")] = stamps(data[name], shape)
    if not shape["ids"]:
        del columns["request_id"]
    if shape["comma"] and shape["delimiter"] == ";" and shape["unit"] == "s":
        columns = {
            name: [str(cell).replace(".", ",") for cell in column] if name != "worker" else column
            for name, column in columns.items()
        }
    if shape["shuffled"]:
        order = np.random.default_rng(shape["seed"]).permutation(len(data["id"]))
        columns = {name: [column[i] for i in order] for name, column in columns.items()}
    return columns


@settings(max_examples=60, deadline=None)
@given(SHAPES)
def test_every_shape_reads_back_to_the_same_log(tmp_path_factory, shape):
    data = requests(shape["count"], min(shape["workers"], shape["count"] // 2), shape["seed"])
    columns = written(shape, data)
    text = json_lines(columns) if shape["delimiter"] == "JSON" else csv_text(columns, shape["delimiter"])
    path = tmp_path_factory.mktemp("shape") / "log"
    path.write_bytes(gzip.compress(text.encode()) if shape["packed"] else text.encode())
    log = read_router_log(path)
    check(log, data)
    assert log.left_out == {}
    if shape["ids"]:
        assert log.ids.tolist() == data["id"][np.lexsort((data["arrival"], data["start"]))].tolist()


CELLS = st.sampled_from(
    [
        "",
        "nan",
        "-",
        "0",
        "-1",
        "1e308",
        "1.5",
        "1,5",
        "2025-01-01T00:00:00Z",
        "2025-13-01T00:00:00Z",
        "0001-01-01",
        "9999-12-31T00:00:00Z",
        "text",
        "1e-320",
        "inf",
        "  ",
        "1_000",
        "true",
        "null",
        '"',
        "{}",
        "[1]",
        "9999999999999999999",
        "9999999999999999999999999",
    ]
)
COLUMNS = ["arrival", "start", "finish", "prompt_tokens", "output_tokens", "worker", "ttft_ms", "e2e", "tpot", "status"]


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(COLUMNS), st.integers(0, 29), CELLS, st.booleans()), min_size=1, max_size=4),
    st.sampled_from([None, *COLUMNS]),
    st.sampled_from([",", ";", "JSON"]),
)
def test_any_cell_is_read_or_refused_in_a_sentence_without_ids(tmp_path_factory, changes, lost, delimiter):
    data = requests(30)
    columns = {name: [str(cell) for cell in column] for name, column in plain(data).items() if name != lost}
    columns["request_id"] = [f"SECRET{i}" for i in range(30)]
    for name, row, cell, everywhere in changes:
        column = columns.setdefault(name, ["1"] * 30)
        columns[name] = [cell] * 30 if everywhere else [*column[:row], cell, *column[row + 1 :]]
    path = tmp_path_factory.mktemp("cells") / "log"
    text = csv_text(columns, delimiter) if delimiter != "JSON" else json_lines(columns)
    path.write_text(text, encoding="utf-8")
    try:
        log = read_router_log(path)
    except InputError as error:
        assert "SECRET" not in str(error)
        assert "\n" not in str(error)
    else:
        assert not any("SECRET" in note for note in log.notes)
        assert (log.arrival <= log.start).all()
        assert not (log.finish < log.start).any()
        assert len(log) + sum(log.left_out.values()) == 30
