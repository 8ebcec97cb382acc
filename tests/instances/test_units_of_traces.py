"""Which unit arrival times are in, how many tokens a block has, and which requests come after an answer."""

import json

import numpy as np
import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances.readers import Columns, read
from lbopt.instances.readers.prefixes import block_size
from lbopt.instances.readers.records import OPEN_END

RATE = 4.0  # requests a second, of which no two come at the same millisecond


def file_of(tmp_path, times, **others):
    rng = np.random.default_rng(7)
    path = tmp_path / "t.jsonl"
    rows = [
        {"timestamp": time, "input_length": int(size), "output_length": 5} | others
        for time, size in zip(times, rng.integers(100, 3000, len(times)), strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def arrivals(count=60):
    return np.cumsum(np.random.default_rng(3).exponential(1 / RATE, count)) + 5


@pytest.mark.parametrize("others", [{}, {"chat_id": 3, "parent_chat_id": -1}])
def test_unit_of_what_the_values_say(tmp_path, others):
    """Mooncake's form says milliseconds and Bailian's seconds; what contradicts the values is asked for."""
    seconds, span = arrivals(), arrivals()[-1] - arrivals()[0]
    whole = np.rint(1000 * seconds).astype(int).tolist()
    form = "s" if others else "ms"

    def unit_of(times, wanted=None, **options):
        reading = read(file_of(tmp_path, times, **others), **options)
        assert reading.unit == (wanted or options["unit"])
        assert abs(reading.trace.arrival[-1] - span) < 0.002
        return reading

    fractions = [f"{time:.3f}" for time in seconds]  # at 4 and not at 4,000 requests a second
    for scale, unit in ((1, "s"), (10**3, "ms"), (10**6, "us"), (10**9, "ns")):  # since 1970
        unit_of([int((1.7e9 + time) * scale) if scale > 1 else 1.7e9 + time for time in seconds], unit)
    if form == "ms":
        unit_of(whole, "ms")
        unit_of([float(time) for time in whole], "ms")
        unit_of((1000 * seconds).tolist(), "ms")
        with pytest.raises(InputError, match=r"may be in milliseconds .* or seconds"):  # 23 days after a start, or 2033
            unit_of([time + 2 * 10**9 for time in whole], "ms")
        for times in (fractions, np.arange(60).tolist(), (1e6 * seconds).round().tolist()):
            with pytest.raises(InputError, match=r"timestamp may be in milliseconds \(.*; name the unit, --unit ms or"):
                unit_of(times, "ms")
    else:
        with pytest.raises(InputError, match=r"may be in seconds \(.*0\.00.* or milliseconds .*--unit s or ms"):
            unit_of(whole, "s")
        unit_of(whole, unit="ms")
        unit_of(fractions, "s")
        unit_of(seconds.round(3).tolist(), "s")


def test_whole_times_that_two_units_make_usual_are_asked_for(tmp_path):
    """Seconds at 0.05 requests a second are milliseconds at 50; what else the file says decides."""
    times = np.cumsum(np.random.default_rng(3).integers(1, 40, 60))
    with pytest.raises(InputError, match=r"timestamp may be in milliseconds \(.* or seconds \(.*--unit ms or s"):
        read(file_of(tmp_path, times.tolist()))
    with pytest.raises(InputError, match=r"timestamp may be in seconds \(.*--unit s or ms"):
        read(file_of(tmp_path, times.tolist(), chat_id=1))
    assert read(file_of(tmp_path, times.tolist(), timestamp_unit="s")).unit == "s"
    assert read(file_of(tmp_path, times.tolist()), unit="s").trace.arrival[-1] == times[-1] - times[0]
    coarse = np.arange(60) // 15 * 1000  # of a clock of whole seconds
    assert read(file_of(tmp_path, coarse.tolist())).unit == "ms"


def test_rows_of_another_format_behind_the_first_are_refused(tmp_path):
    rows = [{"timestamp": 250 * n, "input_length": 9, "output_length": 5} for n in range(40)]
    path = tmp_path / "t.jsonl"
    lengths = [{name: value for name, value in row.items() if name != "timestamp"} for row in rows]
    bailian = [{**row, "chat_id": n, "timestamp": row["timestamp"] / 1000} for n, row in enumerate(rows)]
    for first, second, forms in (
        (rows, bailian, "mooncake or bailian"),
        (bailian, rows, "bailian or mooncake"),
        (lengths, rows, "lengths or mooncake"),
    ):
        path.write_text("".join(json.dumps(row) + "\n" for row in (*first[:30], *second[30:])))
        with pytest.raises(InputError, match=f"line 31 is a row of .* name one format for all rows, --format {forms}"):
            read(path)
    assert read(path, format="lengths").trace.arrival is None


def test_a_last_line_without_its_end_is_noted_or_refused(tmp_path, caplog):
    path = tmp_path / "t.csv"
    whole = "prompt_tokens,output_tokens,arrived_s\n" + "".join(f"9,{n + 200},{n}.250\n" for n in range(9))
    path.write_text(whole.rstrip())
    assert read(path).notes == (OPEN_END,)
    assert "the last line has no end" in caplog.text
    azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.68,9,22\n2023-11-16 18:15:47.68,9,"
    for end in ("22", ""):
        path.write_text(azure + end)
        assert read(path).notes == (OPEN_END,)
    path.write_text(whole)
    assert read(path).notes == ()
    for cut in (2, 3, 4):
        path.write_text(whole[:-cut])
        with pytest.raises(InputError, match=r"line 10 ends after '8.*may be truncated"):
            read(path)


def test_a_file_may_say_the_unit_itself(tmp_path):
    """As `lbopt serve export` does: a fast engine's milliseconds have fractions, too."""
    path = file_of(tmp_path, [time + 0.125 for time in range(60)], timestamp_unit="ms")
    assert read(path).trace.arrival[-1] == 0.059


def test_unit_of_a_column_of_ones_own(tmp_path):
    """The name of a column says its unit; without one, seconds are doubted where they make traffic slow."""
    path, columns = tmp_path / "t.csv", Columns("p", "o", "arrived")
    times = np.rint(1000 * arrivals()).astype(int)

    def write(header):
        path.write_text(header + "".join(f"{time},100,5\n" for time in times))

    write("arrived,p,o\n")
    with pytest.raises(InputError, match=r"arrived may be in seconds .* or milliseconds"):
        read(path, columns=columns)
    assert read(path, columns=columns, unit="ms").trace.arrival[-1] < 100
    write("arrived_ms,p,o\n")
    assert read(path, columns=Columns("p", "o", "arrived_ms")).unit == "ms"
    with pytest.raises(InputError, match="no unit of time 'min'; expected s, ms, us, ns"):
        read(path, columns=columns, unit="min")


def test_size_of_blocks():
    prompt = np.random.default_rng(1).integers(20, 9000, 50)
    for size in (16, 64, 128, 512):
        for usual in (16, 512):
            assert block_size(prompt, -(-prompt // size), usual) == size
            assert block_size(prompt, prompt // size, usual) == size
    assert block_size(prompt, np.ones(50, dtype=np.int64), 16) == 16  # numbers of the beginning only
    assert block_size(prompt, prompt + 3, 512) is None


def test_lines_of_lengths_and_requests_that_come_after_an_answer(tmp_path, caplog):
    path = tmp_path / "t.jsonl"
    rows = [json.loads(line) for line in texts.MOONCAKE.splitlines()]

    def reading(*records, **options):
        path.write_text("\n".join(map(json.dumps, records)))
        return read(path, **options)

    untimed = [{name: value for name, value in row.items() if name != "timestamp"} for row in rows]
    assert reading(*untimed).trace.arrival is None
    assert reading(*rows, format="lengths").trace.arrival is None
    with pytest.raises(InputError, match=r"line 2: no field 'timestamp'; .*--format lengths, for --arrivals closed"):
        reading(rows[0], untimed[1])
    found = reading(rows[0], untimed[1], rows[2], skip_malformed=True)
    assert found.trace.prompt.tolist() == [6955, 12]
    assert len(found.trace.prefixes) == 2

    path.write_text(texts.TURNS)
    assert read(path).later == 2
    assert "2 of 4 requests of 2 sessions come after an answer" in caplog.text

    header = {"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": 64}
    first = {"request_id": "a", "input_tokens": 130, "output_tokens": 3, "hash_ids": [1, 2, 3], "created_time": 5}
    found = reading(header, first, first | {"wait_for": ["a"], "created_time": None})
    assert (found.later, found.trace.prefixes.block_tokens, found.trace.prompt.tolist()) == (1, 64, [130, 130])


def test_objects_in_a_list_with_dates_or_with_names_of_ones_own(tmp_path):
    path = tmp_path / "t.json"
    rows = [json.loads(line) for line in texts.BAILIAN.splitlines()]
    for document in (rows, {"made": "by hand", "data": rows}):
        for indent in (None, 1):
            path.write_text(json.dumps(document, indent=indent))
            found = read(path)
            assert (found.format, found.unit, found.trace.arrival.tolist()[-1]) == ("bailian", "s", 63.25 - 61.114)
    lines = [row | {"data": {}, "timestamp": f"2024-12-01T00:00:0{2 * k}.5Z"} for k, row in enumerate(rows)]
    path.write_text("\n".join(map(json.dumps, lines)))
    assert read(path).trace.arrival.tolist() == [0, 2, 4]
    lines[1]["timestamp"] = "2024-12-01T99:00:00"
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match=r"line 2: timestamp is '2024-12-01T99:00:00', which is no date-time"):
        read(path)
    assert read(path, skip_malformed=True).trace.arrival.tolist() == [0, 4]
    lines[1]["timestamp"] = 5
    path.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(InputError, match="line 2: timestamp is 5; expected a date-time, as in the rows before"):
        read(path)

    path.write_text(
        '{"in": 7, "out": 2, "sent_ms": 1700000000000, "delay": 3}\n{"in": 8, "out": 2, "sent_ms": 1700000000250}'
    )
    assert read(path, columns=Columns("in", "out", "sent_ms")).trace.arrival.tolist() == [0, 0.25]


def test_what_holds_no_requests_says_what_it_is(tmp_path):
    for text, match in (
        ("[2024-01-01 00:00:00] INFO x\n", "is a line of a log and no JSON"),
        ("0,1.33,8.59,Weibull,0.37,0.39\n600,0,0,,0,0\n", "describes a client of ServeGen"),
        ('{\n "0": {\n  "input_tokens": "{224: 0.1}"}}', "describes a client of ServeGen"),
        ('{\n"input_length": 1,\n"output_length": 2\n}\n{\n"input_length": 1}', "each object on a line of its own"),
    ):
        (tmp_path / "t").write_text(text)
        with pytest.raises(InputError, match=match):
            read(tmp_path / "t")
