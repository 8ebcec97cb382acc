"""`make demo`: what it takes, and that the README shows what it prints."""

import csv
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def demo_words():
    """Return the words after `lbopt` in the Makefile's demo target."""
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1)
    return shlex.split(recipe.replace("\\\n", " "))[1:]


def shown_rows(page, header):
    """Return the cells of the table of the demo on a page, by policy; `header` is how its first line begins."""
    text = (ROOT / page).read_text()
    table = text[text.index(header) :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.alone
@pytest.mark.more
@pytest.mark.jit
def test_the_demo_closes_its_states_in_time_and_the_pages_show_it(tmp_path):
    """At least 95 % of the states closed, within two minutes, and the numbers of README and manual to the digit.

    Work limits each solve, not time, so that the digits are those of every machine.
    """
    words = demo_words()
    words[words.index("--out") + 1] = str(tmp_path / "demo")
    assert "--effort" in words
    subprocess.run([sys.executable, "-m", "lbopt", *words], check=True, capture_output=True, cwd=ROOT)
    with (tmp_path / "demo" / "gap.csv").open() as stream:
        rows = {row["policy"]: row for row in csv.DictReader(stream) if row["behaviour"] == "all"}
    assert (tmp_path / "demo" / "report.html").is_file()
    whole = shown_rows("docs/getting-started.md", "| policy | mean gap |")
    short = shown_rows("README.md", "| policy | mean gap (tokens) |")
    assert set(whole) == set(rows)
    assert len(short) >= 4
    for policy, row in rows.items():
        assert int(row["open"]) <= 0.05 * int(row["states"])
        mean, median, p95 = (f"{round(float(row[f'gap_{name}_tokens'])):,}" for name in ("mean", "median", "p95"))
        share, optimal = 100 * float(row["gap_mean_share"]), 100 * float(row["optimal_share"])
        assert whole[policy][:5] == [mean, median, p95, f"{share:.2f} %", f"{optimal:.2f} %"], policy
        if policy in short:
            assert short[policy][:4] == [mean, p95, f"{share:.2f} %", f"{optimal:.0f} %"], policy
