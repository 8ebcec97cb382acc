"""Every public name refuses what it cannot use in a sentence that names it: each argument, and each field of a study.

Whatever is given, the answer is a refusal by lbopt, or the value is accepted; Python's own errors are defects.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lbopt
from lbopt import warming
from lbopt.exceptions import LbOptError
from lbopt.studies import requests
from lbopt.studies.configuration import fields_of, from_words, is_configuration
from lbopt.studies.registry import STUDIES, find_study

WRONG: list[Any] = [None, "no such thing", "", b"x", 3, 2.5, -1, 10**30, float("nan"), float("inf"), np.float64(-2.5)]
WRONG += [True, [], [1], ["x"], [[1], [2, 3]], {}, {"a": 1}, object(), print, Path("nowhere"), np.zeros((2, 3))]

LOG = Path(__file__).resolve().parents[1] / "examples/logs/fleet.csv"
SMALL: dict[str, Any] = {"requests": 12, "workers": 2, "slots": 2}
PROBLEM = lbopt.StepProblem.now(loads=[9, 7, 4], slots=[1, 2, 1], sizes=[3, 2, 1])
LIMITED = PROBLEM.under(lbopt.Conditions(capacity=[9, 9, 9]))

#: A valid and cheap call of each public name: its arguments, by name.
CALLS: dict[str, Callable[[], dict[str, Any]]] = {
    "Conditions": lambda: {"capacity": [9, 9, 9]},
    "Fleet": lambda: {"num_workers": 2, "slots_per_worker": 3},
    "StepProblem": lambda: {"base": [9, 7, 4], "slots": [1, 2, 1], "work": [3, 2, 1]},
    "Trace": lambda: {"prompt": [3, 2], "output": [1, 1]},
    "audit": lambda: {"log": "log.csv", "policies": ["jsq"], "states": 0},
    "ceilings": lambda: SMALL,
    "check": lambda: {"claims": ("fcfs-exact:G=4,p=0.3",)},
    "cost": lambda: {"mean_load": 80.0, "imbalance": 20.0, "workers": 2, "running": 3, "draws": 100},
    "gap": lambda: {**SMALL, "policies": ["jsq"], "behaviours": ["fcfs"], "states": 1, "long_runs": False},
    "in_hindsight": lambda: {**SMALL, "policies": ["jsq"], "effort": 1},
    "list_policies": dict,
    "make_policy": lambda: {"spec": "jsq"},
    "objective": lambda: {"problem": PROBLEM, "assignment": [0, 1, 2]},
    "open_trace": lambda: {"spec": "burstgpt-like", "count": 9, "seed": 0},
    "sensitivity": lambda: {"problem": LIMITED, "result": lbopt.solve(LIMITED, "search")},
    "simulate": lambda: {**SMALL, "policy": "jsq"},
    "solve": lambda: {"problem": PROBLEM},
    "study": lambda: {"name": "prediction", "requests": 40, "horizon": 3, "predictors": ["survival"]},
    "verify": lambda: {"problem": PROBLEM, "result": lbopt.solve(PROBLEM)},
    "warm_up": dict,
}

#: What lbopt itself makes and hands out.
MADE = {"Ceilings", "GapOutcome", "Result", "Run", "__version__"}
MADE |= {"CertificateError", "InfeasibleDecisionError", "InputError", "LbOptError"}

#: What messages call an argument or field, where that is none of its names: they name what is wrong with it.
ALSO_CALLED = {
    "count": ("requests",),
    "requests": ("trace 'trace' holds",),
    "prompt": ("trace 'trace' holds", "prompts"),
    "output": ("outputs",),
    "arrival_column": ("prompt_column",),
    "seconds": ("warm-up",),
    "warm_up": ("warm-up",),
    "units": ("units_per_instance",),
}


def calls_of(function: Callable[..., object], valid: dict[str, Any]) -> Iterator[tuple[str, Callable[[Any], object]]]:
    """Each argument of a function, with the call that gives it a value and all others a valid one."""
    parameters = inspect.signature(function).parameters
    rest = next((name for name, one in parameters.items() if one.kind is one.VAR_POSITIONAL), "")

    def called(name: str, value: Any) -> object:
        given = valid | {name: (value,) if name == rest else value}
        return function(*given.pop(rest, ()), **given)

    for name, one in parameters.items():
        if one.kind is not one.VAR_KEYWORD:
            yield name, lambda value, name=name: called(name, value)


def faults(name: str, call: Callable[[Any], object], *names: str) -> Iterator[str]:
    """What is wrong with the answers of a call to values that are none for it; messages may name it by `names`, too."""
    known = {name, name.replace("_", " "), name.removesuffix("s"), *names, *ALSO_CALLED.get(name, ())}
    for value in WRONG:
        try:
            call(value)
        except LbOptError as error:
            said = str(error)
            texts = [str(one) for one in (value if isinstance(value, list) else [value]) if isinstance(one, str | Path)]
            if not any(one in said for one in (*known, *texts)):
                yield f"{name}={value!r} is not named: {said}"
            elif " at 0x" in said or "<class" in said:
                yield f"{name}={value!r} is shown as an address or a class: {said}"
        except Exception as error:
            yield f"{name}={value!r} ends in {type(error).__name__}: {error}"


def test_every_public_callable_is_called() -> None:
    """A new public name has to be added above."""
    assert {*CALLS, *MADE} == set(lbopt.__all__)


@pytest.mark.jit
@pytest.mark.parametrize("name", CALLS)
def test_a_wrong_argument_ends_in_a_sentence(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Each argument in turn; `warm_up` compiles nothing, and a family has a few requests where no number is given."""
    monkeypatch.setattr(warming, "PARTS", dict.fromkeys(warming.PARTS, lambda: None))
    monkeypatch.setattr(requests, "DEFAULT_COUNT", 12)
    monkeypatch.chdir(tmp_path)
    Path("log.csv").write_text("".join(LOG.read_text().splitlines(keepends=True)[:130]))
    calls = calls_of(getattr(lbopt, name), CALLS[name]())
    assert [fault for argument, call in calls for fault in faults(argument, call)] == []


def words_of(kind: type[Any]) -> Iterator[tuple[str, str]]:
    """The fields of a configuration and of what it holds, each with what the command line calls it."""
    for field, annotation, option, _ in fields_of(kind):
        if option is not None:
            yield field.name, option.key or field.name
        elif is_configuration(annotation):
            yield from words_of(annotation)


@pytest.mark.parametrize("name", STUDIES)
def test_a_wrong_field_of_a_study_ends_in_a_sentence(name: str) -> None:
    """Every field of every configuration, without running the study."""
    kind, base = find_study(name).config, {"log": str(LOG)} if name in ("audit", "ranks") else {}
    if name == "check":
        base = {"chosen": (), "level": "quick", "seed": 0}
    found = []
    for word, key in words_of(kind):
        found += faults(word, lambda value, word=word: from_words(kind, {**base, word: value}), key)
    assert found == []
