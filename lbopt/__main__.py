"""python -m lbopt, and the `lbopt` command."""

import io
import signal
import sys
import threading
from types import FrameType


def main() -> None:
    """Run the command line; Ctrl-C while it is still being imported ends it as quietly as later.

    When it ends, the exit code is decided and everything is written. Ctrl-C and SIGTERM are ignored from then on: in an
    exit function, such as that of joblib, either would end in a traceback or change the code.
    """
    try:
        try:
            _run()
        finally:  # a press before this holds is still one of the run
            _ignore_signals()
    except KeyboardInterrupt:
        _ignore_signals()
        sys.stderr.write("interrupted\n")
        sys.exit(130)


def _run() -> None:
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _as_ctrl_c)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # where the terminal has no UTF-8, a sign it lacks is shown as ?
            stream.reconfigure(errors="replace")
    from lbopt.cli import main as run
    from lbopt.cli.dropped_interrupts import repeat_dropped_interrupts

    repeat_dropped_interrupts()
    run()


def _ignore_signals() -> None:
    """Ignore Ctrl-C and SIGTERM from here on: what remains are the exit functions, which take a moment."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _as_ctrl_c(_number: int, frame: FrameType | None) -> None:
    """End by SIGTERM, which batch systems send, as by Ctrl-C: what is done is kept, and nothing is left behind."""
    press = signal.getsignal(signal.SIGINT)
    if callable(press):
        press(signal.SIGINT, frame)
    else:  # Ctrl-C is ignored, as in a script's background job
        raise KeyboardInterrupt


if __name__ == "__main__":
    main()
