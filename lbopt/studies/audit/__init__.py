"""From a router's log to a decision: what happened, what other rules would have done, what to do."""

from lbopt.studies.audit.config import AuditConfig
from lbopt.studies.audit.ranks import RanksConfig, RanksOutcome, run_ranks
from lbopt.studies.audit.study import AuditOutcome
from lbopt.studies.audit.whole_log import AuditOfGroups, audit_log, run_audit

__all__ = [
    "AuditConfig",
    "AuditOfGroups",
    "AuditOutcome",
    "RanksConfig",
    "RanksOutcome",
    "audit_log",
    "run_audit",
    "run_ranks",
]
