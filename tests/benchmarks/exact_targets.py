"""`python -m tests.benchmarks.exact_targets`: the targets of the exact search beside what this machine reaches.

Every number comes from runs in processes of their own, of `race` or of `state_class`; they lie in a store in `--out`,
so that the command goes on where it stopped. Prints one table and writes exact_targets.json. The frozen states are for
final numbers; while something is being tuned, use `--shift`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from rich.table import Table

from lbopt.cli.console import ProgressBar, command_line, out
from lbopt.report.folder import provenance, write_json
from tests.benchmarks import exact_instances as sources
from tests.benchmarks.measure import shared_folder
from tests.benchmarks.race.config import RaceConfig
from tests.benchmarks.race.numbers import duration, ratio_bracket, time_bracket
from tests.benchmarks.race.outcome import RaceOutcome
from tests.benchmarks.race.profile import Bracket, median_ratio, quantile, quickest, ratios, share_within, times_of
from tests.benchmarks.race.race import run_race
from tests.benchmarks.state_class import NOT_WRITTEN, StateRuns, run_class

TRACES = ("burstgpt", "azure")
#: By number of workers: share to be proved within 60 ms and within 5 s, median in seconds.
STATE_TARGETS = {
    4: (0.99, 1.00, 0.3e-3),
    16: (0.99, 1.00, 0.3e-3),
    32: (0.99, 1.00, 2e-3),
    64: (0.95, 0.99, 2e-3),
    144: (0.95, 0.99, 3e-3),
}
LARGEST_OPEN_SHARE = 0.0002
RATIO_TARGETS = {"rich": 1000.0, "leftover": 300.0}
#: Seconds for three workers and so many numbers of 16 bits.
PARTITION_TARGETS = {20: 0.1, 30: 1.0}
BMNP_SECONDS = 60.0
#: By number of workers: seconds within which nine in ten windows are to be proved.
WINDOW_TARGETS = {4: 5e-3, 16: 100e-3}
#: Windows with 144 workers: seconds that a call may take, and the limit that is given to it, because nodes are long.
WINDOW_SECONDS, WINDOW_LIMIT = 0.02, 0.012


@dataclass(frozen=True)
class Line:
    """One target: what, how much is wanted, what was reached, and whether that is enough (None: not known)."""

    what: str
    wanted: str
    reached: str
    met: bool | None


class Bench:
    """What all parts share: the options, the store and the bar."""

    def __init__(self, options: argparse.Namespace, bar: ProgressBar) -> None:
        self.options, self.bar = options, bar
        self.store = options.out / "exact_targets.sqlite"
        self.remarks: list[str] = []

    def race(self, instances: list[sources.RaceInstance], limit: float, *solvers: str) -> RaceOutcome:
        config = RaceConfig(solvers=solvers or ("exact",), time_limit=limit)
        outcome = run_race(config, instances, self.store, self.bar)
        if outcome.interrupted:
            raise KeyboardInterrupt
        self.remarks += [
            f"{'CONTRADICTION' if one.grave else 'refuted claim'}: {one}" for one in outcome.contradictions
        ]
        self.remarks += [f"{instances[0].group}: {note}" for note in outcome.notes]
        return outcome

    def states(self, name: str, count: int) -> list[sources.RaceInstance]:
        return sources.states(name, self.options.data, count, self.options.shift)

    def whole_class(self, name: str, count: int, limit: float) -> StateRuns:
        options = self.options
        return run_class(
            name,
            count=count,
            checks=options.checks,
            limit=limit,
            store=self.store,
            data=options.data,
            shift=options.shift,
            progress=self.bar,
        )

    def checked(self, name: str, runs: StateRuns) -> Line:
        """What the independent checker says of the proofs that it was asked about."""
        asked = [said for said in runs.checked if said is not None]
        long = sum(said.startswith(NOT_WRITTEN) for said in asked)
        refused = [said for said in asked if said and not said.startswith(NOT_WRITTEN)]
        self.remarks += [f"REFUSED: {name}: {said}" for said in refused]
        reached = f"{len(refused)} of {len(asked)}" + (f", {long} too long to be written" if long else "")
        return Line(f"{name}: proofs refused by the checker", "none", reached, not refused if asked else None)


def proofs(outcome: RaceOutcome) -> np.ndarray:
    """Seconds of the exact search's proofs, infinite where there is none."""
    return times_of(outcome.of("exact"), claims=False)


def states_part(bench: Bench) -> Iterator[Line]:
    for shape in RATIO_TARGETS:
        for trace in TRACES:
            for workers, (quick, slow, median) in STATE_TARGETS.items():
                name = f"{shape}-{trace}-g{workers}"
                runs = bench.whole_class(name, bench.options.count, 5.0)
                yield at_least(f"{name}: proved within 60 ms", quick, share_within(runs.times, 0.06))
                yield at_least(f"{name}: proved within 5 s", slow, share_within(runs.times, 5.0))
                yield at_most(f"{name}: median", median, quantile(runs.times, 0.5, 5.0))
                worst = float(runs.open_share.max())
                wanted, reached = f"<= {LARGEST_OPEN_SHARE:.2%} of G·M", f"{worst:.4%}"
                yield Line(f"{name}: largest open gap", wanted, reached, worst <= LARGEST_OPEN_SHARE)
                yield bench.checked(name, runs)


def rivals_part(bench: Bench) -> Iterator[Line]:
    limit, rivals = bench.options.rival_limit, ("highs", "cp-sat")
    for shape, wanted in RATIO_TARGETS.items():
        for trace in TRACES:
            for workers in (16, 32, 64, 144):
                name = f"{shape}-{trace}-g{workers}"
                outcome = bench.race(bench.states(name, bench.options.rival_count), limit, "exact", *rivals)
                best = quickest([times_of(outcome.of(rival)) for rival in rivals])
                found = median_ratio(ratios(best, proofs(outcome), limit))
                states = f"{bench.options.rival_count} states, {limit:g} s"
                what = f"{name}: better of HiGHS and CP-SAT / exact, median of {states}"
                yield Line(what, f">= {wanted:,.0f}×", ratio_bracket(found), reaches(found, wanted))


def bmnp_part(bench: Bench) -> Iterator[Line]:
    outcome = bench.race(sources.bmnp(bench.options.data), BMNP_SECONDS)
    for record in outcome.of("exact"):
        yield proved_within(record.instance, BMNP_SECONDS, [record])


def partition_part(bench: Bench) -> Iterator[Line]:
    for count, seconds in PARTITION_TARGETS.items():
        outcome = bench.race(sources.partitions(count, bench.options.partitions), 20.0)
        yield proved_within(f"3 workers, {count} numbers of 16 bits, each", seconds, outcome.of("exact"))


def horizon_part(bench: Bench) -> Iterator[Line]:
    count = bench.options.window_count
    for trace in TRACES:
        for workers, seconds in WINDOW_TARGETS.items():
            name = f"rich-{trace}-g{workers}-h20"
            runs = bench.whole_class(name, count, 2.0)
            yield at_least(f"{name}: proved within {duration(seconds)}", 0.9, share_within(runs.times, seconds))
            yield bench.checked(name, runs)
        name = f"rich-{trace}-g144-h20"
        runs = bench.whole_class(name, count, WINDOW_LIMIT)
        worst, longest = float(runs.open_share.max()), float(runs.seconds.max())
        usual = float(np.quantile(runs.seconds, 0.99))
        reached = f"{worst:.2%}; P99 {duration(usual)}, longest {duration(longest)}"
        met = worst <= 0.01 and usual <= WINDOW_SECONDS
        yield Line(f"{name}: largest gap in 20 ms (P99)", "<= 1 % of G·ΣM", reached, met)


#: In the order in which they are run; the one that takes longest is the last.
PARTS = {
    "states": states_part,
    "partition": partition_part,
    "horizon": horizon_part,
    "bmnp": bmnp_part,
    "rivals": rivals_part,
}


def at_least(what: str, wanted: float, share: float) -> Line:
    return Line(what, f">= {wanted:.0%}", f"{share:.1%}", share >= wanted)


def at_most(what: str, wanted: float, found: Bracket | None) -> Line:
    return Line(what, f"< {duration(wanted)}", time_bracket(found), found is not None and found.high < wanted)


def proved_within(what: str, seconds: float, records: list[sources.RaceRecord]) -> Line:
    """All of these runs proved, each within so many seconds."""
    times = times_of(records, claims=False)
    unproved = [r for r in records if r.status != "proved"]
    longest = quantile(times, 1.0, seconds)
    reached = f"{time_bracket(longest)}" if not unproved else f"{len(unproved)} of {len(records)} not proved"
    if len(records) == 1 and unproved:
        gap = "" if unproved[0].gap is None else f", gap {unproved[0].gap:,}"
        reached = f"{unproved[0].status} ({unproved[0].stop}){gap}"
    return Line(what, f"proved, <= {duration(seconds)}", reached, bool((times <= seconds).all()))


def reaches(found: Bracket | None, wanted: float) -> bool | None:
    """Whether a ratio known between two ends is at least what is wanted; None where that cannot be said."""
    if found is None or found.low < wanted <= found.high:
        return None
    return found.low >= wanted


def show(lines: list[Line]) -> None:
    table = Table("target", "wanted", "reached", "met", box=None)
    for line in lines:
        table.add_row(line.what, line.wanted, line.reached, {True: "yes", False: "NO", None: "not known"}[line.met])
    out.print(table)
    known = [line for line in lines if line.met is not None]
    out.print(f"{sum(line.met is True for line in known)} of {len(lines)} met, {len(lines) - len(known)} not known")


def main() -> None:
    """Run the parts that are asked for, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=PARTS, help="a part; may be given again")
    parser.add_argument("--out", type=Path, default=Path(".benchmarks/exact_targets"), help="folder of the store")
    parser.add_argument("--data", type=Path, help="folder of the traces [default: data/ of LBOPT_SHARED]")
    parser.add_argument("--count", type=int, default=1000, help="states of a class")
    parser.add_argument("--checks", type=int, default=100, help="proofs of a class that are written down and checked")
    parser.add_argument("--rival-count", type=int, default=5, help="states of a class against HiGHS and CP-SAT")
    parser.add_argument("--rival-limit", type=float, default=20.0, help="seconds a run against these")
    parser.add_argument("--window-count", type=int, default=1000, help="states of a class of windows")
    parser.add_argument("--partitions", type=int, default=20, help="draws of numbers to be partitioned")
    parser.add_argument("--shift", type=int, default=0, help="added to the seeds: other states, for tuning")
    options = parser.parse_args()
    shared = shared_folder()
    options.data = options.data or (None if shared is None else shared / "data")
    wanted = options.only or list(PARTS)
    if options.data is None:
        wanted = [part for part in wanted if part == "partition"]
        out.print("the shared traces are absent (LBOPT_SHARED): only the part 'partition' can be measured")
    options.out.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[Line]] = {}
    try:
        with ProgressBar() as bar:
            bench = Bench(options, bar)
            for part in wanted:
                lines[part] = []
                for line in PARTS[part](bench):  # an interrupted part keeps the lines that it came to
                    lines[part].append(line)
    except KeyboardInterrupt:
        out.print("interrupted: what was done is kept, the same command goes on")
    how = provenance(command_line().replace("lbopt ", "python -m tests.benchmarks.exact_targets ", 1))
    found = {part: [asdict(line) for line in one] for part, one in lines.items()}
    write_json(
        options.out / "exact_targets.json", how | {"shift": options.shift, "parts": found, "remarks": bench.remarks}
    )
    out.print(f"{how['processor']}, {how['cpu_count']} cores")
    show([line for one in lines.values() for line in one])
    for remark in bench.remarks:
        out.print(remark)
    out.print(f"numbers: {options.out / 'exact_targets.json'}")


if __name__ == "__main__":
    main()
