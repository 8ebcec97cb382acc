"""The triple check of staggered batch scheduling: a state machine, and faults to try it with."""

from lbopt.prefill.protocol.ledger import PLACES, Ledger
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState, initial_state

__all__ = [
    "PLACES",
    "InstanceState",
    "Ledger",
    "Phase",
    "ProtocolSetting",
    "SchedulerState",
    "TripleCheck",
    "initial_state",
]
