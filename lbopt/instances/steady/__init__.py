"""Steady-state decode steps, seeded: what a fleet that has been busy for long asks of its router."""

from lbopt.instances.steady.fleet import SHAPES, SteadyFleet
from lbopt.instances.steady.state_sets import StateSet, read_state_sets

__all__ = ["SHAPES", "StateSet", "SteadyFleet", "read_state_sets"]
