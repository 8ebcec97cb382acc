"""lbopt: exact and fast load balancing of LLM decode workers that meet at a barrier in every step.

The public names are below; each is loaded on first use, so that ``import lbopt`` compiles nothing and imports neither
Numba nor a solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from lbopt.lazy_names import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:  # from the file itself where a module of the name stands beside it: mypy could take that one
    from lbopt.api import audit as audit
    from lbopt.api import ceilings as ceilings
    from lbopt.api import check as check
    from lbopt.api import cost as cost
    from lbopt.api import gap as gap
    from lbopt.api import in_hindsight as in_hindsight
    from lbopt.api import list_policies as list_policies
    from lbopt.api import simulate as simulate
    from lbopt.api import study as study
    from lbopt.exceptions import CertificateError as CertificateError
    from lbopt.exceptions import InfeasibleDecisionError as InfeasibleDecisionError
    from lbopt.exceptions import InputError as InputError
    from lbopt.exceptions import LbOptError as LbOptError
    from lbopt.instances import open_trace as open_trace
    from lbopt.model import Conditions as Conditions
    from lbopt.model import Fleet as Fleet
    from lbopt.model import StepProblem as StepProblem
    from lbopt.model import Trace as Trace
    from lbopt.model.objective import objective as objective
    from lbopt.policies import make_policy as make_policy
    from lbopt.simulator import Ceilings as Ceilings
    from lbopt.simulator import Run as Run
    from lbopt.solvers import Result as Result
    from lbopt.solvers import verify as verify
    from lbopt.solvers.front import solve as solve
    from lbopt.solvers.sensitivity import sensitivity as sensitivity
    from lbopt.studies.gap import GapOutcome as GapOutcome
    from lbopt.warming import warm_up as warm_up

_HOME = {
    "Ceilings": "lbopt.simulator",
    "CertificateError": "lbopt.exceptions",
    "Conditions": "lbopt.model",
    "Fleet": "lbopt.model",
    "GapOutcome": "lbopt.studies.gap",
    "InfeasibleDecisionError": "lbopt.exceptions",
    "InputError": "lbopt.exceptions",
    "LbOptError": "lbopt.exceptions",
    "Result": "lbopt.solvers",
    "Run": "lbopt.simulator",
    "StepProblem": "lbopt.model",
    "Trace": "lbopt.model",
    "audit": "lbopt.api",
    "ceilings": "lbopt.api",
    "check": "lbopt.api",
    "cost": "lbopt.api",
    "gap": "lbopt.api",
    "in_hindsight": "lbopt.api",
    "list_policies": "lbopt.api",
    "make_policy": "lbopt.policies",
    "objective": "lbopt.model",
    "open_trace": "lbopt.instances",
    "sensitivity": "lbopt.solvers",
    "simulate": "lbopt.api",
    "solve": "lbopt.solvers",
    "study": "lbopt.api",
    "verify": "lbopt.solvers",
    "warm_up": "lbopt.warming",
}

__all__ = ["__version__", *_HOME]


__getattr__, __dir__ = lazy_names(__name__, _HOME)
