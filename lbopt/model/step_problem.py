"""The step problem: which waiting requests go to which worker, now.

G workers carry known loads over the window h = 0..H, worker g has `slots[g]` free slots, and N requests wait. Exactly
U = min(N, sum of slots) of them are admitted, at most `slots[g]` on worker g, those of `must_admit` among them; which
others is part of the decision. The cost is the imbalance summed over the window,

    sum_{h=0..H} [ G * max_g L_g(h) - sum_g L_g(h) ],      L_g(h) = base[g, h] + sum of work[i, h] placed on g.

Source: BF-IO (arXiv 2601.17855), section 4, program (IO). Note that the second term depends on *which* requests are
admitted: least imbalance and least maximum load are different problems as soon as the pool is larger than U.

What a real fleet asks besides (memory, eligibility, prefixes, speed, prefill, ages, pauses) is in `Conditions`.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Unpack

import numpy as np

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.files.json_text import parsed_json
from lbopt.model.conditions import Conditions
from lbopt.model.integers import LARGEST_TOTAL, BoolArray, IntArray, boolean_array, integer_array
from lbopt.model.window import Running, ahead

FORMAT = "lbopt-step-problem"
FORMAT_VERSION = 1

#: Version of problems with conditions; the others stay what they were.
CONDITIONS_VERSION = 2


@dataclass(frozen=True, slots=True, eq=False)
class StepProblem:
    """A placement decision at one decode step: checked, frozen, exact.

    Parameters
    ----------
    base
        int, (G,) or (G, H+1): load of each worker over the window without any new request, tokens. One column
        stands for a load that is constant over the window.
    slots
        int, (G,): free slots of each worker.
    work
        int, (N,) or (N, H+1): load of each waiting request over the window if admitted now, tokens. One column
        stands for a load that is constant over the window.
    must_admit
        bool, (N,): requests that have to be among the admitted ones; at most U. None means none.
    conditions
        What the fleet asks besides; None means nothing. Conditions that leave the problem as it is become None.

    Raises
    ------
    InputError
        On wrong shapes, negative or fractional entries, no worker, too many `must_admit`, conditions that do not
        fit, or sums that could exceed 2**62.

    Examples
    --------
    >>> import lbopt
    >>> lbopt.StepProblem.now(loads=[900, 700, 400], slots=[1, 2, 1], sizes=[310, 260, 150, 120, 80])
    StepProblem(workers=3, requests=5, free_slots=4, horizon=0, must_admit=0, digest=3bdf64993be1)
    """

    base: IntArray
    slots: IntArray
    work: IntArray
    must_admit: BoolArray = None  # type: ignore[assignment]  # None on the way in, an array from then on
    conditions: Conditions | None = None
    num_workers: int = field(init=False)  #: Number of workers, G.
    num_requests: int = field(init=False)  #: Number of waiting requests, N.
    horizon: int = field(init=False)  #: Lookahead H; the window has H + 1 columns.
    num_free_slots: int = field(init=False)  #: Free slots over all workers.
    #: Number of requests that have to be admitted, U = min(N, free slots); under conditions at most so many.
    num_admitted: int = field(init=False)

    def __post_init__(self) -> None:
        base = integer_array("base", self.base, ndim=(1, 2))
        slots = integer_array("slots", self.slots, ndim=(1,))
        work = integer_array("work", self.work, ndim=(1, 2))
        if base.shape[0] == 0:
            raise InputError(f"base has shape {base.shape}; expected at least one worker")
        if slots.shape[0] != base.shape[0]:
            raise InputError(f"slots has {slots.shape[0]} entries but base has {base.shape[0]} workers")
        width = _window_width(base, work)
        base, work = _over_window(base, width), _over_window(work, width)
        must = self.must_admit if self.must_admit is not None else np.zeros(work.shape[0], dtype=np.bool_)
        must = boolean_array("must_admit", must, work.shape[0])
        conditions, free = self.conditions, sum(slots.tolist())
        if conditions is not None:
            if not isinstance(conditions, Conditions):
                raise InputError(f"conditions is a {type(conditions).__name__}; expected Conditions")
            conditions = conditions.fitted(base, slots, work)
        exactly = None if conditions is None else conditions.exactly
        admitted = min(work.shape[0], free) if exactly is None else exactly
        counts = {"num_workers": base.shape[0], "num_requests": work.shape[0], "horizon": width - 1}
        checked = {"base": base, "slots": slots, "work": work, "must_admit": must, "conditions": conditions}
        for name, value in (checked | counts | {"num_free_slots": free, "num_admitted": admitted}).items():
            object.__setattr__(self, name, value)
        if int(must.sum()) > self.num_admitted:
            raise InputError(
                f"must_admit names {int(must.sum())} requests, but only {self.num_admitted} can be admitted "
                f"({work.shape[0]} waiting, {self.num_free_slots} free slots)"
            )
        self._refuse_overflow()

    # ------------------------------------------------------------------ constructors

    @classmethod
    def now(cls, loads: Any, slots: Any, sizes: Any, must_admit: Any = None) -> StepProblem:
        """Build the H = 0 problem: present loads (G,) and prompt sizes (N,), tokens.

        Parameters
        ----------
        loads
            int, (G,): present load of each worker, tokens.
        slots
            int, (G,): free slots of each worker.
        sizes
            int, (N,): prompt of each waiting request, tokens.
        must_admit
            bool, (N,): requests that have to be admitted; None means none.
        """
        return cls(
            base=integer_array("loads", loads, ndim=(1,)),
            slots=slots,
            work=integer_array("sizes", sizes, ndim=(1,)),
            must_admit=must_admit,
        )

    @classmethod
    def survives(
        cls, loads: Any, slots: Any, sizes: Any, horizon: int, *, must_admit: Any = None, **running: Unpack[Running]
    ) -> StepProblem:
        """Build the window problem in which every new request outlives the window.

        Parameters
        ----------
        loads, slots, sizes
            int, (G,), (G,), (N,): present loads (tokens), free slots, prompt sizes (tokens).
        horizon
            H >= 0; the window is h = 0..H.
        **running
            What runs already, and how fast requests grow: `active`, `departures` and `growth`, see
            `lbopt.model.Running`.

        Raises
        ------
        InputError
            As the class does, and where a load of the window would be beyond 2**62.
        """
        base, work = ahead(loads, sizes, None, horizon, **running)
        return cls(base=base, slots=slots, work=work, must_admit=must_admit)

    @classmethod
    def known_ends(
        cls,
        loads: Any,
        slots: Any,
        sizes: Any,
        outputs: Any,
        horizon: int,
        *,
        must_admit: Any = None,
        **running: Unpack[Running],
    ) -> StepProblem:
        """Build the window problem of an oracle: as `survives`, but request i is gone from h = outputs[i] on.

        Parameters
        ----------
        loads, slots, sizes, horizon, must_admit, **running
            As in `survives`.
        outputs
            int, (N,), at least 1: steps that each request will run.
        """
        base, work = ahead(loads, sizes, outputs, horizon, **running)
        return cls(base=base, slots=slots, work=work, must_admit=must_admit)

    def under(self, conditions: Conditions | None) -> StepProblem:
        """Return the same problem under other conditions, or under none."""
        return StepProblem(self.base, self.slots, self.work, self.must_admit, conditions)

    def refuse_conditions(self, who: str) -> None:
        """Raise an `InputError` if there are conditions; `who` does not know them, and begins the message."""
        if self.conditions is not None:
            raise InputError(f"{who} does not know conditions, and the problem has some; `lbopt solve` answers it")

    # ------------------------------------------------------------------ identity and files

    @property
    def digest(self) -> str:
        """SHA-256 of the problem's content; equal problems have equal digests on every machine."""
        sha = hashlib.sha256(f"{FORMAT} {self._version} {self.base.shape} {self.work.shape}".encode())
        for array in (self.base, self.slots, self.work):
            sha.update(array.astype("<i8").tobytes())
        sha.update(self.must_admit.astype("u1").tobytes())
        if self.conditions is not None:
            self.conditions.update(sha)
        return sha.hexdigest()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StepProblem):
            return NotImplemented
        return self.conditions == other.conditions and all(
            np.array_equal(getattr(self, name), getattr(other, name))
            for name in ("base", "slots", "work", "must_admit")
        )

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        conditions = "" if self.conditions is None else f"conditions={self.conditions!r}, "
        return (
            f"StepProblem(workers={self.num_workers}, requests={self.num_requests}, free_slots={self.num_free_slots}, "
            f"horizon={self.horizon}, must_admit={int(self.must_admit.sum())}, {conditions}digest={self.digest[:12]})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the problem as plain lists, with format, version and digest."""
        return {
            "format": FORMAT,
            "version": self._version,
            "base": self.base.tolist(),
            "slots": self.slots.tolist(),
            "work": self.work.tolist(),
            "must_admit": [int(flag) for flag in self.must_admit],
            **({} if self.conditions is None else {"conditions": self.conditions.to_dict()}),
            "digest": self.digest,
        }

    @classmethod
    def from_dict(cls, data: Any, *, source: str = "the problem") -> StepProblem:
        """Rebuild a problem written by `to_dict`; a digest that is present must match."""
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise InputError(f'{source} is not a step problem: expected an object with "format": "{FORMAT}"')
        version = data.get("version")
        if isinstance(version, bool) or version not in (FORMAT_VERSION, CONDITIONS_VERSION):
            raise InputError(
                f"{source} has format version {shown(version)}; this lbopt reads version {FORMAT_VERSION}, and "
                f"{CONDITIONS_VERSION} with conditions"
            )
        if version == FORMAT_VERSION and "conditions" in data:
            raise InputError(f"{source} has conditions, which version {CONDITIONS_VERSION} has, but says version 1")
        named = ("base", "slots", "work", *(("conditions",) if version == CONDITIONS_VERSION else ()))
        missing = [name for name in named if data.get(name) is None]
        if missing:
            raise InputError(f"{source} lacks {', '.join(missing)}")
        work = data["work"] if data["work"] != [] else np.zeros((0, 1), dtype=np.int64)
        must_admit: Any = data.get("must_admit")
        try:
            given = Conditions.from_dict(data["conditions"]) if version == CONDITIONS_VERSION else None
            problem = cls(base=data["base"], slots=data["slots"], work=work, must_admit=must_admit, conditions=given)
        except InputError as error:
            raise InputError(f"{source}: {error}") from None
        if "digest" in data and data["digest"] != problem.digest:
            raise InputError(
                f"{source} says digest {str(data['digest'])[:12]}… but its numbers give {problem.digest[:12]}…: "
                "it was changed after it was written"
            )
        return problem

    def to_json(self) -> str:
        """Return the problem as one line of JSON."""
        return json.dumps(self.to_dict())

    @classmethod
    def from_json(cls, text_or_path: str | Path) -> StepProblem:
        """Read a problem from a JSON text or from a file that holds one."""
        data, source = parsed_json(text_or_path, "the problem")
        return cls.from_dict(data, source=source)

    def write(self, path: str | Path) -> None:
        """Write the integer program for other tools: `.lp` or `.mps`, chosen by the ending."""
        from lbopt.model.export import write_program

        write_program(self, Path(path))

    # ------------------------------------------------------------------ inner checks

    @property
    def _version(self) -> int:
        return FORMAT_VERSION if self.conditions is None else CONDITIONS_VERSION

    def _refuse_overflow(self) -> None:
        """Refuse data for which G * sum_h M_h could leave the exact range, computed in Python integers."""
        largest_total = 0
        most = min(int(self.slots.max()), self.num_requests)
        for h in range(self.horizon + 1):
            heaviest = sorted((int(w) for w in self.work[:, h]), reverse=True)[:most]
            largest_total += self.num_workers * (int(self.base[:, h].max()) + sum(heaviest))
        if self.conditions is not None:
            largest_total = self.conditions.largest_total(largest_total)
        if largest_total > LARGEST_TOTAL:
            raise InputError(
                f"G * sum of maximum loads over the window could reach {largest_total}, beyond 2**62 = "
                f"{LARGEST_TOTAL}; divide all loads by a common factor"
            )


def _window_width(base: IntArray, work: IntArray) -> int:
    widths = {array.shape[1] for array in (base, work) if array.ndim == 2 and array.shape[1] != 1}
    if 0 in widths:
        raise InputError(f"the window is empty: base has shape {base.shape}, work has shape {work.shape}")
    if len(widths) > 1:
        raise InputError(
            f"base covers {base.shape[1]} steps but work covers {work.shape[1]}; both need H + 1 columns, or one"
        )
    return widths.pop() if widths else 1


def _over_window(array: IntArray, width: int) -> IntArray:
    wide = array[:, None] if array.ndim == 1 else array
    wide = np.ascontiguousarray(np.broadcast_to(wide, (wide.shape[0], width)))
    wide.flags.writeable = False
    return wide
