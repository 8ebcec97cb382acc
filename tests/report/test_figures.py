"""Pictures are drawn to their end before Ctrl-C acts."""

import signal

import pytest

from lbopt.report.figures import png_of, svg_of


class Figure:
    """Stands for a figure; Ctrl-C comes while it is drawn."""

    def __init__(self, seen):
        self.seen = seen

    def savefig(self, stream, **_options):
        signal.raise_signal(signal.SIGINT)
        assert self.seen == []
        stream.write(b"drawn")


@pytest.mark.parametrize("draw", [png_of, lambda figure: svg_of(figure, "f")])
def test_ctrl_c_waits_for_a_picture(draw):
    """Inside of it, matplotlib would make an error of its own of the press."""
    seen = []
    before = signal.signal(signal.SIGINT, lambda number, frame: seen.append(number))
    try:
        assert draw(Figure(seen)) == b"drawn"
        assert seen == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
