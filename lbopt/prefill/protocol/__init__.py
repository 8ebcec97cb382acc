"""The triple check of staggered batch scheduling: a state machine, its promises, and faults to try them with."""

from lbopt.prefill.protocol.claims import BrokenPromiseError
from lbopt.prefill.protocol.ledger import PLACES, Ledger
from lbopt.prefill.protocol.monitor import Monitor
from lbopt.prefill.protocol.scheduler import TripleCheck
from lbopt.prefill.protocol.setting import ProtocolSetting
from lbopt.prefill.protocol.state import InstanceState, Phase, SchedulerState, initial_state

__all__ = [
    "PLACES",
    "BrokenPromiseError",
    "InstanceState",
    "Ledger",
    "Monitor",
    "Phase",
    "ProtocolSetting",
    "SchedulerState",
    "TripleCheck",
    "initial_state",
]
