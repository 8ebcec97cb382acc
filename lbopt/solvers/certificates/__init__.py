"""Certificates of lower bounds, and the check that shares nothing with the search that writes them."""

from lbopt.solvers.certificates.choice import TooLongError
from lbopt.solvers.certificates.few_workers import refuted
from lbopt.solvers.certificates.format import Certificate, ContradictedError, priced_envelopes
from lbopt.solvers.certificates.kinds import KINDS, check, proved_bounds

__all__ = [
    "KINDS",
    "Certificate",
    "ContradictedError",
    "TooLongError",
    "check",
    "priced_envelopes",
    "proved_bounds",
    "refuted",
]
