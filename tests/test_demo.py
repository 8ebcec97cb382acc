"""`make demo`: what it takes, and that the README shows what it prints."""

import csv
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def demo_words():
    """Return the words after `lbopt` in the Makefile's demo target."""
    recipe = re.search(r"^demo:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE).group(1)
    return shlex.split(recipe.replace("\\\n", " "))[1:]


def readme_rows():
    """Return the cells of the README's table of the demo, by policy."""
    text = (ROOT / "README.md").read_text()
    table = text[text.index("| policy | mean gap |") :].split("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


@pytest.mark.alone
@pytest.mark.jit
def test_the_demo_closes_its_states_in_time_and_the_readme_shows_it(tmp_path):
    """At least 95 % of the states closed, within two minutes, and the README's numbers to the digit."""
    words = demo_words()
    words[words.index("--out") + 1] = str(tmp_path / "demo")
    begin = time.monotonic()
    subprocess.run([sys.executable, "-m", "lbopt", *words], check=True, capture_output=True, cwd=ROOT)
    assert time.monotonic() - begin < 120
    with (tmp_path / "demo" / "gap.csv").open() as stream:
        rows = {row["policy"]: row for row in csv.DictReader(stream) if row["behaviour"] == "all"}
    assert (tmp_path / "demo" / "report.html").is_file()
    shown = readme_rows()
    assert set(shown) == set(rows)
    for policy, row in rows.items():
        assert int(row["open"]) <= 0.05 * int(row["states"])
        mean, median, p95 = (f"{round(float(row[f'gap_{name}_tokens'])):,}" for name in ("mean", "median", "p95"))
        assert shown[policy][:3] == [mean, median, p95], policy
        assert shown[policy][3] == f"{100 * float(row['gap_mean_share']):.2f} %", policy
        assert shown[policy][4] == f"{100 * float(row['optimal_share']):.2f} %", policy
