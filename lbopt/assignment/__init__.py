"""Balanced assignment: N points to K centres of limited room at least total cost, exactly, and prices that prove it."""

from lbopt.assignment.balanced import balanced_assignment
from lbopt.assignment.costs import Candidates, CostBlocks, scale_costs
from lbopt.assignment.k_means import BalancedKMeans
from lbopt.assignment.result import BalancedAssignment, NoAssignmentError, Shortage

__all__ = [
    "BalancedAssignment",
    "BalancedKMeans",
    "Candidates",
    "CostBlocks",
    "NoAssignmentError",
    "Shortage",
    "balanced_assignment",
    "scale_costs",
]


def __dir__() -> list[str]:
    return sorted(__all__)
