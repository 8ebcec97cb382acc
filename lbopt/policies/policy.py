"""What a policy is, what tables call it, and the ledger of one that solves.

What a policy is: a name, when it binds requests, and a decision, compiled or in Python.

*Pooled* admission: requests wait in one pool and the router chooses when slots are free. *Immediate* admission: each
request is bound to a worker when it arrives and waits in that worker's own queue. Published baselines are immediate,
BF-IO and BalanceRoute pooled; comparing them without that difference reproduces neither.

What tables call a policy: its name with the options that differ from their defaults.

The ledger of a policy that solves: what each decision cost, what was proved about it, and how long it took.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.files import shown
from lbopt.model import Trace
from lbopt.policies.observation import Observation
from lbopt.predictors import Foresight

Admission = Literal["pooled", "immediate"]
#: No option of a rule needs a larger number.
LARGEST_OPTION = 2**31

ADMISSIONS: tuple[Admission, ...] = ("pooled", "immediate")


@runtime_checkable
class Policy(Protocol):
    """Anything that can route: either a `CompiledPolicy` or a `DecidingPolicy`."""

    @property
    def name(self) -> str:
        """What tables call it."""

    @property
    def admission(self) -> Admission:
        """When it binds requests."""


@runtime_checkable
class DecidingPolicy(Policy, Protocol):
    """A policy that decides in Python, called at every decision."""

    def decide(self, observation: Observation) -> NDArray[np.int64]:
        """Return the worker of each request of `observation`, or -1 where it keeps waiting."""


@runtime_checkable
class LookingAhead(DecidingPolicy, Protocol):
    """A policy that wants to be shown the running requests one by one, with a forecast of each."""

    @property
    def foresight(self) -> Foresight | None:
        """Which forecast; None where it does without after all."""


def foresight_of(policy: Policy) -> Foresight | None:
    """Return the forecast that `policy` asks for, if any."""
    return policy.foresight if isinstance(policy, LookingAhead) else None


class Guide(Protocol):
    """What tells a compiled rule which worker each request would rather go to."""

    @property
    def learns(self) -> bool:
        """Whether it needs other requests to learn from."""

    def preferences(self, requests: Trace, num_workers: int, training: Trace | None) -> NDArray[np.float64]:
        """Return the preference of every profile of `requests` for every worker, float64 (M, G)."""


@dataclass(frozen=True, slots=True)
class CompiledPolicy:
    """A rule that the compiled loop knows.

    Parameters
    ----------
    name
        What tables call it.
    admission
        When it binds requests.
    code
        Its number in `lbopt.kernels.routing.codes`.
    parameters
        Its parameters by name, see `lbopt.kernels.routing.state.PARAMETERS`.
    draws
        Whether it needs random numbers.
    guide
        Who tells it of preferences, if it goes by any.
    """

    name: str
    admission: Admission
    code: int
    parameters: dict[str, int] = field(default_factory=dict)
    draws: bool = False
    guide: Guide | None = None


def check_age_bound(name: str, age_bound: int | None) -> None:
    """Refuse an age bound of policy `name` that is not a number of steps."""
    if age_bound is not None and not 0 <= age_bound <= LARGEST_OPTION:
        raise InputError(f"policy '{name}': age_bound is {age_bound}; expected 0 to {LARGEST_OPTION} steps, or none")


def checked_admission(name: str, admission: str, allowed: tuple[Admission, ...] = ADMISSIONS) -> Admission:
    """Return `admission` if policy `name` can work that way."""
    for known in allowed:
        if admission == known:
            return known
    raise InputError(f"policy '{name}' cannot use admission {shown(admission)}; expected {' or '.join(allowed)}")


#: Options that mean nothing without a window.
_OF_A_WINDOW = {"predictor", "refresh", "gate", "floor", "hold_anchor", "growth", "departures", "boundary", "new"}


def named(name: str, policy: Any) -> str:
    """Return `name`, and behind it the changed options of the dataclass `policy`, as a user would write them.

    Options of the forecast are left out where the policy does not look ahead.
    """
    silent = set() if getattr(policy, "horizon", 0) else _OF_A_WINDOW
    options = [option for option in fields(policy) if option.init and option.name not in silent]
    given = {option.name: getattr(policy, option.name) for option in options}
    return labelled(name, given, {option.name: option.default for option in options})


def labelled(name: str, given: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return `name`, and behind it the options that are not as usual, as a user would write them."""
    changed = ",".join(f"{option}={_written(value)}" for option, value in given.items() if value != usual[option])
    return f"{name}:{changed}" if changed else name


def check_option(policy: str, option: str, value: float | None, least: float, most: float) -> None:
    """Refuse a number outside of a range."""
    if value is None or not least <= value <= most:
        raise InputError(f"policy '{policy}': {option} is {value}; expected {least:.15g} to {most:.15g}")


def check_choice(policy: str, option: str, value: Any, allowed: Iterable[str]) -> None:
    """Refuse a word that is none of the allowed ones."""
    if value not in allowed:
        raise InputError(f"policy '{policy}': {option} is '{value}'; expected {' or '.join(allowed)}")


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


#: How sure a decision is. "proved": elementary reasoning, or a checked proof, says that it is optimal. "claimed": a
#: solver says so. "open": the bound is below its cost. "searched": lbopt's own search says so, and a policy, which has
#: milliseconds, does not check that. The places of these names are in files.
STANDINGS = ("proved", "claimed", "open", "searched")


@dataclass(slots=True)
class Ledger:
    """One line per decision; `seconds` stay out of what is written to files that a rerun has to reproduce."""

    step: list[int] = field(default_factory=list)
    imbalance: list[int] = field(default_factory=list)
    bound: list[int] = field(default_factory=list)
    standing: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.step)

    def note(self, *, step: int, imbalance: int, bound: int, standing: str, seconds: float) -> None:
        """Add a decision.

        Parameters
        ----------
        imbalance, bound
            Its imbalance and the bound, tokens.
        standing
            A name from `STANDINGS`.
        """
        self.step.append(step)
        self.imbalance.append(imbalance)
        self.bound.append(bound)
        self.standing.append(STANDINGS.index(standing))
        self.seconds.append(seconds)

    def columns(self, since: int = 0) -> dict[str, NDArray[np.int64]]:
        """Return step, imbalance, bound and standing (place in `STANDINGS`) of the decisions from `since` on."""
        return {
            name: np.array(getattr(self, name)[since:], dtype=np.int64)
            for name in ("step", "imbalance", "bound", "standing")
        }

    def tally(self, since: int = 0) -> Counter[str]:
        """Return how many decisions from `since` on are of each standing."""
        return Counter(STANDINGS[code] for code in self.standing[since:])
