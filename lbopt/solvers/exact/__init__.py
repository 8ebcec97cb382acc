"""lbopt's own exact search: the face of `lbopt.kernels.search`."""

from lbopt.solvers.exact.search import ExactAnswer, search_exactly

__all__ = ["ExactAnswer", "search_exactly"]
