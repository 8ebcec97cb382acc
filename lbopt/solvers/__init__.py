"""Exact answers: `solve` finds and `verify` checks; solver packages are imported only when one of them runs."""

from lbopt.solvers.budget import Progress, Stops
from lbopt.solvers.certificate import VerificationReport, verify
from lbopt.solvers.elementary import elementary_bound, greedy_assignment
from lbopt.solvers.front import check_solver, solve
from lbopt.solvers.gate_window import GateResult, solve_gate
from lbopt.solvers.registry import BACKENDS, Capabilities, is_available
from lbopt.solvers.result import PROVED_BY, STOP_REASONS, Result
from lbopt.solvers.sensitivity import Sensitivity, sensitivity

__all__ = [
    "BACKENDS",
    "PROVED_BY",
    "STOP_REASONS",
    "Capabilities",
    "GateResult",
    "Progress",
    "Result",
    "Sensitivity",
    "Stops",
    "VerificationReport",
    "check_solver",
    "elementary_bound",
    "greedy_assignment",
    "is_available",
    "sensitivity",
    "solve",
    "solve_gate",
    "verify",
]


def __dir__() -> list[str]:
    return sorted(__all__)
