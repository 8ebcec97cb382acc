"""Every error that lbopt raises on purpose.

A message names the thing, shows the value that was found and says what would be accepted. The command line prints
the message alone and exits with code 2; a traceback that a user sees is a defect.
"""

#: Characters of a message. Values are cut where a message is made (`lbopt.files.shown`); this holds where one was not.
LONGEST_MESSAGE = 500

_HEAD = 330
_GAP = " ... "


def sentence(text: str) -> str:
    """Return a message in which nothing acts on a terminal, of at most `LONGEST_MESSAGE` characters.

    What cannot be printed (control bytes, changes of the writing direction, lone surrogates) is written as its escape,
    line ends included. Of a text that is too long the middle goes, since its end says what to do.
    """
    if not text.isprintable():
        text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in _near_ends(text))
    if len(text) > LONGEST_MESSAGE:
        text = text[:_HEAD] + _GAP + text[len(text) - (LONGEST_MESSAGE - _HEAD - len(_GAP)) :]
    return text


def _near_ends(text: str) -> str:
    """Return a text without a middle that could not be shown anyway, so that no time is spent on it."""
    return text if len(text) <= 2 * LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + _GAP + text[-LONGEST_MESSAGE:]


class LbOptError(Exception):
    """Root of all errors that lbopt raises on purpose; a text that it is given becomes a `sentence`."""

    def __init__(self, *parts: object) -> None:
        super().__init__(*(sentence(part) if isinstance(part, str) else part for part in parts))


class InputError(LbOptError, ValueError):
    """A value given by the user cannot be used: a shape, an entry, a file, a name."""


class InfeasibleDecisionError(LbOptError, ValueError):
    """An assignment breaks a rule of its problem: a slot too many, a request twice, too few admitted."""


class CertificateError(LbOptError):
    """A claim made in a result does not follow from the problem and the evidence given."""


class BackendUnavailableError(LbOptError, ImportError):
    """A solver was asked for whose package is not installed."""
