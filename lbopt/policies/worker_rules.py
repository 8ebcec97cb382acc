"""The rules that take requests in order of arrival and choose only the worker, as one table.

Sources: BF-IO appendix A.1.1 and its authors' simulator (fcfs, and their "JSQ", which goes by tokens); the evaluation
of BalanceRoute (arXiv 2605.06113) for the baselines. All break ties by the lowest worker number. By default each binds
requests when its source does. Rules of serving engines are in `engine_rules`.
"""

from __future__ import annotations

from collections.abc import Callable

from lbopt.kernels.routing import codes
from lbopt.policies.policy import ADMISSIONS, Admission, CompiledPolicy, checked_admission


def worker_rule(
    name: str, code: int, default: Admission, *, draws: bool = False, allowed: tuple[Admission, ...] = ADMISSIONS
) -> Callable[..., CompiledPolicy]:
    """Return the factory of a rule without parameters other than when it binds.

    Parameters
    ----------
    name
        Name of the rule.
    code
        Its code in the compiled loop.
    default
        When it binds by default.
    draws
        Whether it draws random numbers.
    allowed
        When it may bind.
    """

    def build(admission: str = default) -> CompiledPolicy:
        binds = checked_admission(name, admission, allowed)
        label = name if binds == default else f"{name}:admission={binds}"
        return CompiledPolicy(name=label, admission=binds, code=code, draws=draws)

    return build


#: worker 0 is filled from the head of the queue, then worker 1, ...
fcfs = worker_rule("fcfs", codes.FCFS, "pooled", allowed=("pooled",))
#: the workers in turn
round_robin = worker_rule("round-robin", codes.ROUND_ROBIN, "immediate")
#: any worker, all equally likely
random = worker_rule("random", codes.RANDOM, "immediate", draws=True)
#: of two random workers the one with fewer requests
power_of_two = worker_rule("power-of-two", codes.POWER_OF_TWO, "immediate", draws=True)
#: fewest requests
jsq = worker_rule("jsq", codes.JSQ, "immediate")
#: fewest tokens
jsq_load = worker_rule("jsq-load", codes.JSQ_LOAD, "pooled")
