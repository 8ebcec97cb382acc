"""`lbopt fit` as a terminal sees it."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

GOOD = "router,spread_tokens,tpot_ms\na,10000,61.2\nb,20000,62.1\nc,40000,64.0\nd,80000,66.3\ne,90000,68\nf,5000,60.9\n"


@pytest.fixture
def fit(type_in):
    return lambda *words: type_in("fit", *words)


@pytest.fixture
def refused(fit, here):
    """A function that types a command and demands one sentence that says `expected`, and no file left behind."""

    def call(expected, *words):
        before = sorted(here.rglob("*"))
        code, shown, said = fit(*words)
        assert code == 2, said
        assert not shown
        assert [line[:7] for line in said.splitlines()] == ["error: "], said
        assert expected in said
        assert sorted(here.rglob("*")) == before

    return call


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_published_from_end_to_end(fit, here):
    code, shown, heard = fit("published:balance-route", "--hold-out", "all", "--residuals", "--out", "out")
    assert code == 0, heard
    assert "prop-g8: tpot_p95_ms against spread_tokens, 9 rows" in shown
    assert "Best on rows left out: logarithmic; told from constant, but 9 rows cannot tell it from square root" in shown
    assert "One slope for all groups is refuted (5 %) on x, x / G, √x and ln x." in shown
    assert "predicting no change is beaten in all 4 groups held out only by a slope on x / G" in shown
    for slope in ("about 95.9 (", "about 37.5 (", "about 18.6 (", "about 225 ("):  # the band of section 7.4
        assert slope in shown
    assert "azure-g8: residuals, ms" in shown
    assert "A percentile over requests is not the mean step time" in shown
    run = json.loads((here / "out" / "run.json").read_text())
    assert run["format"] == "lbopt-fit"
    assert set(run["files"]) == {
        "fits.csv",
        "residuals.csv",
        "comparisons.csv",
        "pooled.csv",
        "held_out.csv",
        "laws.png",
        "laws.svg",
    }
    assert set(run["verdicts"]) == {"prop-g4", "prop-g8", "prop-g16", "azure-g8"}
    line = next(
        row
        for row in rows_of(here / "out" / "fits.csv")
        if (row["group"], row["law"], row["parameter"]) == ("prop-g8", "linear", "k")
    )
    assert float(line["estimate"]) == pytest.approx(0.018737363, rel=1e-7)
    assert len(rows_of(here / "out" / "residuals.csv")) == 31 * 4
    assert len(rows_of(here / "out" / "held_out.csv")) == 4 * 4
    files = {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"}
    assert fit("published:balance-route", "--hold-out", "all", "--out", "out")[0] == 0  # replaced, and the same
    assert {path.name: path.read_bytes() for path in (here / "out").iterdir() if path.name != "run.json"} == files


def test_the_constant_of_bf_io_comes_back_from_its_printed_table(fit):
    """The simulator behind that table charged 100.525 ns for a token of the heaviest of 16 workers."""
    code, shown, _ = fit("published:bf-io-table-1")
    assert code == 0
    assert "102 (98.9 … 106)" in shown


def test_throughput(fit):
    code, shown, _ = fit("published:balance-route", "--y", "throughput_tok_s")
    assert code == 0
    assert "1000 / (u + v x)" in shown
    assert "R² of the reciprocal law is that of 1000 / y; its errors are in y." in shown
    assert "In words of the tool" not in shown


def test_a_file_of_ones_own(fit, here):
    (here / "own.csv").write_text(GOOD)
    code, shown, heard = fit("own.csv")
    assert code == 0, heard
    assert "tpot_ms against spread_tokens, 6 rows" in shown
    assert "One slope for all groups" not in shown


def test_loads_of_single_workers_give_all_laws(fit, here):
    rng = np.random.default_rng(3)
    loads = rng.integers(50_000, 120_000, (9, 4))
    seconds = 0.005 + 1e-7 * loads.max(axis=1) + 5e-8 * loads.mean(axis=1)
    head = "load_0,load_1,load_2,load_3,step_time_seconds"
    lines = [",".join([*map(str, row), f"{time:.15f}"]) for row, time in zip(loads, seconds, strict=True)]
    (here / "columns.csv").write_text("\n".join([head, *lines]))
    lines = [f"{';'.join(map(str, row))},{1e3 * time:.12f}" for row, time in zip(loads, seconds, strict=True)]
    (here / "lists.csv").write_text("\n".join(["loads,step_time_ms", *lines]))
    for name in ("columns.csv", "lists.csv"):
        code, shown, heard = fit(name)
        assert code == 0, heard
        assert (
            "Best on rows left out: heaviest and mean; told from heaviest, linear, constant, square root and" in shown
        )
        assert "100 (100 … 100); 50 (50 … 50)" in shown


def test_units_of_a_header_are_its_ending(fit, here):
    rows = [("10", "61.2"), ("20", "62.1"), ("40", "64"), ("80", "66.3")]
    faces = {
        "spread_ktokens,tpot_ms": rows,
        "spread_tokens,tpot_seconds": [(f"{x}000", f"{float(y) / 1000:.6f}") for x, y in rows],
        "spread,tpot_us": [(f"{x}000", f"{float(y) * 1000}") for x, y in rows],
    }
    shown = set()
    for head, lines in faces.items():
        (here / "rows.csv").write_text("\n".join([head, *(",".join(line) for line in lines)]))
        code, text, heard = fit("rows.csv")
        assert code == 0, heard
        shown.add(text.partition("\n")[2])
    assert len(shown) == 1


def test_columns_named_outright(fit, here):
    (here / "rows.csv").write_text("a,b,c\n1,3,u\n2,4,u\n3,6,u\n1,2,v\n2,4,v\n4,7,v\n")
    code, shown, heard = fit("rows.csv", "--x", "a", "--y", "b", "--group", "c", "--hold-out", "v")
    assert code == 0, heard
    assert "u: b against a, 3 rows" in shown
    assert "but no 3 rows can tell laws apart by the rule, which needs 6" in shown
    assert "the group held out" in shown


def test_zero_spread_leaves_the_logarithm_out(fit, here):
    (here / "rows.csv").write_text(GOOD + "g,0,60\n")
    code, shown, _ = fit("rows.csv")
    assert code == 0
    assert "Law 'logarithmic' is left out: a row has x = 0, which has no logarithm." in shown
    assert "square root" in shown


HEAD = "spread_tokens,tpot_ms\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HEAD + "1,2\n2,3\n", "2 rows cannot judge a law of 2 parameters; give at least 3 rows"),
        (HEAD + "1,2\n", "1 row cannot judge"),
        (HEAD + "5,1\n5,2\n5,3\n5,4\n", "all 4 rows have the same x (0.005)"),
        (HEAD + "1,2\n2,x\n3,3\n", "rows.csv, line 3: tpot_ms is 'x'; expected a number"),
        (HEAD + "1,2\nnan,2\n3,3\n", "rows.csv, line 3: spread_tokens is 'nan'; expected a number of zero or more"),
        (HEAD + "1,2\n2,inf\n3,3\n", "rows.csv, line 3: tpot_ms is 'inf'; expected a number of zero or more"),
        (HEAD + "1,2\n-2,2\n3,3\n", "rows.csv, line 3: spread_tokens is '-2'; expected a number of zero or more"),
        (HEAD + "1,2\n2,0\n3,3\n", "rows.csv, line 3: tpot_ms is 0; expected a number above zero"),
        (HEAD + "1,2\n2,\n3,3\n", "rows.csv, line 3: tpot_ms is ''; expected a number"),
        (HEAD + "1,2\n2,1e300\n3,3\n", "at most 1e15"),
        (HEAD + "1,2\n2,3,4\n", "rows.csv, line 3: 3 fields under 2 columns"),
        (HEAD + '1,2\n"2,3\n', "rows.csv, line 3: not a CSV row"),
        (HEAD, "rows.csv has a header but no rows"),
        ("\n\n", "rows.csv has no rows"),
        ("", "rows.csv has no rows"),
        ("spread_tokens,tpot\n1,2\n2,3\n3,4\n", "column 'tpot' does not say its unit; end its name in _ms"),
        ("a_ms,tpot_ms\n1,2\n", "has no column of load (imbalance, spread, max_load, loads"),
        ("imbalanse,tpot_ms\n1,2\n", "did 'imbalanse' mean imbalance?"),
        ("spread,throuhput_tok_s\n1,2\n", "did 'throuhput_tok_s' mean throughput?"),
        ("spread,spread,tpot_ms\n1,2,3\n", "rows.csv has the column 'spread' twice"),
        ("mean_load,tpot_ms\n1,2\n2,3\n3,5\n", "no law has its columns: give max_load beside mean_load"),
        ("max_load,mean_load,tpot_ms\n1,2,3\n", "line 2: the heaviest load is below the mean load"),
        ("workers,spread,tpot_ms\n2.5,2,3\n", "line 2: workers is '2.5'; expected a whole number of at least 1"),
        ("group,spread,tpot_ms\na,1,2\na,2,3\na,3,3\nb,1,2\n", "rows.csv, group 'b': 1 row cannot judge"),
    ],
)
def test_bad_files(refused, here, text, expected):
    (here / "rows.csv").write_text(text)
    refused(expected, "rows.csv", "--out", "out")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("published:balance-rute",), "unknown published table 'balance-rute': did you mean balance-route"),
        (("published:ep-barrier-live",), "has no column of load"),
        (("published:eldr-active-experts", "--x", "active_experts", "--y", "relative_latency"), "2 rows cannot judge"),
        (("missing.csv",), "cannot read missing.csv: No such file or directory; give a CSV file, or published:NAME"),
        (("folder",), "cannot read folder: it is a folder; expected a regular file"),
        (("bytes.bin",), "bytes.bin, line 1: a NUL byte"),
        (("latin.csv",), "latin.csv, line 2: byte 0xe9 is not UTF-8 text"),
        (("own.csv", "--x", "spred_tokens"), "unknown column of own.csv 'spred_tokens': did you mean spread_tokens?"),
        (("own.csv", "--y", "tpot"), "unknown column of own.csv 'tpot': did you mean tpot_ms?"),
        (("own.csv", "--x", "tpot_ms", "--y", "tpot_ms"), "column 'tpot_ms' is both --x and --y"),
        (("own.csv", "--x", "router"), "own.csv, line 2: router is 'a'; expected a number"),
        (("own.csv", "--hold-out", "g"), "own.csv has no groups; name their column with --group"),
        (("published:balance-route", "--hold-out", "prop-g9"), "unknown group of published:balance-route 'prop-g9'"),
        (("own.csv", "--out", "no/where"), "output folder 'no/where' cannot be made"),
    ],
)
def test_bad_words(refused, here, words, expected):
    (here / "own.csv").write_text(GOOD)
    (here / "folder").mkdir()
    (here / "bytes.bin").write_bytes(b"\x00\x01,\n\x02")
    (here / "latin.csv").write_bytes(b"spread,tpot_ms\n\xe9,2\n")
    refused(expected, *words)
