"""Each format, read from small files."""

import gzip
import json
import logging

import numpy as np
import pytest
from instances import texts

from lbopt.exceptions import InputError
from lbopt.instances.readers import Columns, read, read_trace

USER = Columns("num_prefill_tokens", "num_decode_tokens", "arrived_at")
BURST = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"

FORMATS = {
    "azure 2023": (texts.AZURE_2023, "azure", [374, 396, 879], [44, 109, 55], [0, 4.314579, 4.541877]),
    "azure 2024": (texts.AZURE_2024, "azure", [2162, 2399, 76], [5, 6, 15], [0, 0.007405, 0.99007]),
    "burstgpt old": (texts.BURSTGPT_OLD, "burstgpt", [472, 1087, 417], [18, 230, 276], [0, 40, 113]),
    "burstgpt new": (texts.BURSTGPT_NEW, "burstgpt", [472, 1087, 417], [18, 230, 276], [0, 39.75, 112.5]),
    "mooncake": (texts.MOONCAKE, "mooncake", [6955, 6472, 12], [52, 26, 1], [0, 3.053, 3.058]),
    "lengths": (texts.LENGTHS, "lengths", [243, 184], [24, 17], None),
    "bailian": (texts.BAILIAN, "bailian", [52, 20, 16], [132, 7, 9], [0, 0.386, 2.136]),
    "servegen": (texts.SERVEGEN, "servegen", [224, 1800, 312], [95, 210, 40], [0, 0.487, 1.737]),
    "turns after answers": (texts.TURNS, "mooncake", [300, 150, 100, 450], [40, 20, 10, 30], None),
}


def write(tmp_path, text, name="trace.txt"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def check(trace, prompt, output, arrival):
    assert trace.prompt.tolist() == prompt
    assert trace.output.tolist() == output
    if arrival is None:
        assert trace.arrival is None
    else:
        np.testing.assert_allclose(trace.arrival, arrival, rtol=0, atol=1e-9)


@pytest.mark.parametrize("key", FORMATS)
def test_format_is_detected_and_read(tmp_path, key):
    text, format, *wanted = FORMATS[key]
    reading = read(write(tmp_path, text))
    assert reading.format == format
    assert reading.reordered == 0
    assert reading.trace.left_out == {}
    assert reading.trace.name == "trace"
    check(reading.trace, *wanted)
    check(read_trace(write(tmp_path, text), format), *wanted)


VARIANTS = {
    "CRLF": lambda text: text.replace("\n", "\r\n").encode(),
    "BOM": lambda text: b"\xef\xbb\xbf" + text.encode(),
    "BOM and CRLF": lambda text: b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
    "no final newline": lambda text: text.rstrip().encode(),
    "blank lines at the end": lambda text: text.encode() + b"\n\n  \n",
    "blank CRLF lines at the end": lambda text: text.encode() + b"\r\n\r\n",
    "gzip": lambda text: gzip.compress(text.encode()),
    "gzip of BOM": lambda text: gzip.compress(b"\xef\xbb\xbf" + text.encode()),
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("key", FORMATS)
def test_harmless_variants_read_the_same(tmp_path, key, variant):
    text, format, *wanted = FORMATS[key]
    reading = read(write(tmp_path, VARIANTS[variant](text)))
    assert reading.format == format
    check(reading.trace, *wanted)


def test_single_line_lengths_and_one_row_mooncake_are_told_apart(tmp_path):
    one = write(tmp_path, '{"data": [{"input_length": 1, "output_length": 2}]}')
    assert read(one).format == "lengths"
    assert read(write(tmp_path, texts.MOONCAKE.splitlines()[0])).format == "mooncake"


def test_user_columns_with_quotes_and_without_arrival(tmp_path):
    path = write(tmp_path, texts.USER_CSV)
    check(read_trace(path, columns=USER), [100, 200, 300], [10, 20, 30], [0, 1.25, 1.5])
    bare = read_trace(path, "csv", Columns("num_prefill_tokens", "num_decode_tokens"), name="mine")
    check(bare, [100, 200, 300], [10, 20, 30], None)
    assert bare.name == "mine"


def test_user_columns_with_date_times(tmp_path):
    text = "p,o,t\n1,2,2024-05-10T00:00:00Z\n3,4,2024-05-10T02:00:01+02:00\n"
    check(read_trace(write(tmp_path, text), columns=Columns("p", "o", "t")), [1, 3], [2, 4], [0, 1])


def test_whole_numbers_may_be_written_as_floats(tmp_path):
    check(read_trace(write(tmp_path, BURST + "1,m,472.0,1e2,0,x\n")), [472], [100], [0])


def test_rows_without_output_are_counted(tmp_path, caplog):
    text = BURST + "1,m,10,0,10,x\n2,m,20,5,25,x\n3,m,30,,30,x\n"
    with caplog.at_level(logging.WARNING):
        trace = read_trace(write(tmp_path, text))
    assert trace.left_out == {"no output tokens": 2}
    assert "2 rows left out (no output tokens)" in caplog.text
    check(trace, [20], [5], [0])


@pytest.mark.parametrize(
    "text",
    [
        '{"timestamp": 1, "input_length": 5, "output_length": 0}\n'
        '{"timestamp": 2, "input_length": 6, "output_length": 1}',
        '{"data": [{"input_length": 5, "output_length": null}, {"input_length": 6, "output_length": 1}]}',
    ],
)
def test_json_rows_without_output_are_counted(tmp_path, text):
    trace = read_trace(write(tmp_path, text))
    assert trace.left_out == {"no output tokens": 1}
    assert trace.prompt.tolist() == [6]


def test_rows_are_sorted_stably_by_time_and_reported(tmp_path, caplog):
    text = BURST + "9,m,1,1,2,x\n3,m,2,1,2,x\n9,m,3,1,2,x\n3,m,4,1,2,x\n0,m,5,0,2,x\n"
    with caplog.at_level(logging.WARNING):
        reading = read(write(tmp_path, text))
    check(reading.trace, [2, 4, 1, 3], [1, 1, 1, 1], [0, 0, 6, 6])
    assert reading.reordered == 2
    assert reading.trace.left_out == {"no output tokens": 1}
    assert "2 rows were out of time order" in caplog.text


def test_nanoseconds_survive(tmp_path):
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.0000001,1,1\n2023-11-16 18:15:46.0000003,1,1\n"
    assert read_trace(write(tmp_path, text)).arrival[1] == pytest.approx(2e-7, rel=1e-9)


def test_malformed_rows_can_be_skipped_and_are_counted(tmp_path):
    text = BURST + "1,m,10,1,11,x\n2,m,abc,1,1,x\n3,m,10\n\n4,m,-1,1,0,x\n5,m,7,0,7,x\n6,m,8,2,10,x\n"
    trace = read_trace(write(tmp_path, text), skip_malformed=True)
    check(trace, [10, 8], [1, 2], [0, 5])
    assert trace.left_out == {"malformed": 4, "no output tokens": 1}
    azure = texts.AZURE_2023 + "yesterday,1,1\n"
    assert read_trace(write(tmp_path, azure), skip_malformed=True).left_out == {"malformed": 1}
    mooncake = texts.MOONCAKE + "oops\n" + texts.MOONCAKE.splitlines()[2]
    assert read_trace(write(tmp_path, mooncake), skip_malformed=True).left_out == {"malformed": 1}
    lengths = '{"data": [{"input_length": 1, "output_length": 1}, {"input_length": 1}, 7]}'
    assert read_trace(write(tmp_path, lengths), skip_malformed=True).left_out == {"malformed": 2}


def test_nothing_left_says_why(tmp_path):
    with pytest.raises(InputError, match=r"holds no request.*\(1 malformed, 1 no output tokens\)"):
        read_trace(write(tmp_path, BURST + "1,m,10,0,11,x\n2,m,abc,1,1,x\n"), skip_malformed=True)
    with pytest.raises(InputError, match="no rows below the header"):
        read_trace(write(tmp_path, BURST))


def test_real_azure(shared_dir):
    trace = read_trace(shared_dir / "data" / "azure_llm_2023_conv.csv")
    assert len(trace) == 19366
    assert trace.left_out == {}
    assert trace.arrival[-1] == pytest.approx(3501.721937, abs=1e-6)


def test_real_lengths(shared_dir):
    path = shared_dir / "data" / "burstgpt_8000.json"
    statistics = json.loads(path.read_text())["statistics"]
    trace = read_trace(path)
    assert len(trace) == 8000
    assert trace.prompt.mean() == pytest.approx(statistics["input_length"]["mean"], rel=1e-12)
    assert trace.output.mean() == pytest.approx(statistics["output_length"]["mean"], rel=1e-12)
    assert trace.prompt.max() == statistics["input_length"]["max"]
    assert len(read_trace(shared_dir / "data" / "arxiv_8000.json")) == 8000


def test_mooncake_tells_the_blocks_of_its_prompts_where_every_row_has_them(tmp_path):
    trace = read(write(tmp_path, texts.MOONCAKE)).trace
    assert trace.prefixes.block_tokens == 512
    assert trace.prefixes.first.tolist() == [0, 3, 6, 6]
    assert trace.prefixes.blocks.tolist() == [46, 47, 2353, 46, 47, 2366]
    for other in (
        '"hash_ids": [46, 4.5]',
        '"hash_ids": "46"',
        '"hash_ids": [-1]',
        '"hashes": []',
        f'"hash_ids": [{2**70}]',
    ):
        assert read(write(tmp_path, texts.MOONCAKE.replace('"hash_ids": []', other))).trace.prefixes is None


def test_blocks_go_with_their_requests_where_rows_are_sorted_or_left_out(tmp_path):
    first, second, third = texts.MOONCAKE.splitlines()
    empty = second.replace('"output_length": 26', '"output_length": 0')
    trace = read(write(tmp_path, "\n".join([third, empty, first]))).trace
    assert trace.prompt.tolist() == [6955, 12]
    assert trace.prefixes.blocks.tolist() == [46, 47, 2353]
    assert trace.prefixes.first.tolist() == [0, 3, 3]


def test_other_separators_are_read_by_the_names_of_the_columns(tmp_path):
    for text, mark in ((texts.AZURE_2023, ";"), (texts.BURSTGPT_OLD, "\t")):
        one, other = tmp_path / "commas.csv", tmp_path / "other.csv"
        one.write_text(text)
        other.write_text(text.replace(",", mark))
        first, second = read_trace(one), read_trace(other)
        np.testing.assert_array_equal(first.prompt, second.prompt)
        np.testing.assert_array_equal(first.output, second.output)
        np.testing.assert_allclose(first.arrival - first.arrival[0], second.arrival - second.arrival[0], atol=1e-6)
