"""Print how well an audit recovers each fleet of the independent engine: `cd tests && python -m audit.accuracy`.

With ``missing`` it prints in how many logs missing rows show, instead.
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np
from audit.as_log import as_log
from audit.engine import run
from audit.fleets import FLEETS
from audit.test_recovery import SAME, ranks

from lbopt.studies.audit import AuditConfig, audit_log
from lbopt.studies.audit.happened import what_happened
from lbopt.studies.audit.law_from_log import reconstruct


def main() -> None:
    """Print one row a fleet."""
    print("| fleet | G × B | occupancy | noise | fixed | slope | TPOT | idle (points) | pairs of rules | wrong | s |")
    print("|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    for name, fleet in FLEETS.items():
        served = run(fleet)
        begun = time.process_time()
        outcome = audit_log(as_log(served), AuditConfig(log="engine", rules=tuple(SAME.values()), states=0))
        took = time.process_time() - begun
        seen, law = outcome.happened, outcome.law
        pairs, wrong = ranks(name, 5)
        print(
            f"| {name} | {fleet.G} × {fleet.B} | {seen.occupancy:.0%} | {fleet.noise:.0%} "
            f"| {law.fixed / served.law[0] - 1:+.2%} | {law.per_token / served.law[1] - 1:+.2%} "
            f"| {seen.tpot_mean / served.tpot - 1:+.2%} | {100 * (seen.idle_share - served.idle):+.2f} "
            f"| {pairs} | {len(wrong)} | {took:.1f} |",
            flush=True,
        )


def missing(seeds: int = 3) -> None:
    """Print how many logs, of each fleet in each seed, show that rows are missing at random."""
    print("| missing | logs in which the times follow something unseen | or the law misses by too much |")
    print("|--:|--:|--:|")
    for share in (0.0, 0.02, 0.05, 0.1, 0.3):
        unseen = missed = 0
        for fleet in FLEETS.values():
            for seed in range(seeds):
                log = as_log(run(fleet, seed=seed))
                kept = np.random.default_rng(seed).random(len(log)) >= share
                columns = ("ids", "arrival", "start", "finish", "prompt", "output", "worker", "ending")
                found = reconstruct(dataclasses.replace(log, **{name: getattr(log, name)[kept] for name in columns}))
                off = what_happened(found, max(found.course.most_running, 1)).misfit
                unseen += off.follows_something_unseen
                missed += off.follows_something_unseen or off.worst > 0.05 or off.worst_window > 0.1
        print(f"| {share:.0%} | {unseen} of {seeds * len(FLEETS)} | {missed} |", flush=True)


if __name__ == "__main__":
    missing() if "missing" in sys.argv else main()
