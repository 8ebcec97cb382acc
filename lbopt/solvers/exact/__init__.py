"""lbopt's own exact searches: the face of `lbopt.kernels.search`, `windows` and `known_ends`.

Importing it imports Numba, so it is imported on use.
"""

from lbopt.solvers.exact.engines import search_problem
from lbopt.solvers.exact.known_ends_proof import written_known_ends_proof
from lbopt.solvers.exact.known_ends_search import search_known_ends
from lbopt.solvers.exact.leximax import most_even
from lbopt.solvers.exact.leximax_windows import most_even_window
from lbopt.solvers.exact.search import ExactAnswer, search_exactly, written_proof
from lbopt.solvers.exact.window_proof import written_window_proof
from lbopt.solvers.exact.windows import search_window

__all__ = [
    "ExactAnswer",
    "most_even",
    "most_even_window",
    "search_exactly",
    "search_known_ends",
    "search_problem",
    "search_window",
    "written_known_ends_proof",
    "written_proof",
    "written_window_proof",
]
