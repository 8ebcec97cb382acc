"""lbopt's own exact searches: the face of `lbopt.kernels.search` and `lbopt.kernels.windows`.

Importing it imports Numba, so it is imported on use.
"""

from lbopt.solvers.exact.leximax import most_even
from lbopt.solvers.exact.leximax_windows import most_even_window
from lbopt.solvers.exact.proof import written_proof
from lbopt.solvers.exact.search import ExactAnswer, search_exactly
from lbopt.solvers.exact.window_proof import written_window_proof
from lbopt.solvers.exact.windows import search_window

__all__ = [
    "ExactAnswer",
    "most_even",
    "most_even_window",
    "search_exactly",
    "search_window",
    "written_proof",
    "written_window_proof",
]
