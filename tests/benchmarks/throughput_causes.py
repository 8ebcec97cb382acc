"""Which cause, if any, brings BalanceRoute's gain in throughput here into the range that its tables print?

python -m tests.benchmarks.throughput_causes --shared SHARED --out causes.csv

BR-H with the oracle, pooled, that always sees the truth, against a baseline that binds on arrival. Fleets, requests,
window and the balanced step of 60 ms are those of the reproduction. One thing is changed at a time: how old the
baseline's sight is (a), how many tokens a worker may hold (b), the baseline (d), the share of the balanced step that
depends on the load (e), the number of slots and the spread of lengths (f); then some of them together (c, g). Where
memory is short, either a request waits that does not fit and what runs may grow (blocked), or the youngest request is
pre-empted and computed again at 20 us a token. Gains are in tokens made a second, in running requests and by shorter
steps, with 95 % intervals over seeds, and judged as the reproduction judges: within 30 % of the printed gain over the
same baseline.
"""

import argparse
import csv
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from lbopt.cli.console import ProgressBar
from lbopt.hardware import AffineStepTime
from lbopt.hardware.published import published_table
from lbopt.model import Fleet
from lbopt.policies import make_policy
from lbopt.simulator import ClosedLoop, SimulationSetting, Telemetry, TraceTimes, make_detail, simulate
from lbopt.statistics import over_seeds
from lbopt.studies.printed import interval_of, printed_number, verdict, within
from tools.studies.reproduction.balance_route import BR_H, RULES
from tools.studies.reproduction.cell import LEARNT, measured
from tools.studies.reproduction.drawn import draw
from tools.studies.reproduction.place import BALANCED_SECONDS, PUBLISHED_LENGTHS, TABLE, B

STEP = BALANCED_SECONDS
NANOSECONDS = 100.0
#: What happens where memory is short, and what share of it is kept free when a request is let in: half of it, of twice
#: the memory, leaves what runs room to grow, so that requests wait and none is pre-empted.
MEMORY = {
    "pre-emption": ("preempt=recompute,prefill_cost=20us", 0.01),
    "blocked": ("preempt=recompute,prefill_cost=20us,watermark=0.5", 0.5),
}


@dataclass(frozen=True)
class Cause:
    """What is changed, in words, and how; the defaults are the reproduction's."""

    words: str
    baseline: str = "JSQ"
    sight: Telemetry | None = None
    memory: str | None = None  # of MEMORY
    capacity: float = 1.0  # of the mean load of a full and balanced worker
    share: float | None = None  # of the balanced step by load; None = 100 ns a token
    slots: int = B
    sigma: float | None = None  # spread of the logarithm of lognormal lengths; None = the reproduction's


def blind(seconds):
    """Return reports that old, to a baseline that does not count what it sends."""
    return Telemetry(seconds, own="none")


CAUSES = (
    Cause("nothing"),
    Cause("a: 1 step old, counts its own", sight=Telemetry(STEP)),
    Cause("a: 10 steps old, counts its own", sight=Telemetry(10 * STEP)),
    Cause("a: 100 steps old, counts its own", sight=Telemetry(100 * STEP)),
    Cause("a: 1 step old, blind", sight=blind(STEP)),
    Cause("a: 10 steps old, blind", sight=blind(10 * STEP)),
    Cause("a: 100 steps old, blind", sight=blind(100 * STEP)),
    Cause("a: polled each 100 ms, blind", sight=blind(0.1)),
    Cause("a: polled each 250 ms, blind", sight=blind(0.25)),
    Cause("a: polled each 1 s, blind", sight=blind(1.0)),
    *(
        Cause(f"b: memory {share:.0%} of a full worker's load, {how}", memory=how, capacity=share)
        for share in (1.2, 1.0, 0.7)
        for how in MEMORY
    ),
    Cause("c: memory 100%, pre-emption, 10 steps old, blind", memory="pre-emption", sight=blind(10 * STEP)),
    Cause("c: memory 100%, blocked, 10 steps old, blind", memory="blocked", sight=blind(10 * STEP)),
    Cause(
        "c: memory 100%, pre-emption, 10 steps old, counts its own", memory="pre-emption", sight=Telemetry(10 * STEP)
    ),
    Cause("d: P2C", baseline="P2C"),
    Cause("d: round-robin", baseline="Round-Robin"),
    Cause("d: random", baseline="Random"),
    Cause("e: a quarter of the step by load", share=0.25),
    Cause("e: half of the step by load", share=0.5),
    Cause("e: all of the step by load", share=1.0),
    Cause("f: 8 slots a worker", slots=8),
    Cause("f: lognormal lengths with a spread of 2, half of the step by load", sigma=2.0, share=0.5),
    Cause("f: 8 slots, a spread of 2, all by load", slots=8, sigma=2.0, share=1.0),
    Cause("f: 8 slots a worker, all of the step by load", slots=8, share=1.0),
    Cause("f: 8 slots, all by load, round-robin", slots=8, share=1.0, baseline="Round-Robin"),
    Cause("f: 8 slots, all by load, memory 100%, blocked", slots=8, share=1.0, memory="blocked"),
    Cause("g: 10 steps old, blind, half of the step by load", sight=blind(10 * STEP), share=0.5),
    Cause("g: 50 steps old, blind, all of the step by load", sight=blind(50 * STEP), share=1.0),
    Cause("g: 100 steps old, blind, all of the step by load", sight=blind(100 * STEP), share=1.0),
    Cause("g: round-robin, all of the step by load", baseline="Round-Robin", share=1.0),
    Cause("g: random, all of the step by load", baseline="Random", share=1.0),
)


def requests_of(name, shared):
    """Return what `draw` takes."""
    if name == "BurstGPT":
        return {"trace": str(shared / "data" / "burstgpt_8000.json"), "longer_than": 0}
    return dict(PUBLISHED_LENGTHS)


def figures(cause, rule, sight, requests, arrivals, G, count, seed):
    """Return tokens made a second, mean running requests and mean seconds of a step, while requests appear."""
    if cause.sigma is not None:
        requests = PUBLISHED_LENGTHS | {"sigma": cause.sigma}
    trace = draw(requests, count, seed)
    resident = trace.mean_resident_tokens
    full = cause.slots * resident
    per_token = NANOSECONDS * 1e-9 if cause.share is None else cause.share * STEP / full
    capacity, detail = None, None
    if cause.memory is not None:
        # Whatever the share is, the largest request has to fit.
        largest = int((trace.prompt + trace.output).max())
        text, kept_free = MEMORY[cause.memory]
        capacity = max(round(cause.capacity * full / (1 - kept_free)), largest + 16)
        detail = make_detail(text)
    setting = SimulationSetting(
        Fleet(G, cause.slots, capacity),
        arrivals,
        step_time=AffineStepTime(max(0.0, STEP - per_token * full), per_token),
        telemetry=sight,
        detail=detail,
    )
    training = draw(requests, LEARNT, seed + 1_000_003)
    run = simulate(trace, make_policy(rule), setting, seed=seed, training=training)
    rows = measured(run).rows
    step = {name: values[rows] for name, values in run.steps.items()}
    made = step.get("made", step["active"])
    return float(made.sum() / step["seconds"].sum()), float(step["active"].mean()), float(step["seconds"].mean())


def printed_gain(G, baseline):
    """Return BR-H's printed gain over a baseline in tokens a second, and in running requests by Little's law, in %."""
    rows = {row["method"]: row for row in published_table(TABLE).rows if row["group"] == f"prop-g{G}"}
    ours, theirs = rows[BR_H], rows[baseline]
    rate = float(ours["throughput_tok_s"]) / float(theirs["throughput_tok_s"])
    return 100 * (rate - 1), 100 * (rate * float(ours["tpot_p95_ms"]) / float(theirs["tpot_p95_ms"]) - 1)


def judged(values, G, baseline):
    """Return the verdict on gains in tokens a second."""
    value = printed_gain(G, baseline)[0]
    return verdict(interval_of(values), printed_number(value, within(), source=TABLE, place=f"prop-g{G}", unit="%"))


def interval_text(values):
    found = over_seeds(values)
    return f"{found.mean:+.1f} ({found.low:+.1f} to {found.high:+.1f})"


def line_of(cause, requests, arrivals, G, count, seeds, known):
    """Return the gains of one cause, one a seed: in tokens a second, in running requests, and by shorter steps."""
    gains = []
    for seed in range(seeds):
        theirs = figures(cause, RULES[cause.baseline], cause.sight, requests, arrivals, G, count, seed)
        key = (replace(cause, words="", baseline="", sight=None), count, seed)  # what the router sees is the truth
        if key not in known:
            known[key] = figures(cause, RULES[BR_H], None, requests, arrivals, G, count, seed)
        ours = known[key]
        gains.append(
            [100 * (ours[0] / theirs[0] - 1), 100 * (ours[1] / theirs[1] - 1), 100 * (theirs[2] / ours[2] - 1)]
        )
    return np.array(gains).T


def main():
    """Run all, write a row a cause and fleet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--shared", type=Path, required=True, help="folder with data/")
    parser.add_argument("--out", type=Path, required=True, help="CSV file; its rows are not run again")
    parser.add_argument("--workers", type=int, action="append", help="fleets of so many workers; 4, 8, 16")
    parser.add_argument("--requests", type=int, default=1500, help="requests of each worker")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--arrivals", default="", help="closed or Poisson alone")
    parser.add_argument("--lengths", default="", help="BurstGPT or lognormal alone")
    parser.add_argument("--cause", action="append", help="causes alone that begin so")
    given = parser.parse_args()
    names = ("requests", "arrivals", "G", "cause", "printed", "gain", "running", "steps", "verdict")
    known = {}
    if given.out.exists():
        with given.out.open() as file:
            known = {tuple(row[name] for name in names[:4]): row for row in csv.DictReader(file)}
    places = [
        (name, how, arrivals, G)
        for G in given.workers or (4, 8, 16)
        for name in ("BurstGPT", "lognormal, the paper's means")
        for how, arrivals in (("closed loop", ClosedLoop()), ("Poisson, load 0.95", TraceTimes(0.95)))
    ]
    places = [place for place in places if given.arrivals in place[1] and place[0].startswith(given.lengths)]
    chosen = [cause for cause in CAUSES if cause.words.startswith(tuple(given.cause or [""]))]
    with ProgressBar() as bar:
        bar.begin("causes", len(places) * len(chosen))
        for name, how, arrivals, G in places:
            of_router = {}
            for cause in chosen:
                key = (name, how, str(G), cause.words)
                if key not in known:
                    requests = requests_of(name, given.shared)
                    count = given.requests * G * cause.slots // B
                    found = line_of(cause, requests, arrivals, G, max(count, 400 * G), given.seeds, of_router)
                    texts = [interval_text(values) for values in found]
                    printed = "{:.1f} (running {:.1f})".format(*printed_gain(G, cause.baseline))
                    last = (printed, *texts, judged(found[0], G, cause.baseline))
                    known[key] = dict(zip(names, (*key, *last), strict=True))
                    with given.out.open("w", newline="") as file:
                        writer = csv.DictWriter(file, names)
                        writer.writeheader()
                        writer.writerows(known.values())
                bar.advance()
    print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    for row in known.values():
        print("| " + " | ".join(row[name] for name in names) + " |")


if __name__ == "__main__":
    main()
