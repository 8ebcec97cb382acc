"""Imbalance against wait: what each rule has left to give as its bound on waiting is drawn tight.

python -m tests.benchmarks.wait_frontier --shared SHARED --out OUT

Five real traces and a generated one, G = 16, B = 72, closed loop, the cases and draws of *one rule*, runs of eight
turnovers. Bounds are multiples of the P99 wait of first come, first served (`age_bound=3x`). The exact rule decides
each step as well as that step can be decided. Writes OUT.json, from which a killed comparison goes on, and OUT.png.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from lbopt.cli.console import ProgressBar
from lbopt.policies import make_policy
from lbopt.report.figures import COLOURS, GREY, new_figure, png_of
from lbopt.simulator import simulate
from lbopt.whole_file import write_file
from tests.benchmarks.one_rule_cases import Case

CASES = tuple(
    Case(trace, 16, "closed")
    for trace in ("azure-conv", "burstgpt", "mooncake", "azure-code", "arxiv", "generated-heavy-tail")
)
TURNOVERS = 8
DRAWS = 3
EXACT = "bf-io:effort=20000,time_limit=none"
BOUNDED = ("auto", "br-0:stage_switch=0", "br-h:predictor=survival", EXACT)
POINTS = ("fcfs", "jsq-load", "max-min", "max-min:scope=pool")
MULTIPLES = (1, 1.5, 2, 3, 5, 10, 30, None)
FIGURES = ("imbalance_tokens", "whole_run_tokens_per_second", "waiting_p99_steps", "waiting_mean_steps", "occupancy")


def spec_of(rule: str, multiple: float | None) -> str:
    """Name of the rule with a bound of so many times the wait of first come, first served."""
    return rule if multiple is None else f"{rule}{',' if ':' in rule else ':'}age_bound={multiple:g}x"


def main() -> None:
    """Make the runs, print a table of each case, and draw them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="files begin with this")
    given = parser.parse_args()
    file = given.out.with_name(given.out.name + ".json")
    found = json.loads(file.read_text()) if file.exists() else {}
    with ProgressBar() as bar:
        for case in CASES:
            specs = [spec_of(rule, m) for rule in BOUNDED for m in MULTIPLES]
            bar.begin(case.name, len(specs) + len(POINTS))
            for spec in (*POINTS, *specs):
                if f"{case.name} | {spec}" not in found:
                    rows = []
                    for draw in range(DRAWS):
                        trace = case.requests(given.shared / "data", draw, TURNOVERS)
                        past = case.requests(given.shared / "data", draw + 1000, TURNOVERS)
                        metrics = simulate(trace, make_policy(spec), case.setting, training=past).metrics()
                        rows.append([float(getattr(metrics, name)) for name in FIGURES])
                    found[f"{case.name} | {spec}"] = np.mean(rows, axis=0).tolist()
                    write_file(file, json.dumps(found, indent=1))
                bar.advance()
    for case in CASES:
        print(f"\n{case.name}\n\n| rule | bound | P99 wait, steps | imbalance, thousand tokens ", end="")
        print("| tokens a second of the whole run | occupancy, % |\n|---|--:|--:|--:|--:|--:|")
        for rule in (*POINTS, *BOUNDED):
            for m in MULTIPLES if rule in BOUNDED else (None,):
                row = found.get(f"{case.name} | {spec_of(rule, m)}")
                if row is not None:
                    bound = "none" if m is None else f"{m:g}x"
                    print(
                        f"| `{rule}` | {bound if rule in BOUNDED else ''} | {row[2]:,.0f} | {row[0] / 1e3:,.1f} ",
                        end="",
                    )
                    print(f"| {row[1]:,.0f} | {100 * row[4]:.2f} |")
    given.out.with_name(given.out.name + ".png").write_bytes(draw_cases(found))


def draw_cases(found: dict[str, list[float]]) -> bytes:
    """Draw the imbalance against the P99 wait, a panel for each case; dotted: three times first come, first served."""
    figure, _ = new_figure(width=12, height=7)
    figure.clear()
    panels = figure.subplots(2, 3).ravel()
    for axes, case in zip(panels, CASES, strict=True):
        fifo = found[f"{case.name} | fcfs"]
        for colour, rule in zip(COLOURS, BOUNDED, strict=False):
            rows = [found[f"{case.name} | {spec_of(rule, m)}"] for m in MULTIPLES]
            label = "bf-io, exact by step" if rule == EXACT else rule
            waits, imbalances = [max(1, row[2]) for row in rows], [row[0] / 1e3 for row in rows]
            style = "--" if rule == EXACT else "-"
            axes.plot(waits, imbalances, style, marker="o", markersize=3, color=colour, label=label)
        for mark, rule in zip("sv^D", POINTS, strict=True):
            row = found[f"{case.name} | {rule}"]
            axes.plot(max(1, row[2]), row[0] / 1e3, mark, color=GREY, markersize=5, label=rule)
        axes.axvline(max(1, 3 * fifo[2]), color=GREY, linewidth=0.8, linestyle=":")
        axes.set_xscale("log")
        axes.set_yscale("log")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
            axis.set_minor_formatter(NullFormatter())
        axes.set_title(case.trace, fontsize=9)
        axes.grid(visible=True, alpha=0.25)
    for axes in panels[3:]:
        axes.set_xlabel("P99 wait, steps (at least 1)")
    for axes in panels[::3]:
        axes.set_ylabel("mean imbalance, thousand tokens")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=8
    )
    return png_of(figure)


if __name__ == "__main__":
    main()
