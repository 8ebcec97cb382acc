"""What can go wrong around the tasks; what goes wrong inside a task is stored as its failure."""

from __future__ import annotations

from lbopt.exceptions import LbOptError


class StoreError(LbOptError):
    """A store cannot be used: not ours, of another version, damaged, being written, or without the answer asked for."""


class DamagedRowError(StoreError):
    """A row of a store is not what was written: its hash, its key or its content does not fit."""


class EngineError(LbOptError):
    """An engine cannot do its work: its processes die before a task begins, or it answers for a task not given."""
