"""`python -m tests.benchmarks.k_means_speed`: balanced K-means beside k-means-constrained, from the same centres.

k-means-constrained is no dependency of lbopt: install it where this is run (`pip install k-means-constrained`).

Points are normal in 10 dimensions, the first centres are the same random points for both, size_max is the least that
suffices. Both run in turns in one process, one thread each: ours, theirs, ours again. Seconds are of processor time,
so that other work on the machine counts as little as may be; a ratio is of theirs to our longer.

Where they end. Theirs stops as soon as the squared Frobenius norm of a round's shift of all centres is at most
tol * (mean variance of the features), tol = 1e-4 by default. Ours stops when the total fell by no more than tol (1e-9)
of its first value in a round, so the shift of one more round is computed at both ends, by the same code, beside the
shift that theirs allows. Theirs assigns by distances that are not squared, rounded to thousandths, so its rounds do not
lower the total that K-means is about: both are judged by the sum of squares about the means of the labels, and a third
row stops ours at the first round that is as good as the end of theirs. Both end at local optima, so with several seeds
the mean difference stands beside its interval.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass

import numpy as np
from rich.console import Console
from rich.table import Table
from threadpoolctl import threadpool_limits

from lbopt.assignment import BalancedKMeans, balanced_assignment
from lbopt.statistics import over_seeds

SIZES = ((2_000, 50), (10_000, 1_000))
WANTED = {(10_000, 1_000): 10.0}


@dataclass(frozen=True)
class End:
    """Where a run ended: `inertia` about the means of the labels, `shift` the squared shift of one more round."""

    who: str
    seconds: float
    rounds: int
    inertia: float
    shift: float


def means_of(points: np.ndarray, labels: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Return the means of clusters; an empty one keeps its centre."""
    sums = np.zeros_like(centres)
    np.add.at(sums, labels, points)
    counts = np.bincount(labels, minlength=len(centres))[:, None]
    return np.where(counts > 0, sums / np.maximum(counts, 1), centres)


def ended(who: str, spent: float, rounds: int, points: np.ndarray, labels: np.ndarray, first: np.ndarray) -> End:
    """Judge labels by the same code, whoever found them."""
    centres = means_of(points, labels, first)
    capacity = -(-len(points) // len(first))
    assert np.bincount(labels, minlength=len(first)).max() <= capacity
    costs = ((points**2).sum(axis=1)[:, None] + (centres**2).sum(axis=1)) - 2 * points @ centres.T
    moved = means_of(points, balanced_assignment(costs, capacity).labels, centres)
    inertia = float(((points - centres[labels]) ** 2).sum())
    return End(who, spent, rounds, inertia, float(((moved - centres) ** 2).sum()))


def ours(points: np.ndarray, first: np.ndarray, who: str, rounds: int = 300) -> tuple[End, list[float]]:
    """Run lbopt; return its end and the totals of its rounds."""
    model = BalancedKMeans(len(first), init=first, max_iter=rounds)
    begin = time.process_time()
    model.fit(points)
    spent = time.process_time() - begin
    return ended(who, spent, model.n_iter_, points, model.labels_, first), model.totals_


def theirs(points: np.ndarray, first: np.ndarray, most: int) -> End:
    """Run k-means-constrained with its own tolerance."""
    try:
        from k_means_constrained import KMeansConstrained
    except ImportError:
        raise SystemExit(
            "this benchmark runs k-means-constrained, which is absent: pip install k-means-constrained "
            "(in an environment of its own, since it pins what lbopt does not)"
        ) from None
    capacity = -(-len(points) // len(first))
    model = KMeansConstrained(len(first), size_max=capacity, init=first.copy(), n_init=1, max_iter=most, n_jobs=1)
    begin = time.process_time()
    model.fit(points.copy())
    spent = time.process_time() - begin
    return ended("k-means-constrained", spent, model.n_iter_, points, model.labels_, first)


def compared(count: int, clusters: int, seed: int, most: int) -> list[End]:
    """Run both in turns."""
    rng = np.random.default_rng(seed)
    points = rng.normal(size=(count, 10))
    first = points[rng.choice(count, clusters, replace=False)]
    before, totals = ours(points, first, "lbopt")
    rival = theirs(points, first, most)
    # labels are better about their own means than a round's total, which is about the means before, says
    enough = next((place + 1 for place, total in enumerate(totals) if total <= rival.inertia), len(totals))
    as_good, _ = ours(points, first, "lbopt, as good as it", enough)
    after, _ = ours(points, first, "lbopt, again")
    return [before, rival, as_good, after]


def table_of(count: int, clusters: int, ends: list[End], allowed: float) -> Table:
    """Return one comparison as a table."""
    rival = ends[1]
    wanted = f", wanted {WANTED[count, clusters]:g}" if (count, clusters) in WANTED else ""
    title = f"N = {count:,}, K = {clusters:,}: {ratio(ends):.1f} times faster{wanted}"
    table = Table("run", "seconds", "rounds", "s a round", "inertia", "against it", "shift", title=title, box=None)
    table.caption = f"k-means-constrained stops at a shift of {allowed:.2e}"
    for end in ends:
        share = f"{100 * (end.inertia / rival.inertia - 1):+.3f} %"
        times = (f"{end.seconds:.3f}", str(end.rounds), f"{end.seconds / end.rounds:.4f}")
        table.add_row(end.who, *times, f"{end.inertia:.2f}", share, f"{end.shift:.1e}")
    return table


def ratio(ends: list[End]) -> float:
    """Return theirs over the longer of our two runs."""
    return ends[1].seconds / max(ends[0].seconds, ends[3].seconds)


def summary(count: int, clusters: int, runs: list[list[End]]) -> str:
    """Return ratios and inertias over seeds in a sentence."""
    ratios = sorted(ratio(ends) for ends in runs)
    as_good = sorted(ends[1].seconds / ends[2].seconds for ends in runs if ends[2].inertia <= ends[1].inertia)
    worse = over_seeds([100 * (ends[0].inertia / ends[1].inertia - 1) for ends in runs])
    spread = "" if worse.low is None or worse.high is None else f" ± {(worse.high - worse.low) / 2:.3f}"
    good = f"{as_good[0]:.1f} to {as_good[-1]:.1f}" if as_good else "-"
    return (
        f"N = {count:,}, K = {clusters:,}, {len(runs)} seeds: {ratios[0]:.1f} to {ratios[-1]:.1f} times faster, median "
        f"{float(np.median(ratios)):.1f}; until as good as theirs ({len(as_good)} seeds) {good} times; "
        f"inertia {worse.mean:+.3f}{spread} %"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", nargs=2, type=int, action="append", metavar=("N", "K"), help="may be given again")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=int, default=300, help="rounds of k-means-constrained")
    given = parser.parse_args()
    BalancedKMeans(3, n_init=1).fit(np.random.default_rng(0).random((50, 2)))  # compiles or loads
    console = Console(width=120)
    for count, clusters in given.size or SIZES:
        runs = []
        for seed in range(given.seeds):
            runs.append(compared(count, clusters, seed, given.most))
            allowed = 1e-4 * float(np.random.default_rng(seed).normal(size=(count, 10)).var(axis=0).mean())
            console.print(table_of(count, clusters, runs[-1], allowed))
            console.print_json(json.dumps([asdict(end) for end in runs[-1]]), indent=None)
        console.print(summary(count, clusters, runs))


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
