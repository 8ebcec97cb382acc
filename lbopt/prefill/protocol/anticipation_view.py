"""What an instance is reckoned to have and to do, between what is heard of it: its running pass, and the one to come.

What is reckoned: a batch is there a latency after it was sent. A pass begins when the one before has ended, if anything
is there, else when the first batch is; it takes the oldest tokens of each unit, up to a chunk. What is heard corrects
it: the end of a pass, heard a way back later, tells what is left on each unit and the newest batch that is there. One
that is lost is told by a first token of a batch that the running pass was the first to have; it then counts GRACE
later, by what was reckoned, unless it comes after all.

Nothing here decides about life and death: an instance that is suspected, restarts, or has nothing open any more is
reckoned to be idle, so that no reckoning outlives the timer of an instance that holds a request.

How long a pass will take: a line through the last ones, seconds over tokens of the fullest unit, and its error.

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
from typing import Any, NamedTuple

from lbopt.kernels.prefill.codes import LEAST_MARGIN, NO_LIMIT, OPEN
from lbopt.kernels.prefill.rules import slope_of
from lbopt.prefill.protocol.messages import EndForward
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
        reported, observed
            s, what it took, as the instance says and from its reckoned begin to its end.
        missed
            s, by which it ended after its predicted end.
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


#: s, after a first token that tells the end of a pass.
GRACE = LEAST_MARGIN


class Coming(NamedTuple):
    """A batch that is not among what is `left`: its number, when it is there, s, and its tokens on each unit."""

    seq: int
    reach: float
    tokens: tuple[int, ...]


class View(NamedTuple):
    """Never changed in place.

    Parameters
    ----------
    left
        Tokens on each unit of the device, those in the running pass among them.
    running
        Tokens of each unit in the running pass; empty = none runs.
    coming
        Batches that are not in `left`.
    load
        Tokens of each unit for the pass to come: what is left and comes, less what runs.
    room
        Tokens for which the pass to come has room; 0 = it takes no more.
    waits
        Whether anything is there or on the way for the pass to come, so that it begins by itself.
    closed
        Whether the pass to come gets more batches: OPEN, CLOSED, FULL or TOPPED_UP.
    began, ends, free_since
        s: the running pass, its predicted end (infinity = none runs), and the end of the last one.
    newest, through, since
        The newest batch on the device, when the running pass began, and when the pass before it did.
    number
        Of the last pass that ended, as the instance counts; 0 = not told.
    told
        s, when the running pass has ended, after a first token; infinity = not known.
    moves
        s, when a pass is reckoned to begin, or a told end counts; infinity = not before something is heard.
    """

    left: tuple[int, ...]
    running: tuple[int, ...] = ()
    coming: tuple[Coming, ...] = ()
    load: tuple[int, ...] = ()
    room: int = 0
    waits: bool = False
    closed: int = OPEN
    began: float = 0.0
    ends: float = math.inf
    free_since: float = 0.0
    newest: int = 0
    through: int = 0
    since: int = 0
    number: int = 0
    told: float = math.inf
    moves: float = math.inf

    @property
    def is_idle(self) -> bool:
        """Whether nothing is there or on the way."""
        return not (self.running or self.waits)

    @classmethod
    def idle(cls, setting: ProtocolSetting, now: float, newest: int = 0) -> View:
        """Return an instance that has nothing, and of which nothing is known."""
        return _with(cls((0,) * setting.units, free_since=now, newest=newest, through=newest), setting)


class Outlook(NamedTuple):
    """What is reckoned of all.

    Parameters
    ----------
    views, law
        Of each instance, and of a pass.
    last_start
        s, the latest start of a pass that a batch was sent ahead for.
    moves
        s, when the first view moves.
    enough
        So many tokens in the queue would fill a pass that now waits for more; 0 = not looked at since it changed.
    """

    views: tuple[View, ...]
    law: PassLaw
    last_start: float = -math.inf
    moves: float = math.inf
    enough: int = 0

    @classmethod
    def cold(cls, setting: ProtocolSetting) -> Outlook:
        """Return the outlook before the first event."""
        return cls((View.idle(setting, 0.0),) * setting.num_instances, PassLaw.cold(setting))

    def seeing(self, instance: int, view: View, enough: int = 0) -> Outlook:
        """Return the outlook with another view of an instance.

        Parameters
        ----------
        enough
            See `Outlook`.
        """
        views = (*self.views[:instance], view, *self.views[instance + 1 :])
        return Outlook(views, self.law, self.last_start, min([one.moves for one in views]), enough)


def chunk_of(setting: ProtocolSetting) -> int:
    """Return the most tokens of a unit in a pass."""
    return setting.chunk or setting.batch_tokens or NO_LIMIT


def _with(view: View, setting: ProtocolSetting, **changes: Any) -> View:
    """Return the view with changes, and with all that follows from them."""
    left, running = changes.get("left", view.left), changes.get("running", view.running)
    coming, free_since = changes.get("coming", view.coming), changes.get("free_since", view.free_since)
    load = left
    if running:
        load = tuple([one - taken for one, taken in zip(load, running, strict=True)])
    for batch in coming:
        load = _sum(load, batch.tokens)
    chunk = chunk_of(setting)
    if running:
        moves = changes.get("told", view.told) + setting.way_back + GRACE
    elif any(left):
        moves = free_since
    else:
        moves = max(free_since, coming[0].reach) if coming else math.inf
    # What a unit has beyond a chunk takes nothing from the others.
    room = sum([chunk - tokens for tokens in load if tokens < chunk])
    return view._replace(**changes, load=load, room=room, waits=any(load), moves=moves)


def _sum(one: tuple[int, ...], more: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([a + b for a, b in zip(one, more, strict=True)])


def moved(view: View, law: PassLaw, setting: ProtocolSetting) -> View:
    """Return the view after what is reckoned to happen at `moves`: a pass begins, or a told end counts."""
    if view.running:
        return ended(view, view.told, setting)
    start = view.moves
    left = view.left
    there = [batch for batch in view.coming if batch.reach <= start]
    for batch in there:
        left = _sum(left, batch.tokens)
    newest = there[-1].seq if there else view.newest
    chunk = chunk_of(setting)
    running = tuple([min(tokens, chunk) for tokens in left])
    return _with(
        view,
        setting,
        left=left,
        running=running,
        coming=view.coming[len(there) :],
        closed=OPEN,
        began=start,
        ends=start + law.predicted(max(running), setting),
        newest=newest,
        through=newest,
        since=view.through,
        told=math.inf,
    )


def ended(view: View, end: float, setting: ProtocolSetting) -> View:
    """Return the view after the end of the running pass, s, of which nothing but its time is known."""
    left = tuple([one - taken for one, taken in zip(view.left, view.running, strict=True)])
    there = [batch for batch in view.coming if batch.reach <= end]
    number = view.number + 1 if view.number else 0
    for batch in there:
        left = _sum(left, batch.tokens)
    return _with(
        view,
        setting,
        left=left,
        running=(),
        coming=view.coming[len(there) :],
        ends=math.inf,
        free_since=end,
        newest=there[-1].seq if there else view.newest,
        number=number,
        told=math.inf,
    )


def sent(view: View, seq: int, tokens: tuple[int, ...], closed: int, now: float, setting: ProtocolSetting) -> View:
    """Return the view after a batch left.

    Parameters
    ----------
    seq, tokens
        Number of the batch, and its tokens on each unit.
    closed, now
        Whether the pass to come gets more; s.
    """
    coming = (*view.coming, Coming(seq, now + setting.latency, tokens))
    return _with(view, setting, coming=coming, closed=closed)


def heard_token(view: View, seq: int, end: float, setting: ProtocolSetting) -> View:
    """Return the view after a first token.

    Parameters
    ----------
    seq, end
        Of which batch, and when the pass ended that it comes from, s.
    """
    if not (view.running and view.since < seq <= view.through and view.told == math.inf):
        return view
    return view._replace(told=end, moves=end + setting.way_back + GRACE)


def heard_end(
    view: View, event: EndForward, end: float, law: PassLaw, setting: ProtocolSetting
) -> tuple[View, PassLaw]:
    """Return view and law after the end of a pass was heard.

    Parameters
    ----------
    law
        Learns from the pass, if it is the one that was reckoned with.
    """
    if 0 < event.number <= view.number:
        return view, law
    newest = event.newest or event.seq
    left = event.units or (event.remaining,)
    expected = not event.number or not view.number or event.number == view.number + 1
    if view.running and expected and event.seq == view.through and len(left) == len(view.left):
        computed = list(view.left)
        for batch in view.coming:
            if batch.seq <= newest:
                computed = list(_sum(tuple(computed), batch.tokens))
        computed = [one - rest for one, rest in zip(computed, left, strict=True)]
        if min(computed) >= 0:
            law = law.after_pass(max(computed), event.seconds, end - view.began, end - view.ends, setting)
    after = _with(
        view,
        setting,
        left=left if len(left) == len(view.left) else view.left,
        running=(),
        coming=tuple([batch for batch in view.coming if batch.seq > newest]),
        ends=math.inf,
        free_since=end,
        newest=newest,
        number=event.number,
        told=math.inf,
    )
    return after, law
