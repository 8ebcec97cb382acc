"""Ctrl-C that Python drops: it comes again.

Where it meets a finaliser or the callback of a weak reference, of which Dask has many, Python prints its traceback and
goes on as if Ctrl-C had not been pressed.
"""

from __future__ import annotations

import signal
import sys
import threading

#: Seconds after which it comes again, in which the finaliser is left.
_MOMENT = 0.01


def repeat_dropped_interrupts() -> None:
    """From here on, press Ctrl-C again a moment after it was dropped, in the place of the traceback."""
    others = sys.unraisablehook

    def hook(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            others(unraisable)
            return
        # a script's background job ignores Ctrl-C: it was SIGTERM
        number = signal.SIGINT if callable(signal.getsignal(signal.SIGINT)) else signal.SIGTERM
        again = threading.Timer(_MOMENT, _press, [number])
        again.daemon = True
        again.start()

    sys.unraisablehook = hook


def _press(number: int) -> None:
    main = threading.main_thread().ident
    if main is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, number)  # as from a terminal, it also ends a wait of the main thread
    else:
        signal.raise_signal(number)
