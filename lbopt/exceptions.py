"""Every error that lbopt raises on purpose.

A message names the thing, shows the value that was found and says what would be accepted. The command line prints
the message alone and exits with code 2; a traceback that a user sees is a defect.
"""


class LbOptError(Exception):
    """Root of all errors that lbopt raises on purpose."""


class InputError(LbOptError, ValueError):
    """A value given by the user cannot be used: a shape, an entry, a file, a name."""


class InfeasibleDecisionError(LbOptError, ValueError):
    """An assignment breaks a rule of its problem: a slot too many, a request twice, too few admitted."""


class CertificateError(LbOptError):
    """A claim made in a result does not follow from the problem and the evidence given."""


class BackendUnavailableError(LbOptError, ImportError):
    """A solver was asked for whose package is not installed."""
