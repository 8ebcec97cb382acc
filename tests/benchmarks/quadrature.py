"""How often a few nodes choose what all steps would, and what the other choices cost.

python -m tests.benchmarks.quadrature --shared ../shared --out quadrature

On seeded random states (lognormal outputs, 4 to 32 workers) and on states along a run of jsq-load over the BurstGPT
sample. "equal": share of decisions that are those of the exact sum, with a Wilson interval of 95 %. "error": of the
cost of the chosen worker, and of all workers, relative to the exact one. "excess": the exact cost of the chosen worker
above the least one, relative to that. Writes OUT.json, OUT.md and OUT.png.
"""

import argparse
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import binomtest

from lbopt.cli.console import ProgressBar
from lbopt.kernels.routing.fast_phi.route import cheapest, overflow_costs
from lbopt.kernels.routing.fast_phi.state import Board, How, Law
from lbopt.policies.fast_phi import FastPhi
from lbopt.policies.projected_fleet import Quadrature
from lbopt.report.figures import COLOURS
from lbopt.whole_file import write_file
from tests.benchmarks.quadrature_states import Floats, Ints, State, busy_observation, drawn, expected_by_fft, seen

NODES = (1, 3, 5, 10, 20, 50, 0)
RULES: dict[str, dict[str, Any]] = {
    "published": {},
    "published, to 95 %": {"percentile": 95.0},
    "product": {"product": True},
}
NO_SLOTS = np.empty(0, dtype=np.int64)
TITLES = {"random": "random states", "trace": "states along a BurstGPT run"}


class Scale:
    """One quadrature on one history of outputs."""

    def __init__(self, quadrature: Quadrature, outputs: Ints) -> None:
        steps = quadrature.num_steps(outputs)
        self.nodes = quadrature.nodes_for(outputs)
        curve = quadrature.curve(outputs, np.array([0, outputs.size]), 0, steps)
        self.coefficient = quadrature.coefficients(self.nodes, curve)

    def costs(self, state: State) -> Floats:
        """Return the cost of each worker."""
        load = state.load if self.nodes.size == state.load.shape[0] else state.load[self.nodes]
        board = Board(self.nodes, load, load.max(axis=1), state.tokens, state.tokens, np.empty(state.tokens.size))
        overflow_costs(board, Law(self.coefficient, self.coefficient), How(0.0, False, 1, True), state.size)
        return board.cost


def compare(states: Iterator[State], bar: ProgressBar) -> list[dict[str, Any]]:
    """Return a line per rule and number of nodes."""
    rules = {(rule, K): Quadrature(nodes=K, **options) for rule, options in RULES.items() for K in NODES}
    found: dict[tuple[str, int], list[tuple[float, ...]]] = {key: [] for key in rules}
    history: Ints | None = None
    for state in states:
        if state.outputs is not history:
            history = state.outputs
            exact_scale = Scale(Quadrature(nodes=0), history)
            scales = {key: Scale(quadrature, history) for key, quadrature in rules.items()}
        exact = exact_scale.costs(state)
        best = cheapest(exact, state.tokens, NO_SLOTS, True)
        for key, scale in scales.items():
            costs = scale.costs(state)
            mine = cheapest(costs, state.tokens, NO_SLOTS, True)
            with np.errstate(divide="ignore", invalid="ignore"):
                error = np.where(exact > 0, np.abs(costs - exact) / exact, np.where(costs > 0, np.inf, 0.0))
                excess = (exact[mine] - exact[best]) / exact[best] if exact[best] > 0 else np.nan
            found[key].append((mine == best, error[mine], error.mean(), np.median(error), excess))
        bar.advance()
    return [line(*key, np.array(rows)) for key, rows in found.items()]


def line(rule: str, K: int, rows: Floats) -> dict[str, Any]:
    """Return the figures of one quadrature; an error beside an exact cost of zero is left out and counted."""
    equal, chosen, mean, median, excess = rows.T
    interval = binomtest(int(equal.sum()), equal.size).proportion_ci(method="wilson")
    finite = np.isfinite(chosen) & np.isfinite(mean)
    return {
        "rule": rule,
        "nodes": K or "all",
        "states": equal.size,
        "equal": float(equal.mean()),
        "equal low": float(interval.low),
        "equal high": float(interval.high),
        "error of chosen, mean": float(chosen[finite].mean()),
        "error of chosen, median": float(np.median(chosen[finite])),
        "error of all, mean": float(mean[finite].mean()),
        "error of all, median": float(np.median(median[finite])),
        "excess": float(np.nanmean(excess)),
        "exact cost of zero": int((~finite | np.isnan(excess)).sum()),
    }


def seconds(shared: Path) -> list[dict[str, Any]]:
    """Return what it takes to project and to route, warm, shortest of 50, in microseconds."""
    lines = []
    for G in (16, 144):
        observation = busy_observation(shared, G)
        active, forecast = observation.active, observation.forecast
        assert active is not None and forecast is not None and forecast.samples is not None
        for K in NODES:
            policy = FastPhi(nodes=K, rule="product")
            project, route = [], []
            for _ in range(51):
                begin = time.perf_counter()
                policy.fleet._rebuild(observation, active, forecast, forecast.samples)
                project.append(time.perf_counter() - begin)
                begin = time.perf_counter()
                policy.decide(observation)
                route.append(time.perf_counter() - begin)
            lines.append(
                {"G": G, "nodes": K or "all", "project": 1e6 * min(project[1:]), "route": 1e6 * min(route[1:])}
            )
        fourier = []
        for _ in range(10):
            begin = time.perf_counter()
            expected_by_fft(np.sort(forecast.samples.outputs), active.worker, active.size, active.generated, G)
            fourier.append(time.perf_counter() - begin)
        lines.append({"G": G, "nodes": "all, by FFT", "project": 1e6 * min(fourier), "route": lines[-1]["route"]})
    return lines


def slope(nodes: list[int], errors: list[float]) -> float:
    """Return the slope of log error against log K."""
    return float(np.polyfit(np.log(nodes), np.log(errors), 1)[0])


def smooth_slopes() -> dict[str, float]:
    """Return the slopes for S = exp(-h / 500) and a smooth overflow; -2 is expected of the product rule."""
    h = np.arange(4000)
    curve, overflow = np.exp(-h / 500), 2000 + h - 3000 * np.exp(-h / 300)
    quantile = np.minimum(np.ceil(-500 * np.log1p(-(np.arange(200_000) + 0.5) / 200_000)), h.size)
    outputs = np.sort(quantile.astype(np.int64))
    exact, Ks = float((curve * overflow).sum()), [10, 20, 40, 80, 160]
    found = {}
    for rule, options in RULES.items():
        errors = []
        for K in Ks:
            quadrature = Quadrature(nodes=K, corrected=True, **options)
            nodes = quadrature.nodes_for(outputs)
            errors.append(abs(float((quadrature.coefficients(nodes, curve) * overflow[nodes]).sum()) - exact))
        found[rule] = slope(Ks, errors)
    return found


def markdown(results: dict[str, list[dict[str, Any]]], slopes: dict[str, Any], times: list[dict[str, Any]]) -> str:
    """Return the tables."""
    text = []
    for name, lines in results.items():
        text += [
            f"{TITLES[name]}, {lines[0]['states']:,} of them",
            "",
            "| rule | K | equal choice | error, chosen: mean / median | error, all workers: mean / median | excess |",
            "|---|---|---|---|---|---|",
        ]
        for row in lines:
            errors = [
                f"{row[f'error of {who}, mean']:.3f} / {row[f'error of {who}, median']:.3f}"
                for who in ("chosen", "all")
            ]
            text.append(
                f"| {row['rule']} | {row['nodes']} | {row['equal']:.1%} ({row['equal low']:.1%} to "
                f"{row['equal high']:.1%}) | {errors[0]} | {errors[1]} | {row['excess']:.1%} |"
            )
        text.append("")
    text += ["| slope of log error against log K | " + " | ".join(RULES) + " |", "|---" * (len(RULES) + 1) + "|"]
    for name, found in slopes.items():
        text.append(f"| {name} | " + " | ".join(f"{found[rule]:.2f}" for rule in RULES) + " |")
    text += ["", "| G | K | projection, us a step | decision, us a request |", "|---|---|---|---|"]
    text += [f"| {row['G']} | {row['nodes']} | {row['project']:.0f} | {row['route']:.1f} |" for row in times]
    return "\n".join(text) + "\n"


def draw(results: dict[str, list[dict[str, Any]]]) -> Figure:
    """Draw equal choices and errors over K."""
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    for colour, rule in zip(COLOURS, RULES, strict=False):
        for (name, lines), dash in zip(results.items(), ("-", "--"), strict=True):
            rows = [row for row in lines if row["rule"] == rule and row["nodes"] != "all"]
            Ks, label = [row["nodes"] for row in rows], f"{rule}, {TITLES[name]}"
            low, high = ([100 * row[f"equal {end}"] for row in rows] for end in ("low", "high"))
            left.plot(
                Ks, [100 * row["equal"] for row in rows], dash, color=colour, marker="o", markersize=3, label=label
            )
            left.fill_between(Ks, low, high, color=colour, alpha=0.15, linewidth=0)
            right.plot(Ks, [row["error of all, mean"] for row in rows], dash, color=colour, marker="o", markersize=3)
    left.set_ylabel("decisions that are those of the exact sum (%)")
    left.set_ylim(0, 100)
    right.set_ylabel("mean relative error of the cost")
    right.set_yscale("log")
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_xlabel("nodes K")
        axes.set_xticks(NODES[:-1], [str(K) for K in NODES[:-1]])
        axes.minorticks_off()
        axes.grid(visible=True, alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize=8)
    return figure


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, default=Path("quadrature"), help="files begin with this")
    parser.add_argument("--count", type=int, default=10_000, help="states of each kind")
    options = parser.parse_args()
    results = {}
    with ProgressBar() as bar:
        for name, states in (("random", drawn(options.count)), ("trace", seen(options.shared, options.count))):
            bar.begin(TITLES[name], options.count)
            results[name] = compare(states, bar)
    slopes: dict[str, Any] = {"smooth, K = 10 to 160": smooth_slopes()}
    for name, lines in results.items():
        slopes[f"{TITLES[name]}, K = 5 to 50"] = {
            rule: slope(Ks := [5, 10, 20, 50], [_error(lines, rule, K) for K in Ks]) for rule in RULES
        }
    times = seconds(options.shared)
    text = markdown(results, slopes, times)
    print(text)
    everything = {"seed": 20261121, "results": results, "slopes": slopes, "microseconds": times}
    write_file(options.out.with_name(options.out.name + ".json"), json.dumps(everything, indent=2) + "\n")
    write_file(options.out.with_name(options.out.name + ".md"), text)
    draw(results).savefig(options.out.with_name(options.out.name + ".png"), dpi=130)


def _error(lines: list[dict[str, Any]], rule: str, K: int) -> float:
    return next(float(row["error of all, mean"]) for row in lines if (row["rule"], row["nodes"]) == (rule, K))


if __name__ == "__main__":
    main()
