"""The library's short way to write a step problem down, and strict reading of a JSON object's fields.

Work of requests that grow alike, work[i, h] = sizes[i] + growth * h, is written as sizes and growth; a base load that
is constant over the window as one number; `must_admit` as the numbers of the requests. The digest of `StepProblem`
guards the content, so that a problem that was written down in short is the same or is refused.
"""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np

from lbopt.exceptions import InputError
from lbopt.model import StepProblem

#: Types of the values that JSON holds, by their names in annotations.
_PLAIN: dict[str, type | None] = {"int": int, "str": str, "float": float, "dict": dict, "list": list, "None": None}

_FIELDS: dict[str, tuple[type | None, ...]] = {
    "horizon": (int,),
    "base": (list,),
    "slots": (list,),
    "sizes": (list, None),
    "growth": (int, None),
    "work": (list, None),
    "must_admit": (list,),
    "digest": (str,),
}


def compact(problem: StepProblem) -> dict[str, Any]:
    """Return the problem as plain lists, as short as the form allows."""
    problem.refuse_conditions("the library")
    steps = np.arange(problem.horizon + 1)
    growth = int(problem.work[0, 1] - problem.work[0, 0]) if problem.horizon and problem.num_requests else 0
    alike = growth >= 0 and bool((problem.work == problem.work[:, :1] + growth * steps).all())
    flat = bool((problem.base == problem.base[:, :1]).all())
    return {
        "horizon": problem.horizon,
        "base": problem.base[:, 0].tolist() if flat else problem.base.tolist(),
        "slots": problem.slots.tolist(),
        "sizes": problem.work[:, 0].tolist() if alike else None,
        "growth": growth if alike else None,
        "work": None if alike else problem.work.tolist(),
        "must_admit": np.flatnonzero(problem.must_admit).tolist(),
        "digest": problem.digest,
    }


def expanded(data: Any, *, source: str) -> StepProblem:
    """Return the problem that `compact` wrote; its digest must match."""
    values = strict_fields(data, source, _FIELDS)
    horizon = values["horizon"]
    if not 0 <= horizon < 2**20:
        raise InputError(f"{source}: horizon is {horizon}; expected a whole number of zero or more")
    if (values["sizes"] is None) == (values["work"] is None) or (values["sizes"] is None) != (values["growth"] is None):
        raise InputError(f"{source} needs either sizes and growth, or work")
    try:
        if values["work"] is not None:
            work = values["work"]
        else:
            steps = np.arange(horizon + 1, dtype=np.int64)
            work = np.array(values["sizes"], dtype=np.int64).reshape(-1, 1) + values["growth"] * steps
        base = values["base"]
        if not base or not isinstance(base[0], list):
            base = np.repeat(np.array(base, dtype=np.int64)[:, None], horizon + 1, axis=1)
        num_requests = len(values["sizes"] if values["work"] is None else values["work"])
        problem = StepProblem(
            base=base, slots=values["slots"], work=work, must_admit=_flags(values["must_admit"], num_requests)
        )
    except (ValueError, OverflowError, TypeError) as error:  # InputError is a ValueError
        raise InputError(f"{source}: {error}") from None
    if problem.digest != values["digest"]:
        raise InputError(
            f"{source} says digest {values['digest'][:12]}… but its numbers give {problem.digest[:12]}…: "
            "it was changed after it was written"
        )
    return problem


def _flags(requests: list[Any], num_requests: int) -> Any:
    wrong = [i for i in requests if type(i) is not int or not 0 <= i < num_requests]
    if wrong:
        raise InputError(f"must_admit names request {wrong[0]!r}; expected 0..{num_requests - 1}")
    flags = np.zeros(num_requests, dtype=np.bool_)
    flags[requests] = True
    return flags


def plain_fields(record: type, **others: tuple[type | None, ...]) -> dict[str, tuple[type | None, ...]]:
    """Return the fields of a dataclass with the types of their JSON values, as `strict_fields` takes them.

    Parameters
    ----------
    record
        The dataclass; annotations are plain types, joined by "|".
    others
        Types of the fields whose annotations are other ones.
    """
    named = {one.name: str(one.type).split(" | ") for one in fields(record)}
    return {
        name: others[name] if name in others else tuple(_PLAIN[kind] for kind in kinds) for name, kinds in named.items()
    }


def strict_fields(data: Any, source: str, expected: dict[str, tuple[type | None, ...]]) -> dict[str, Any]:
    """Return `data` if it has the expected fields and no others; None among the types stands for null.

    Raises
    ------
    InputError
        Naming the source, the field, and what was expected.
    """
    if not isinstance(data, dict):
        raise InputError(f"{source} is a {type(data).__name__}; expected an object with {', '.join(expected)}")
    missing = [name for name in expected if name not in data]
    if missing:
        raise InputError(f"{source} lacks {', '.join(missing)}")
    unknown = [str(name) for name in data if name not in expected]
    if unknown:
        raise InputError(f"{source} has the unknown field {unknown[0]!r}; expected {', '.join(expected)}")
    for name, types in expected.items():
        value = data[name]
        if type(value) not in types and not (value is None and None in types):  # a truth value is no whole number
            wanted = " or ".join("null" if one is None else one.__name__ for one in types)
            raise InputError(f"{source}: {name} is of type {type(value).__name__}; expected {wanted}")
    return dict(data)
