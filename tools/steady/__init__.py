"""Steady-state decode steps, seeded: what a fleet that has been busy for long asks of its router."""

from tools.steady.fleet import SHAPES, SteadyFleet
from tools.steady.state_sets import NumberSet, StateSet, read_number_sets, read_state_sets

__all__ = ["SHAPES", "NumberSet", "StateSet", "SteadyFleet", "read_number_sets", "read_state_sets"]
