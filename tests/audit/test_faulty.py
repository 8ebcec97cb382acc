"""Fleets with faults: what an audit recommends for them is never worse in the engine."""

from __future__ import annotations

import pytest
from audit.faulty import FAULTS, audited, changes
from audit.fleets import FLEETS

QUICK = ("small-idle", "eight-half")
CASES = [
    pytest.param(name, fault, marks=[] if name in QUICK else pytest.mark.slow)
    for name in FLEETS
    for fault in FAULTS[1:]
]


@pytest.mark.some(1)
@pytest.mark.jit
@pytest.mark.parametrize(("name", "fault"), CASES)
def test_a_recommended_rule_is_faster_in_spite_of_the_fault(name: str, fault: str) -> None:
    _, best, findings, faults = audited(name, fault)
    if best.verdict == "switch":
        assert findings  # the fault is named beside the recommendation
        real = changes(name, best.rule, faults)
        assert max(real) < 0
        assert best.change == pytest.approx(sum(real) / len(real), abs=0.03)
