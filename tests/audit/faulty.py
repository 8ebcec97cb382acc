"""What audits recommend for fleets with faults, and what the engine then does.

cd tests && python -m audit.faulty

Each of the 20 fleets is served under round robin by the independent engine with a slow worker, a restart, prompts that
take time before they are known, or pre-emption; its log is audited; and where another rule is recommended the same
engine serves the same requests with the same fault under that rule.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from audit.as_log import as_log
from audit.engine import Served, run_once
from audit.fleets import FLEETS, Fleet

from lbopt.studies.audit import AuditConfig, audit_log
from lbopt.studies.audit.findings import Finding

#: lbopt's rules, and the engine's of the same meaning.
ENGINES_OWN = {"jsq": "jsq", "jsq-load:admission=immediate": "jsq-load", "jsq-load": "lightest", "random": "random"}
FAULTS = ("none", "slow", "restart", "prefill", "preempt")
SEEDS = 3


def fault_of(name: str, fleet: Fleet) -> dict[str, Any]:
    """Return a fault of a size that such a fleet may have."""
    makespan = float(fleet.draw().arrival.max()) or 20.0
    return {
        "none": {},
        "slow": {"slow": (fleet.G // 2, 1.3)},
        "restart": {"restart": (1, 0.4 * makespan, 0.05 * makespan)},
        "prefill": {"prefill": (0.05, 2e-5)},
        "preempt": {"preempt": (0.05, 20)},
    }[name]


def audited(name: str, fault: str) -> tuple[Served, Any, tuple[Finding, ...], dict[str, Any]]:
    """Return what the engine served under round robin, the audit's recommendation, its findings, and the fault."""
    faults = fault_of(fault, FLEETS[name])
    served = run_once(FLEETS[name], rule="round-robin", **faults)
    outcome = audit_log(as_log(served), AuditConfig(log="engine", rules=tuple(ENGINES_OWN), states=0))
    return served, outcome.recommendation, tuple(outcome.findings), faults


def tpot_of(served: Served) -> float:
    """Mean time a token of the requests that were not cancelled."""
    kept = ~served.cancelled
    return float(np.mean(((served.finish - served.start) / served.output)[kept]))


def changes(name: str, rule: str, faults: dict[str, Any]) -> list[float]:
    """Return by how much the engine's time a token changes from round robin to the rule, seed by seed."""
    found = []
    for seed in range(SEEDS):
        before = run_once(FLEETS[name], rule="round-robin", seed=seed, **faults)
        after = run_once(FLEETS[name], rule=ENGINES_OWN[rule], seed=seed, **faults)
        found.append(tpot_of(after) / tpot_of(before) - 1)
    return found


def rows(names: list[str]) -> Iterator[list[str]]:
    """Return a row for each fleet and fault."""
    for name in names:
        for fault in FAULTS:
            _, best, findings, faults = audited(name, fault)
            row = [name, fault, ", ".join(finding.kind for finding in findings) or "–", best.verdict]
            if best.verdict == "switch":
                real = changes(name, best.rule, faults)
                low, high = best.change_interval
                inside = sum(low <= one <= high for one in real)
                row += [f"`{best.rule}`", f"{100 * best.change:+.1f} ({100 * low:+.1f} to {100 * high:+.1f})"]
                row += [f"{100 * np.mean(real):+.1f}", f"{inside} of {SEEDS}", "worse" if max(real) > 0 else ""]
            yield row + ["–"] * (9 - len(row))


def main() -> None:
    """Print the table."""
    print("| fleet | fault | found | verdict | rule | promised, % | in the engine, % | inside | |")
    print("|---|---|---|---|---|---|--:|--:|---|")
    for row in rows(sys.argv[1:] or list(FLEETS)):
        print("|", " | ".join(row), "|", flush=True)


if __name__ == "__main__":
    main()
