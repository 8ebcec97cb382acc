"""How a solver fares against the instance library.

`lbopt.instances.library` only holds and reads; solving belongs here because instances and solvers do not know each
other. What builds the library and keeps it up is no part of the package: ``python -m tools.library`` of a checkout.
"""

from lbopt.studies.library.attempts import Attempt, attempt, compared, contradiction_of, result_text

__all__ = ["Attempt", "attempt", "compared", "contradiction_of", "result_text"]
