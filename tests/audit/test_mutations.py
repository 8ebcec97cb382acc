"""Logs as people send them: an audit gives the answer of the clean log, within its interval, or refuses; never another.

One answer is another one if the verdict differs, or if a switch is recommended whose gain lies outside the interval of
the clean log's. Where no rows are missing, the law and the figures of the log have to be the same too.
"""

from __future__ import annotations

import zlib
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from audit.engine import run_once
from audit.fleets import FLEETS
from audit.logs import to_rows
from audit.mutations import EITHER, KINDS, REFUSE, SAME, mutate, plain

from lbopt import InputError
from lbopt.studies.audit import AuditConfig, AuditOutcome, run_audit

RULES = ("round-robin", "jsq", "jsq-load:admission=immediate")
#: Fleets whose logs are mutated: half full and a fifth full.
LOGS = ("eight-half", "small-idle")
#: Every kind once in every run, on one of the logs; on the other one as well in the long run.
CASES = [
    pytest.param(name, kind, marks=[] if (i + k) % 2 == 0 else pytest.mark.slow)
    for i, kind in enumerate(KINDS)
    for k, name in enumerate(LOGS)
]


def audit(text: str, folder: Path) -> AuditOutcome:
    path = folder / "log.csv"
    path.write_text(text, encoding="utf-8")
    return run_audit(AuditConfig(log=str(path), rules=RULES, states=0))


@cache
def rows_of(name: str) -> list[dict]:
    return to_rows(run_once(FLEETS[name]))


@pytest.fixture(scope="session")
def clean(tmp_path_factory):
    """The clean log's answer, by the name of the fleet."""
    return cache(lambda name: audit(plain(rows_of(name)), tmp_path_factory.mktemp("clean")))


def contradiction(found: AuditOutcome, clean: AuditOutcome, expected: str) -> str | None:
    """What of an answer is another one than the clean log's."""
    if found.recommendation.verdict == "withheld":
        return None if expected != SAME else "the recommendation is withheld"
    if found.recommendation.verdict != clean.recommendation.verdict:
        return f"{found.recommendation.verdict} in place of {clean.recommendation.verdict}"
    one, other = found.recommendation.change_interval, clean.recommendation.change_interval
    if one is not None and other is not None and (one[0] > other[1] or other[0] > one[1]):
        return f"change {one} in place of {other}"
    if expected == SAME:
        law, true = found.law, clean.law
        if abs(law.per_token / true.per_token - 1) > 0.02 or abs(law.fixed / true.fixed - 1) > 0.02:
            return f"law {law.fixed}, {law.per_token} in place of {true.fixed}, {true.per_token}"
        if abs(found.happened.idle_share - clean.happened.idle_share) > 0.005:
            return f"idle {found.happened.idle_share} in place of {clean.happened.idle_share}"
    return None


def check(name: str, kind: str, seed: int, clean: AuditOutcome, folder: Path) -> str | None:
    """What is wrong with the answer to one mutated log."""
    rng = np.random.default_rng([seed, zlib.crc32(f"{name} {kind}".encode())])
    text, expected = mutate(rows_of(name), kind, rng)
    try:
        found = audit(text, folder)
    except InputError as error:
        if any(row["id"] in str(error) for row in rows_of(name)):
            return f"the error shows an id: {error}"
        return f"refused: {error}" if expected == SAME else None
    if expected == REFUSE:
        return "answered where it had to refuse"
    assert expected in (SAME, EITHER)
    return contradiction(found, clean, expected)


@pytest.mark.some(6)
@pytest.mark.jit
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_no_other_answer(name, kind, clean, tmp_path):
    assert check(name, kind, 0, clean(name), tmp_path) is None


@pytest.mark.slow
@pytest.mark.jit
def test_no_other_answer_to_two_thousand_logs(clean, tmp_path):
    wrong = [
        f"{name} {kind} {seed}: {what}"
        for name in LOGS
        for kind in KINDS
        for seed in range(1, 24)
        if (what := check(name, kind, seed, clean(name), tmp_path)) is not None
    ]
    assert wrong == []
