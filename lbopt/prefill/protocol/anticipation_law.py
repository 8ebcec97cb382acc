"""How long a pass will take: a line through the last ones, seconds over tokens of the fullest unit, and its error.

The least-squares line of `kernels.prefill.anticipation`, from what an instance reports and the scheduler's own clock.
Reports may be wrong, so that a pass counts only if

* the two clocks agree: what it is said to have taken and what passed between its reckoned begin and its end differ by
  less than a factor AGREE;
* it is near what was to be expected, once TRUSTED passes are known: within a factor NEAR of the line, or of seconds in
  proportion to tokens, or not much longer than the mean. If more than half a window of passes in a row are not, the law
  has changed, and the window begins anew.

Bound. What counts is brought between `shortest_pass` and `longest_pass` of the setting, and so is every prediction; a
miss is at most `longest_pass`. A report of 1 us or 3,600 s about a pass that took neither moves nothing.
"""

from __future__ import annotations

import math
from operator import mul
from typing import NamedTuple

from lbopt.kernels.prefill.codes import LEAST_MARGIN
from lbopt.kernels.prefill.rules import slope_of
from lbopt.prefill.protocol.setting import ProtocolSetting

AGREE, NEAR, TRUSTED = 2.0, 4.0, 8


class PassLaw(NamedTuple):
    """Never changed in place; a new pass takes time in proportion to the window.

    Parameters
    ----------
    tokens, seconds, missed
        The window, the oldest first: tokens of the fullest unit, what the pass took, and by how much its end was later
        than predicted, s.
    slope, mean_tokens, mean_seconds
        A pass is predicted to take mean_seconds + slope * (tokens - mean_tokens), s.
    error
        s, root of the mean square of what the predictions missed.
    strange
        Passes in a row that did not count.
    """

    tokens: tuple[int, ...]
    seconds: tuple[float, ...]
    missed: tuple[float, ...]
    slope: float
    mean_tokens: float
    mean_seconds: float
    error: float
    strange: int

    @classmethod
    def cold(cls, setting: ProtocolSetting) -> PassLaw:
        """Return the law before the first pass: the default, whatever it holds."""
        return cls((), (), (), 0.0, 0.0, setting.default_pass, 0.0, 0)

    def predicted(self, tokens: int, setting: ProtocolSetting) -> float:
        """Return what a pass with so many tokens on its fullest unit will take, s."""
        seconds = self.mean_seconds + self.slope * (tokens - self.mean_tokens)
        return min(max(seconds, setting.shortest_pass), setting.longest_pass)

    def margin(self, setting: ProtocolSetting) -> float:
        """Return how long before a predicted end a batch is to be there, s."""
        return max(LEAST_MARGIN, setting.margin * self.error)

    def after_pass(
        self, tokens: int, reported: float, observed: float, missed: float, setting: ProtocolSetting
    ) -> PassLaw:
        """Return the law after a pass.

        Parameters
        ----------
        tokens
            On its fullest unit, as reckoned.
        reported, observed
            s, what it took, as the instance says and from its reckoned begin to its end.
        missed
            s, by which it ended after its predicted end.
        setting
            The scheduler's.
        """
        if not (reported < AGREE * observed and observed < AGREE * reported):
            return self
        if len(self.seconds) >= min(TRUSTED, setting.window) and self._is_strange(tokens, reported):
            strange = self.strange + 1
            if 2 * strange <= setting.window:
                return self._replace(strange=strange)
            return PassLaw.cold(setting).after_pass(tokens, reported, observed, 0.0, setting)
        least, most = setting.shortest_pass, setting.longest_pass
        window = setting.window
        xs = (*self.tokens, tokens)[-window:]
        ys = (*self.seconds, min(max(reported, least), most))[-window:]
        misses = (*self.missed, min(max(missed, -most), most))[-window:]
        held, x, y = len(xs), sum(xs), sum(ys)
        slope = slope_of(held, x, y, sum(map(mul, xs, xs)), sum(map(mul, xs, ys)))
        error = math.sqrt(sum(map(mul, misses, misses)) / held)
        return PassLaw(xs, ys, misses, slope, x / held, y / held, error, 0)

    def _is_strange(self, tokens: int, seconds: float) -> bool:
        line = self.mean_seconds + self.slope * (tokens - self.mean_tokens)
        share = self.mean_seconds * tokens / self.mean_tokens if self.mean_tokens else line
        return not min(line, share) / NEAR <= seconds <= max(line, share, self.mean_seconds) * NEAR
