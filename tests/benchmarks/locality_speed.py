"""`python -m tests.benchmarks.locality_speed`: the offline fit with its parts, and the decision for one live request.

The fit is that of the paper: 1,000 requests, 48 layers of 128 experts, 16 workers, 50,000 pairs for the layer mask. One
process, kernels warm; a time is the shortest of a few, and the median stands beside it. The requests are a synthetic
task workload, drawn once into --capture (half a minute) and read from there afterwards.

Decisions are timed one by one over all requests, the Python call included, each with other counts than the one before.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from lbopt.assignment import BalancedKMeans
from lbopt.kernels.locality.forward_selection import forward_selection, pair_products
from lbopt.locality import (
    BandRouter,
    Capture,
    RoutingTable,
    capture_of,
    draw_workload,
    fit_idf,
    fit_routing,
    rank_correlation,
    read_capture,
    sample_pairs,
    task_workload,
    write_capture,
)

WORKERS = 16


def times(action: Callable[[], object], rounds: int) -> tuple[float, float]:
    """Return the shortest and the median wall time of a call, in seconds."""
    seen = []
    for _ in range(rounds):
        begin = time.perf_counter()
        action()
        seen.append(time.perf_counter() - begin)
    return min(seen), statistics.median(seen)


def offline(capture: Capture, rounds: int) -> Table:
    """Time the fit and its parts."""
    counts, decode = capture.counts, capture.decode
    idf, pairs = fit_idf(counts), sample_pairs(len(counts), seed=0)
    L = counts.shape[1]
    products, squares = np.empty((L, len(pairs))), np.empty((L, len(counts)))
    order, curve, ones = np.empty(L, dtype=np.int64), np.empty(L), np.ones(counts.shape[1:])
    fit = fit_routing(capture, WORKERS)
    pair_products(decode, ones, pairs, products, squares)
    fixed = rank_correlation_ranks(products.sum(axis=0))
    rows = fit.rows
    parts: dict[str, Callable[[], object]] = {
        "whole fit": lambda: fit_routing(capture, WORKERS),
        "IDF weights": lambda: fit_idf(counts),
        "pairs": lambda: sample_pairs(len(counts), seed=0),
        "products of pairs, decode": lambda: pair_products(decode, ones, pairs, products, squares),
        "products of pairs, signatures": lambda: pair_products(counts, idf.weights, pairs, products, squares),
        "choice of layers": lambda: forward_selection(products, squares, pairs, fixed, order, curve),
        "products of signatures": lambda: rows @ rows.T,
        "clustering, 5 starts": lambda: BalancedKMeans(WORKERS, metric="cosine").fit(rows),
        "again for 8 workers": lambda: fit.for_workers(8),
        "vanilla, 16 workers": lambda: fit.for_workers(WORKERS, balanced=False),
    }
    table = Table("part of the offline fit", "best (ms)", "median (ms)", "wanted", box=None)
    for name, action in parts.items():
        action()
        best, middle = times(action, rounds)
        table.add_row(name, f"{1e3 * best:.1f}", f"{1e3 * middle:.1f}", "<= 500" if name == "whole fit" else "")
    return table


def rank_correlation_ranks(values: np.ndarray) -> np.ndarray:
    """Return doubled centred ranks of values that do not tie; checked by a rank correlation of 1."""
    ranks = np.empty(values.size)
    ranks[np.argsort(values)] = 2.0 * np.arange(1, values.size + 1) - (values.size + 1)
    assert rank_correlation(values, ranks) > 1 - 1e-9
    return ranks


def decisions(capture: Capture, rounds: int) -> Table:
    """Time the decision at 16 and 144 workers, all layers kept."""
    table = Table("workers", "tau", "mean band", "best pass (us)", "median pass (us)", "wanted", box=None)
    whole = fit_routing(capture, WORKERS, mask=False)
    rng = np.random.default_rng(0)
    for workers in (16, 144):
        one: RoutingTable = whole.for_workers(workers).table
        load = rng.integers(0, 64, size=workers)
        for tau in (0.0, 0.1, 0.3, 1.0):
            router = BandRouter(one, tau)
            sizes = [router.band(counts).size for counts in capture.counts]
            best, middle = times(lambda r=router, n=load: [r.route(counts, n) for counts in capture.counts], rounds)
            cells = (f"{1e6 * seconds / len(capture.counts):.1f}" for seconds in (best, middle))
            table.add_row(f"{workers}", f"{tau}", f"{np.mean(sizes):.1f}", *cells, "<= 50")
    return table


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--capture", type=Path, help="file that holds the requests, or is to hold them")
    given = parser.parse_args()
    if given.capture is not None and given.capture.exists():
        capture = read_capture(given.capture)
    else:
        capture = capture_of(draw_workload(task_workload(), seed=1)[1], 8)
        if given.capture is not None:
            write_capture(capture, given.capture)
    console = Console(width=120)
    console.print(offline(capture, given.rounds))
    console.print(decisions(capture, given.rounds))


if __name__ == "__main__":
    main()
