"""The vocabulary of lbopt, in NumPy alone.

Glossary, paper letter and public word:

====== ==================== ==========================================================================
G      ``num_workers``      data-parallel decode workers that meet at a barrier in every step
B      ``slots_per_worker`` requests that may run on one worker at a time
N      ``num_requests``     requests that wait
U      ``num_admitted``     min(N, free slots): what a full-utilisation decision admits
H      ``horizon``          lookahead; the window is h = 0..H
L_g    load                 tokens resident on worker g (prompt plus generated)
M      envelope             max_g L_g, the load that sets the pace
s, o   prompt, output       tokens of a request before decode; decode steps it runs
====== ==================== ==========================================================================
"""

from lbopt.model.conditions import Conditions, in_blocks
from lbopt.model.fleet import Fleet
from lbopt.model.gate_problem import GateProblem, WaitingPrompt
from lbopt.model.objective import (
    WAITS,
    barrier_total,
    check_assignment,
    check_paused,
    imbalance,
    loads_after,
    objective,
    rank,
)
from lbopt.model.step_problem import StepProblem
from lbopt.model.trace import Eligibility, RequestExperts, RequestPrefixes, Trace
from lbopt.model.window import Running

__all__ = [
    "WAITS",
    "Conditions",
    "Eligibility",
    "Fleet",
    "GateProblem",
    "RequestExperts",
    "RequestPrefixes",
    "Running",
    "StepProblem",
    "Trace",
    "WaitingPrompt",
    "barrier_total",
    "check_assignment",
    "check_paused",
    "imbalance",
    "in_blocks",
    "loads_after",
    "objective",
    "rank",
]


def __dir__() -> list[str]:
    return sorted(__all__)
