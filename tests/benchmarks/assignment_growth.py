"""`python -m tests.benchmarks.assignment_growth`: how the time of one balanced assignment grows, as a figure.

Left with the points N at 16 and 64 centres, right with the centres K at 10,000 points; squared distances of normal
points in 10 dimensions, capacities ceil(N / K), one thread, processor time, so that other work counts little. Ours is
the shortest of several cold runs, OR-Tools' flow is built and read by arrays (`lean` of `assignment_speed`) and
run as long as a minute is not exceeded: the next size is left out where the last two, carried on, say it would be.
Exponents are least squares through the logarithms of the times, from `FROM` points or centres on.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from lbopt.assignment import balanced_assignment
from lbopt.report.figures import line_style, new_figure
from lbopt.whole_file import write_file
from tests.benchmarks.assignment_speed import costs_of, lean

POINTS = (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
CENTRES = (16, 32, 64, 128, 256, 512, 1_024)
AT_CENTRES, AT_POINTS = (16, 64), 10_000

#: From where exponents are fitted: below, the fixed cost of a call is felt.
FROM = {"N": 10_000, "K": 16}

#: OR-Tools is not started where it would take longer, seconds.
PATIENCE = 60.0

Times = dict[int, float]


def seconds(action: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    begin = time.process_time()
    action()
    return time.process_time() - begin


def of_ours(points: int, centres: int) -> float:
    """Return the shortest time of several runs, fewer where they are long."""
    costs, capacity = costs_of("squared", points, centres), -(-points // centres)
    once = seconds(lambda: balanced_assignment(costs, capacity))
    more = 6 if once < 1 else 1
    return min(once, *(seconds(lambda: balanced_assignment(costs, capacity)) for _ in range(more)))


def of_or_tools(points: int, centres: int) -> float:
    """Return the time of one run, the shorter of two where it is short."""
    costs, capacity = costs_of("squared", points, centres), -(-points // centres)
    once = seconds(lambda: lean(costs, capacity))
    return once if once > 5 else min(once, seconds(lambda: lean(costs, capacity)))


def swept(sizes: tuple[int, ...], measure: Callable[[int], float], patience: float = np.inf) -> Times:
    """Measure from small to large, as long as the next is expected to end in time."""
    times: Times = {}
    for size in sizes:
        if len(times) > 1:
            (a, slow), (b, slower) = list(times.items())[-2:]
            exponent = max(1.0, np.log(slower / slow) / np.log(b / a))
            if slower * (size / b) ** exponent > patience:
                break
        times[size] = measure(size)
    return times


def exponent_of(times: Times, least: int) -> float | None:
    """Return the slope of log time over log size from `least` on; None with fewer than three sizes."""
    kept = {size: spent for size, spent in times.items() if size >= least}
    if len(kept) < 3:
        return None
    return float(np.polyfit(np.log(list(kept)), np.log(list(kept.values())), 1)[0])


def draw(panels: dict[str, dict[str, Times]], path: Path) -> None:
    """Draw one panel a variable, both axes logarithmic, exponents in the legend."""
    figure, _ = new_figure(width=11, height=4.6)
    figure.clear()
    axes_of = figure.subplots(1, 2, sharey=True)
    labels = {"N": "points N", "K": f"centres K, at N = {AT_POINTS:,}"}
    for axes, (variable, curves) in zip(axes_of, panels.items(), strict=True):
        for index, (name, times) in enumerate(curves.items()):
            slope = exponent_of(times, FROM[variable])
            label = name if slope is None else f"{name}: {variable}$^{{{slope:.2f}}}$"
            style = line_style(index // 2 if variable == "N" else 2) | {"linestyle": "-" if index % 2 == 0 else "--"}
            marker = "o" if index % 2 == 0 else "s"
            axes.plot(list(times), list(times.values()), marker=marker, markersize=4, label=label, **style)
        axes.set_xscale("log", base=10 if variable == "N" else 2)
        axes.set_yscale("log")
        axes.set_xlabel(labels[variable])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(visible=True, alpha=0.25)
        axes.legend(frameon=False, loc="upper left")
    axes_of[1].set_xticks(CENTRES, [str(K) for K in CENTRES])
    axes_of[0].set_ylabel("processor seconds for one assignment")
    for suffix in (".png", ".svg"):
        metadata = {"Software": None} if suffix == ".png" else {"Date": None, "Creator": None}
        figure.savefig(path.with_name(path.name + suffix), dpi=130, metadata=metadata)


def main() -> None:
    """Measure, draw and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("assignment-growth"), help="files begin with this")
    parser.add_argument("--redraw", action="store_true", help="draw from the numbers of an earlier run")
    given = parser.parse_args()
    numbers = given.out.with_name(given.out.name + ".json")
    if given.redraw:
        stored = json.loads(numbers.read_text(encoding="utf-8"))
        panels = {v: {n: {int(s): t for s, t in c.items()} for n, c in curves.items()} for v, curves in stored.items()}
    else:
        balanced_assignment(np.random.default_rng(0).random((50, 5)), 10)  # compiles or loads
        panels = {"N": {}, "K": {}}
        for K in AT_CENTRES:
            panels["N"][f"lbopt, K = {K}"] = swept(POINTS, lambda N, K=K: of_ours(N, K))
            panels["N"][f"OR-Tools, K = {K}"] = swept(POINTS, lambda N, K=K: of_or_tools(N, K), PATIENCE)
        panels["K"]["lbopt"] = swept(CENTRES, lambda K: of_ours(AT_POINTS, K))
        panels["K"]["OR-Tools"] = swept(CENTRES, lambda K: of_or_tools(AT_POINTS, K), PATIENCE)
        write_file(numbers, json.dumps(panels, indent=2) + "\n")
    draw(panels, given.out)
    for variable, curves in panels.items():
        for name, times in curves.items():
            slope = exponent_of(times, FROM[variable])
            shown = ", ".join(f"{size:,}: {1e3 * spent:,.1f} ms" for size, spent in times.items())
            print(f"{variable} | {name} | exponent {'-' if slope is None else f'{slope:.2f}'} | {shown}")


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
