"""What a policy is: a name, when it binds requests, and a decision, compiled or in Python.

*Pooled* admission: requests wait in one pool and the router chooses when slots are free. *Immediate* admission: each
request is bound to a worker when it arrives and waits in that worker's own queue. Published baselines are immediate,
BF-IO and BalanceRoute pooled; comparing them without that difference reproduces neither.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

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
