"""Objects that work in arrays of their own belong to one thread: the first that uses them; a second one is refused.

Two threads in one such object mix their requests up without any error: of 80,000 routed by four threads that shared a
router, 27 went to the wrong worker.
"""

from __future__ import annotations

from threading import get_ident

from lbopt.exceptions import InputError


class OneThread:
    """The thread that an object belongs to.

    Parameters
    ----------
    what
        The object, as the message calls it.
    """

    __slots__ = ("_owner", "_what")

    def __init__(self, what: str) -> None:
        self._owner, self._what = 0, what

    def __reduce__(self) -> tuple[type[OneThread], tuple[str]]:
        return OneThread, (self._what,)  # a copy belongs to nobody yet

    def check(self) -> None:
        """Raise InputError where another thread has used the object before."""
        mine = get_ident()
        if self._owner != mine:
            if self._owner:
                raise InputError(f"this {self._what} is used by another thread already; make one for each thread")
            self._owner = mine
