"""Steady-state decode steps, seeded: what a fleet that has been busy for long asks of its router."""

from lbopt.instances.steady.fleet import SHAPES, SteadyFleet
from lbopt.instances.steady.state_sets import NumberSet, StateSet, read_number_sets, read_state_sets

__all__ = ["SHAPES", "NumberSet", "StateSet", "SteadyFleet", "read_number_sets", "read_state_sets"]
