"""The upkeep of the instance library: draw its problems, solve them, and never forget what was known.

``python -m lbopt.studies.library`` does it for the whole library. `lbopt.instances.library` only holds and reads;
solving belongs here because instances and solvers do not know each other.
"""

from lbopt.studies.library.attempts import Attempt, attempt, compared, result_text
from lbopt.studies.library.building import build

__all__ = ["Attempt", "attempt", "build", "compared", "result_text"]
