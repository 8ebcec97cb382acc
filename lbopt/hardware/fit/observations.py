"""What was observed: rows of one group, measured under the same conditions, in the units that the laws use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.hardware.fit.law import Columns, Role
from lbopt.spec import unknown

Kind = Literal["tokens", "time", "throughput", "other"]

#: The unit in which a kind of column is fitted and shown.
UNITS: dict[Kind, str] = {"tokens": "ktok", "time": "ms", "throughput": "tok/s", "other": ""}


@dataclass(frozen=True, slots=True)
class Variable:
    """A column by its name in the file, the thing it measures ("spread", "tpot", ...) and its kind.

    `factor` turns the file's numbers into the unit in which they are fitted.
    """

    column: str
    stem: str
    kind: Kind
    factor: float = 1.0

    @property
    def unit(self) -> str:
        """The unit in which it is fitted and shown."""
        return UNITS[self.kind]


@dataclass(frozen=True, slots=True)
class Observations:
    """Rows of one group.

    Parameters
    ----------
    group
        Its name; empty where the file has no groups.
    y
        float64 (n,): ms, or tokens per second, all above zero.
    columns
        By role, float64 (n,) in ktokens (in the file's own unit where that is not known), none negative.
    labels
        A name a row: method, or the line of the file.
    workers
        Number of workers, where the file says it and the group has one.
    """

    group: str
    y: NDArray[np.float64]
    columns: Columns
    labels: tuple[str, ...]
    workers: int | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """All rows of a source, by group; `regressors` name the column of each role."""

    source: str
    response: Variable
    regressors: dict[Role, Variable]
    groups: tuple[Observations, ...]

    def of(self, group: str) -> Observations:
        """Return one group by its name."""
        names = [one.group for one in self.groups]
        if group not in names:
            if names == [""]:
                raise InputError(f"{self.source} has no groups; name their column with --group, or leave out '{group}'")
            raise unknown(f"group of {self.source}", group, names)
        return self.groups[names.index(group)]
