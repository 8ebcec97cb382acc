"""Loads of ranks are known by their content, and read alike whatever wrote them and whatever stands around them."""

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from lbopt.exceptions import InputError
from lbopt.instances.rank_log import is_rank_log, read_rank_log, read_scrapes

STORED = Path(__file__).parents[1] / "stored" / "rank_logs"
LINES = (STORED / "sglang.log").read_text().splitlines()
TOKENS = [
    [106928, 33517, 27337, 63017],
    [106831, 34926, 26019, 62888],
    [106640, 33093, 27954, 63437],
    [107761, 34749, 26044, 64500],
]
DECODE = [line for line in LINES if "Decode" in line]


def written(path, text):
    (path.write_bytes if isinstance(text, bytes) else path.write_text)(text)
    assert is_rank_log(path)
    return path


def test_sglang_lines_hold_tokens_exactly():
    series = read_rank_log([STORED / "sglang.log"])
    assert series.ranks == ("0", "1", "2", "3") and series.clocked and series.period == 5.0
    assert series.of("tokens").tolist() == TOKENS
    assert series.of("running")[0].tolist() == [11, 9, 7, 8] and series.of("waiting")[0].tolist() == [21, 0, 0, 0]
    assert series.of("prefill")[0, 1] == 8192 and not series.silent.any()
    assert series.formats == {"SGLang decode": 16, "SGLang prefill": 1} and series.unused == 2


def test_what_stands_around_a_line_does_not_matter(tmp_path):
    """Collectors, colours, other encodings, no times, several nodes, tables: the same loads."""
    bare = ["[DP" + line.split(" DP")[1] for line in DECODE]
    texts = {
        "kubectl.log": "\n".join(f"[pod/sglang-0/main] {line}" for line in DECODE),
        "compose.log": "\n".join(f"sglang-1  | {line}" for line in DECODE),
        "journal.log": "\n".join(f"Apr 12 10:00:{k // 4 * 5:02d} node7 sglang[9]: {one}" for k, one in enumerate(bare)),
        "docker.json": "\n".join(json.dumps({"log": line + "\n", "stream": "stderr"}) for line in DECODE),
        "colour.log": "\n".join(f"\x1b[32m{line}\x1b[0m" for line in DECODE),
        "progress.log": "".join(f"  2% 1/64 [00:04<04:51,  4.62s/it]\r{line}\r\n" for line in DECODE),
        "utf16.log": "\r\n".join(DECODE).encode("utf-16"),
        "zipped.gz": gzip.compress("\n".join(DECODE).encode()),
        "without.log": "\n".join(bare),
        "full.log": "\n".join(DECODE).replace("#token", "#full token").replace("token usage", "full token usage"),
        "old.log": "\n".join(DECODE).replace("batch,", "batch."),
        "wide.csv": "time,load_1,load_2,load_3,load_4\n"
        + "\n".join(f"{5 * k}," + ",".join(map(str, row)) for k, row in enumerate(TOKENS)),
    }
    for name, text in texts.items():
        series = read_rank_log([written(tmp_path / name, text)])
        assert series.of("tokens").tolist() == TOKENS, name
        assert series.clocked == (name != "without.log"), name
    nodes = [
        written(
            tmp_path / f"node{n}.log",
            "\n".join(one for one in DECODE if f"DP{2 * n}" in one or f"DP{2 * n + 1}" in one),
        )
        for n in (1, 0)
    ]
    assert read_rank_log(nodes).of("tokens").tolist() == TOKENS
    assert read_rank_log([STORED / "series.csv"]).of("tokens").tolist() == TOKENS


def test_vllm_lines_give_shares_the_start_says_the_size_and_a_silent_engine_is_idle():
    series = read_rank_log([STORED / "vllm.log"])
    assert series.ranks == ("0", "1") and series.capacity.tolist() == [642_656, 642_656]
    assert series.of("share")[:, 0].tolist() == [1.0] * 5 and series.of("share")[0, 1] == pytest.approx(0.986)
    assert series.of("waiting")[0].tolist() == [117, 108]
    assert series.silent[:, 1].tolist() == [False, False, False, True, True]  # one more period stands, then it is idle
    assert any("asks for 8 ranks" in note for note in series.notes)


def test_iterations_of_tensorrt_llm_are_steps():
    series = read_rank_log([STORED / "tensorrt-llm.log"])
    assert series.of("tokens").tolist() == [[80000, 40000], [80008, 40008]]
    assert series.of("step")[0].tolist() == pytest.approx([0.0152, 0.0152])
    assert series.of("made")[0, 0] == pytest.approx(8 / 0.0152)


def test_statistics_of_tensorrt_llm_and_iterations_of_vllm(tmp_path):
    """Of attention data parallelism the queue and the blocks are rank 0's, and belong to no rank."""
    series = read_rank_log([STORED / "tensorrt-llm.json"])
    assert series.of("tokens").tolist() == [[80000, 40512], [80008, 40512]] and series.clocked
    assert series.of("running").tolist() == [[8, 9]] * 2 and series.of("prefill").tolist() == [[0, 512]] * 2
    assert series.of("step")[0].tolist() == pytest.approx([0.0154, 0.0154]) and "waiting" not in series.values
    rows = json.loads((STORED / "tensorrt-llm.json").read_text())
    lines = written(tmp_path / "lines.json", "\n".join(json.dumps(row) for row in rows))
    assert read_rank_log([lines]).of("tokens").tolist() == series.of("tokens").tolist()
    assert read_scrapes([("a", 0.0, json.dumps(rows).encode())], "a").of("running").tolist() == [[8, 9]] * 2

    text = (STORED / "vllm-iterations.log").read_text()
    series = read_rank_log([STORED / "vllm-iterations.log"])
    assert series.of("running")[0].tolist() == [31, 12, 0] and series.of("prefill")[0].tolist() == [2048, 0, 0]
    assert series.of("share")[0].tolist() == pytest.approx([0.612, 0.246, 0.0])
    assert series.of("made")[0, 1] == pytest.approx(12 / 0.0315)
    old = "\n".join(line.replace(" Engine 00", "").split(", GPU")[0] for line in text.splitlines())
    assert read_rank_log([written(tmp_path / "old.log", old)]).of("running")[0].tolist() == [31, 12, 0]
    waits = read_rank_log([written(tmp_path / "async.log", text.replace("time: 31.", "time: 0.0"))])
    assert not {"step", "made"} & waits.values.keys() and "asynchronous" in " ".join(waits.notes)


def test_exports_of_grafana(tmp_path):
    series = read_rank_log([STORED / "grafana.csv"])
    assert series.of("share").tolist() == [[0.9, 0.2], [0.91, 0.21], [0.92, 0.22]] and series.period == 15
    assert series.of("waiting")[0].tolist() == [12, 0] and series.formats == {"a table of ranks, vLLM": 1}
    names = [f'vllm:kv_cache_usage_perc{{engine=""{g}"", pod=""a""}}' for g in (0, 1)]
    rows = "".join(f'"{names[g]}";"2026-01-01 00:00:{t:02d}";{g / 4 + t / 100}\n' for t in (0, 5) for g in (0, 1))
    old = written(tmp_path / "rows.csv", f'sep=;\n"Series";"Time";"Value"\n{rows}')
    assert read_rank_log([old]).of("share").tolist() == [[0.0, 0.25], [0.05, 0.3]]
    for cells, quantity, held in (("12.5%,40%", "share", [0.125, 0.4]), ("106752,320", "tokens", [106752, 320])):
        legend = written(tmp_path / "legend.csv", f'"Time","engine 0","engine 1"\n1767225600000,{cells}\n')
        assert read_rank_log([legend]).of(quantity).tolist() == [held]
    asked = written(tmp_path / "asked.csv", '"Time","engine 0","engine 1"\n1767225600000,12,40\n')
    with pytest.raises(InputError, match="do not say whether they hold tokens"):
        read_rank_log([asked])
    named = written(tmp_path / "named.csv", "Time,running_0,running_1,share_0,share_1\n0,12,40,0.5,0.1\n")
    assert read_rank_log([named]).of("running").tolist() == [[12, 40]]


def test_metrics_of_one_scrape_of_several_and_of_a_query(tmp_path):
    one = read_rank_log([STORED / "metrics.prom"])
    assert one.of("share").tolist() == [[0.93, 0.18, 0.0, 0.0]] and one.of("waiting").tolist() == [[3, 0, 0, 0]]
    text = (STORED / "metrics.prom").read_text()
    later = text.replace("27.0", "28.0")
    assert read_rank_log([written(tmp_path / "both.prom", text + later)]).of("running")[:, 0].tolist() == [27, 28]
    folder = tmp_path / "scrapes"
    folder.mkdir()
    (folder / "metrics-1712345605.prom").write_text(later)
    (folder / "metrics-1712345600.prom").write_text(text)
    series = read_rank_log([folder])
    assert series.of("running")[:, 0].tolist() == [27, 28] and series.seconds.tolist() == [0, 5]
    query = read_rank_log([STORED / "query.json"])
    assert query.of("share").tolist() == [[0.9, 0.3], [0.8, 0.4]] and query.seconds.tolist() == [0, 15]


def test_counters_become_rates_and_a_fallen_one_is_unknown():
    def scrape(made, more=""):
        line = 'vllm:generation_tokens_total{{engine="{}",model_name="m"}} {}\n'
        size = 'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="100",model_name="m"} 1.0\n'
        running = "".join(f'vllm:num_requests_running{{engine="{g}",model_name="m"}} 4\n' for g in (0, 1))
        return (running + "".join(line.format(g, value) for g, value in enumerate(made)) + size + more).encode()

    series = read_scrapes(
        [("a", 0.0, scrape((0, 90))), ("a", 2.0, scrape((10, 100))), ("a", 4.0, scrape((5, 140)))], "a"
    )
    assert np.array_equal(series.of("made"), [[np.nan, np.nan], [5, 5], [np.nan, 20]], equal_nan=True)
    assert series.capacity.tolist()[0] == 1600


def test_the_same_number_on_two_servers_is_two_ranks_and_in_rotated_logs_one(tmp_path):
    early, late = "\n".join(DECODE[:8]), "\n".join(DECODE[8:])
    logs = [written(tmp_path / name, text) for name, text in (("server.log.1", early), ("server.log", late))]
    assert read_rank_log(logs).of("tokens").tolist() == TOKENS
    both = [written(tmp_path / f"{name}.log", "\n".join(DECODE)) for name in "ab"]
    series = read_rank_log(both)
    assert series.ranks == ("a/0", "a/1", "a/2", "a/3", "b/0", "b/1", "b/2", "b/3")
    assert series.group.tolist() == [0, 0, 0, 0, 1, 1, 1, 1] and len(series.seconds) == 4


def test_what_says_nothing_of_ranks_is_no_such_log(tmp_path):
    requests = "id,arrival,start,finish,prompt,output,worker\n1,0,1,2,3,4,0\n"
    for text in (requests, '{"prompt": 3}', "", "\x00\xff", "time,queue\n1,2\n"):
        (tmp_path / "x").write_text(text)
        assert not is_rank_log(tmp_path / "x"), text
    assert not is_rank_log(tmp_path / "absent") and not is_rank_log("x" * 5000)
    bad = {
        "[DP0 TP0] Prefill batch, #new-seq: 2, #new-token: 8192, #queue-req: 0": "prefill lines alone",
        "4 Engines Aggregated: Avg prompt throughput: 1.0 tokens/s, Running: 4 reqs": "do not tell ranks apart",
        "time,rank,tokens\n0,0,many\n": "tokens is 'many'",
        '{"data":{"resultType":"vector","result":[{"metric":{"__name__":"up"},"value":[1,"1"]}]}}': "the query has up",
    }
    for text, cause in bad.items():
        (tmp_path / "x").write_text(text)
        with pytest.raises(InputError, match=cause):
            read_rank_log([tmp_path / "x"])
    with pytest.raises(InputError, match="files of one kind"):
        read_rank_log([STORED])
