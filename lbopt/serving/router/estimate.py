"""Prompt tokens estimated from bytes, learned online from what engines count.

In one hop the router places a request before any engine has seen it. Its tokens are a line in the bytes of its text,
t = a + b x, with a for the template. Each usage that comes back is one more point; older points weigh less by a factor
a point, so that the line follows when prompts change. Until there are points, b is a quarter of a token a byte: the
prior counts as some points on that line. A prompt counts as four tokens a byte and 32,768 of template, tools, pictures
at most, so that an engine that counts nonsense does bounded harm, which is forgotten when it has gone.
"""

from __future__ import annotations

_PRIOR_SLOPE = 0.25
_PRIOR_POINTS = ((0.0, 4.0), (400.0, 104.0))
_FORGET = 0.995
_MOST_SLOPE = 4.0
_MOST_BESIDE = 2**15


class PromptEstimate:
    """The line of one model, kept as weighted sums."""

    __slots__ = ("_n", "_sx", "_sxx", "_sxy", "_sy", "points")

    def __init__(self) -> None:
        self.points = 0
        self._n = self._sx = self._sy = self._sxx = self._sxy = 0.0
        for x, y in _PRIOR_POINTS:
            self._add(x, y, 1.0)

    def _add(self, x: float, y: float, keep: float) -> None:
        self._n = keep * self._n + 1
        self._sx = keep * self._sx + x
        self._sy = keep * self._sy + y
        self._sxx = keep * self._sxx + x * x
        self._sxy = keep * self._sxy + x * y

    def tokens(self, units: int) -> int:
        """Return the tokens of a prompt of so many bytes, at least one."""
        spread = self._n * self._sxx - self._sx * self._sx
        if spread > 1e-9 * self._n * max(self._sxx, 1.0):
            slope = min(max((self._n * self._sxy - self._sx * self._sy) / spread, 0.0), _MOST_SLOPE)
        else:
            slope = _PRIOR_SLOPE
        level = (self._sy - slope * self._sx) / self._n
        return max(1, round(level + slope * units))

    def learn(self, units: int, tokens: int) -> None:
        """Take in what an engine counted for a prompt of so many bytes."""
        self.points += 1
        self._add(float(units), min(float(tokens), _MOST_SLOPE * units + _MOST_BESIDE), _FORGET)
