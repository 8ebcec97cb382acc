"""What is known of a goal that comes before the objective, in a result and in its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lbopt.exceptions import InputError
from lbopt.files import shown

#: Fields of a stage in a file.
FIELDS = ("goal", "value", "bound", "proof")


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is known of a goal that comes before the objective.

    Parameters
    ----------
    goal
        "left_waiting", how many requests are not admitted, or "overdue", what their waiting costs; least is best.
    value
        What the assignment reaches; None without one.
    bound
        Lower bound on it, among the decisions that reach the values of the goals before it.
    proof
        Where the bound comes from, as in `Result`.
    """

    goal: str
    value: int | None
    bound: int
    proof: str

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {name: getattr(self, name) for name in FIELDS}


def read_stages(data: Any, source: str) -> tuple[Stage, ...]:
    """Return the stages of a file, checked as far as their types go; `source` begins the message."""
    if not isinstance(data, list):
        raise InputError(f"{source}: stages is {shown(data)}; expected a list")
    for one in data:
        good = (
            isinstance(one, dict)
            and set(one) == set(FIELDS)
            and all(isinstance(one[name], str) for name in ("goal", "proof"))
            and (one["value"] is None or _whole(one["value"]))
            and _whole(one["bound"])
        )
        if not good:
            raise InputError(f"{source}: a stage is {shown(one)}; expected an object with {', '.join(FIELDS)}")
    return tuple(Stage(**one) for one in data)


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63
