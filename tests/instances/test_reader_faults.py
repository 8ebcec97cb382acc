"""What a reader refuses, and that it says so in one sentence with the file and the place."""

import gzip
import os
import tracemalloc
from pathlib import Path

import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.files import blocks
from lbopt.instances.readers import Columns, formats, read_trace

BURST = texts.BURSTGPT_OLD
AZURE = texts.AZURE_2023
MOON = texts.MOONCAKE
LINE_1 = r"line 1: "


def refused(tmp_path, data, match, **options):
    path = tmp_path / "t.csv"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(InputError, match=match) as caught:
        read_trace(path, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    assert len(message) < 700
    return message


ROWS = {
    "word": (BURST.replace("1087", "many"), r"line 3: Request tokens is 'many'; expected a whole number"),
    "fraction": (BURST.replace("1087", "10.5"), r"line 3: Request tokens is '10\.5'; expected a whole"),
    "negative prompt": (BURST.replace("1087", "-1"), r"line 3: Request tokens is '-1'"),
    "negative output": (BURST.replace(",230,", ",-230,"), r"line 3: Response tokens is '-230'"),
    "empty prompt": (BURST.replace("1087", ""), r"line 3: Request tokens is ''"),
    "nan": (BURST.replace("1087", "NaN"), r"line 3: Request tokens is 'NaN'"),
    "too large a float": (BURST.replace("1087", "1e400"), r"line 3: Request tokens is '1e400'"),
    "too many tokens": (BURST.replace("1087", "1000000001"), r"line 3: .*at most 1,000,000,000 tokens"),
    "thousands of digits": (BURST.replace("1087", "9" * 5000), r"line 3: Request tokens is '999"),
    "underscore": (BURST.replace("1087", "1_087"), r"line 3: Request tokens is '1_087'"),
    "foreign digits": (BURST.replace("1087", "١٠"), r"line 3: Request tokens"),
    "hex": (BURST.replace("1087", "0x10"), r"line 3: Request tokens is '0x10'"),
    "bool": (BURST.replace("1087", "True"), r"line 3: Request tokens is 'True'"),
    "time word": (BURST.replace("45,", "soon,"), r"line 3: Timestamp is 'soon'; expected a time in seconds"),
    "time empty": (BURST.replace("45,", ","), r"line 3: Timestamp is ''"),
    "time infinite": (BURST.replace("45,", "inf,"), r"line 3: Timestamp is 'inf'"),
    "time negative": (BURST.replace("45,", "-45,"), r"line 3: Timestamp is '-45'"),
    "time absurd": (BURST.replace("45,", "1e300,"), r"line 3: Timestamp is '1e300'; .*beyond any calendar"),
    "too few": (BURST.replace(",1317,Conversation log", ""), r"line 3: 4 fields; expected 6 \(Timestamp"),
    "too many": (BURST.replace("1317,", "1317,1,"), r"line 3: 7 fields; expected 6"),
    "too few, then too many": (BURST.replace("1317,", "").replace("693,", "693,1,"), r"line 3: 5 fields; expected 6"),
    "cut last row": (BURST[:-25], r"line 4: 2 fields; expected 6"),
    "one field": (BURST.replace("45,ChatGPT,1087,230,1317,Conversation log", "x"), r"line 3: 1 field; expected 6"),
    "empty line": (BURST.replace("45,", "\n45,"), r"line 3: an empty line between rows"),
    "open quote": (BURST.replace("GPT-4", '"GPT-4'), r"not a CSV row"),
    "long field": (BURST.replace("GPT-4", "x" * 200_000) + '"', r"line 4: not a CSV row \(field larger"),
    "date word": (AZURE.replace("2023-11-16 18:15:50.9951690", "now"), r"line 3: TIMESTAMP is 'now'; expected a date"),
    "date impossible": (AZURE.replace("16 18:15:50", "31 18:15:50"), r"line 3: TIMESTAMP is '2023-11-31"),
    "date empty": (AZURE.replace("2023-11-16 18:15:50.9951690", ""), r"line 3: TIMESTAMP is ''"),
    "date far": (AZURE.replace("2023-11-16 18:15:50", "1492-11-16 18:15:50"), r"line 3: TIMESTAMP is '1492"),
    "mooncake cut": (MOON[:-20], r"line 3: not valid JSON \(column "),
    "mooncake no time": (
        MOON.replace('"timestamp": 30535, ', ""),
        r"line 2: no field 'timestamp'; it has input_length",
    ),
    "mooncake no output": (MOON.replace('"output_length": 26, ', ""), r"line 2: no field 'output_length'"),
    "mooncake text": (MOON.replace("6472", '"6472 tokens"'), r"line 2: input_length is '6472 tokens'"),
    "mooncake bool": (MOON.replace("6472", "true"), r"line 2: input_length is True"),
    "mooncake list": (MOON.replace("6472", "[1]"), r"line 2: input_length is \[1\]"),
    "mooncake nan": (MOON.replace("6472", "NaN"), r"line 2: not usable JSON \(NaN is no number\)"),
    "mooncake 1e400": (MOON.replace("6472", "1e400"), r"line 2: not usable JSON \(1e400 is beyond every number"),
    "mooncake fraction": (MOON.replace("6472", "6472.5"), r"line 2: input_length is 6472\.5"),
    "mooncake negative": (MOON.replace("6472", "-6472"), r"line 2: input_length is -6472"),
    "mooncake digits": (MOON.replace("6472", "9" * 5000), r"line 2: not usable JSON"),
    "mooncake nested": (MOON + "[" * 100_000, r"line 4: not usable JSON \(nested"),
    "mooncake other value": (MOON + "17\n", r"line 4: 17 is no JSON object"),
    "mooncake empty line": (MOON.replace('{"timestamp": 30535', '\n{"timestamp": 30535'), r"line 2: an empty line"),
    "lengths row": ('{"data": [{"input_length": 1, "output_length": 2}, {"input_length": 1}]}', r"data\[1\]: no field"),
    "lengths odd name": (
        '{"data": [{"in\\nput": 1, "\\u001b[2J": 2}]}',
        r"the columns are 'in\\nput', '\\x1b",
    ),
    "lengths value": ('{"data": [{"input_length": "x", "output_length": 2}]}', r"data\[0\]: input_length is 'x'"),
    "lengths no data": ('{"rows": []}', r"'rows' \(0 records\): no request"),
    "lengths data no list": ('{"data": 3}', r"its fields are data; name the list"),
    "lengths cut": (texts.LENGTHS[:-10], r"not valid JSON \(line 6, column 43"),
    "lengths empty": ('{"data": []}', r"'data' \(0 records\): no request"),
}


@pytest.mark.parametrize("key", ROWS)
def test_bad_row(tmp_path, key):
    refused(tmp_path, *ROWS[key])


FILES = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "only BOM": (b"\xef\xbb\xbf", "is empty"),
    "NUL": (AZURE.replace("879", "8\x0079").encode(), "line 4: a NUL byte"),
    "random bytes": (bytes(range(256)), "a NUL byte"),
    "latin-1": (BURST.replace("GPT-4", "Gr\xf6\xdfe").encode("latin-1"), "line 4: byte 0xf6 is not UTF-8"),
    "UTF-16": (AZURE.encode("utf-16"), "is UTF-16 text"),
    "zip": (b"PK\x03\x04rest", "is a zip archive or a spreadsheet"),
    "parquet": (b"PAR1rest", "is no Parquet file that can be read|is a Parquet file"),
    "zstd": (b"\x28\xb5\x2f\xfdrest", "compressed with zstd"),
    "cut gzip": (gzip.compress(AZURE.encode())[:-12], "gzip file that ends too early"),
    "gzip header only": (b"\x1f\x8b", "gzip"),
    "bad gzip": (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "damaged gzip"),
    "gzip with wrong sum": (gzip.compress(AZURE.encode())[:-8] + b"\0" * 8, "damaged gzip"),
    "gzip of nothing": (gzip.compress(b""), "is empty"),
    "gzip of zip": (gzip.compress(b"PK\x03\x04"), "is a zip archive"),
    "unknown header": ("a,b,c\n1,2,3\n", "does not say how many tokens a prompt has.* are a, b, c"),
    "no header": (AZURE.split("\n", 1)[1], "line 1 holds numbers; expected the names"),
    "no time column": ("ContextTokens,GeneratedTokens\n1,2\n", LINE_1 + "no column 'TIMESTAMP'"),
    "column twice": (
        AZURE.replace("TIMESTAMP", "TIMESTAMP,ContextTokens", 1),
        LINE_1 + "2 columns are called 'ContextTokens'",
    ),
    "JSON list": ('[{"id": 1, "conversations": []}]', "conversations must be tokenised first"),
    "JSON nested": (b"{" * 100_000, "not valid JSON|not usable"),
    "HTML": (b"<!DOCTYPE html>\n<html></html>\n", LINE_1 + "one column, '<!DOCTYPE html>'"),
    "open quote in header": ('"a,b\n1,2\n', "line 2: not a CSV row"),
    "long line": (b"x" * (2**20 + 1), LINE_1 + "one column, 'xxxx"),
}


@pytest.mark.parametrize("key", FILES)
def test_bad_file(tmp_path, key):
    refused(tmp_path, *FILES[key])


def test_missing_folder_device(tmp_path):
    with pytest.raises(InputError, match="No such file or directory"):
        read_trace(tmp_path / "none.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_trace(tmp_path)
    with pytest.raises(InputError, match="File name too long"):
        read_trace(tmp_path / ("x" * 5000))
    with pytest.raises(InputError, match="NUL byte"):
        read_trace("a\0b")
    if Path("/dev/zero").exists():
        with pytest.raises(InputError, match="is a device or a pipe"):
            read_trace("/dev/zero")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(InputError, match="is a device or a pipe"):
            read_trace(tmp_path / "pipe")


def test_permission(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    path.write_text(AZURE)

    def denied(path, flags):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(InputError, match=r"cannot read .*: Permission denied"):
        read_trace(path)


def test_size_guards(tmp_path, monkeypatch):
    monkeypatch.setattr(blocks, "HARMLESS_TEXT", 2**20)
    refused(tmp_path, gzip.compress(b"0" * 2**23), "unpacks from .* unpack it yourself")
    monkeypatch.setattr(formats, "LARGEST_FILE", 10)
    refused(tmp_path, AZURE, "expected at most 10")


def test_user_columns_refused(tmp_path):
    text = texts.USER_CSV
    message = refused(tmp_path, text, "no column 'num_prefil_tokens'", columns=Columns("num_prefil_tokens", "id"))
    assert "did you mean 'num_prefill_tokens'" in message
    with pytest.raises(InputError, match="must be different columns"):
        read_trace(tmp_path / "t.csv", columns=Columns("id", "id"))
    with pytest.raises(InputError, match="needs the names of the columns"):
        read_trace(tmp_path / "t.csv", "csv")
    with pytest.raises(InputError, match="only for the format csv"):
        read_trace(tmp_path / "t.csv", "azure", Columns("a", "b"))
    with pytest.raises(InputError, match=r"no trace format 'azur'.*did you mean 'azure'"):
        read_trace(tmp_path / "t.csv", "azur")
    refused(tmp_path, text, "line 1: no column 'ContextTokens'; the columns are 'id', 'arrived_at'", format="azure")
    refused(tmp_path, text.replace(",", ";").replace('"', ""), "separated by ';'", columns=Columns("id", "text"))


@pytest.mark.parametrize("format", ["azure", "burstgpt", "mooncake", "lengths"])
@pytest.mark.parametrize("text", [AZURE, BURST, MOON, texts.LENGTHS])
def test_wrong_format_is_refused(tmp_path, format, text):
    own = {"azure": AZURE, "burstgpt": BURST, "mooncake": MOON, "lengths": texts.LENGTHS}[format]
    if text != own and (text, format) != (MOON, "lengths"):
        refused(tmp_path, text, "t.csv", format=format)


def outcome(path, **options):
    """What comes of a file: the trace with what was left out, or the refusal."""
    try:
        trace = read_trace(path, **options)
    except InputError as error:
        return str(error)
    return trace.digest, trace.left_out


@pytest.mark.more
def test_where_a_file_is_cut_into_blocks_does_not_show(tmp_path, monkeypatch):
    """Neither in what is read nor in what is refused, and why."""
    path = tmp_path / "t.csv"
    cases = [data if isinstance(data, bytes) else data.encode() for data, _ in (*ROWS.values(), *FILES.values())]
    whole = [data.encode() for data in (AZURE, BURST, BURST.replace("\n", "\r\n"), MOON, texts.LENGTHS)]
    for data in (*cases, *whole, *(AZURE.encode() + row for row in (b" \n\n", b"x\0", b"x\n\xff", b'"'))):
        path.write_bytes(data)
        found = set()
        for size in (2**22, 1, 60):
            monkeypatch.setattr(blocks, "BLOCK", size)
            found.add(repr([outcome(path), outcome(path, skip_malformed=True)]))
        assert len(found) == 1, (data[:200], found)


def test_faults_of_the_whole_file_go_first(tmp_path, monkeypatch):
    """A byte that is no text is named before a row that cannot be used, although it comes later."""
    monkeypatch.setattr(blocks, "BLOCK", 1)
    refused(tmp_path, BURST.replace("1087", "many").encode() + b"\n\xff", "line 6: byte 0xff is not UTF-8")
    refused(tmp_path, b"a,b,c\n1,2,3\n\0", "line 3: a NUL byte")


@pytest.mark.more
def test_a_large_file_takes_little_more_than_its_trace(tmp_path, monkeypatch):
    """Also where a fault makes the slow reader read it."""
    columns = Columns("prompt", "output", "arrival")
    path = tmp_path / "t.csv"
    header, requests = "arrival,prompt,output\n", 120_000
    for text in ("1,2,3\n", "1,2,3\nx,x,x\n"):  # imports what it needs
        path.write_text(header + text)
        read_trace(path, columns=columns, skip_malformed=True)
    monkeypatch.setattr(blocks, "BLOCK", 2**16)
    rows = "".join(f"{place}.5,{place % 977},{1 + place % 13}\n" for place in range(requests))
    for last, malformed, bytes_each in (("", 0, 40), ("x,x,x\n", 1, 56)):
        path.write_text(header + rows + last)
        tracemalloc.start()
        trace = read_trace(path, columns=columns, skip_malformed=True)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (len(trace), trace.left_out.get("malformed", 0)) == (requests, malformed)
        assert peak < bytes_each * requests + 2.5 * 2**20, peak
