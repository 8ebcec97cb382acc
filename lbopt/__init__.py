"""lbopt: exact and fast load balancing of LLM decode workers that meet at a barrier in every step.

The public names are below; they are loaded on first use, so that ``import lbopt`` compiles nothing and imports
neither Numba nor a solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from lbopt.exceptions import CertificateError as CertificateError
    from lbopt.exceptions import InfeasibleDecisionError as InfeasibleDecisionError
    from lbopt.exceptions import InputError as InputError
    from lbopt.exceptions import LbOptError as LbOptError
    from lbopt.model import Fleet as Fleet
    from lbopt.model import StepProblem as StepProblem
    from lbopt.model import Trace as Trace
    from lbopt.solvers import Result as Result
    from lbopt.solvers import solve as solve
    from lbopt.solvers import verify as verify

_HOME = {
    "CertificateError": "lbopt.exceptions",
    "InfeasibleDecisionError": "lbopt.exceptions",
    "InputError": "lbopt.exceptions",
    "LbOptError": "lbopt.exceptions",
    "Fleet": "lbopt.model",
    "StepProblem": "lbopt.model",
    "Trace": "lbopt.model",
    "Result": "lbopt.solvers",
    "solve": "lbopt.solvers",
    "verify": "lbopt.solvers",
}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lbopt' has no attribute {name!r}; it offers {', '.join(__all__)}")
    from importlib import import_module

    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
