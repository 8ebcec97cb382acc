"""When live requests have drifted from the calibration: of one kind of traffic, or in the mix of kinds.

Groups of centroids that the same requests are near to: kinds of traffic, as far as a routing table can tell them.

Alike are centroids to which calibration requests have correlated cosines. Groups are those that come about when
centroids are joined two by two, the most alike first (complete linkage), and around each centroid its nearest one, two,
three, ... others. Traffic that moves to one kind of request raises the share of the group that stands for it, which
single centroids show much less: each has a part of the rise, and its own noise.

Of more than 32 centroids the most alike are joined to 32 kinds first, and groups are made of these.

Charts of the mix of traffic: whether a part of it has moved to one kind of request.

Of each block of n requests m are of a group of centroids (`centroid_groups`) that has the share p of calibration
requests. Its chart is the CUSUM of the logarithm of the likelihood that the part f of the traffic has moved to the
group, over that of none,

    S = max(0, S + m ln(q / p) + (n - m) ln((1 - q) / (1 - p))),   q = p + f (1 - p),   f = 0.3.

One chart more goes by no group that was known before: traffic has moved to those kinds whose shares over about the last
250 requests before the block exceed p by more than a deviation, in proportion to the excess, r:

    S = max(0, S + sum over requests of ln(1 - f + f r / p)).

No chart's expected value under the calibration's mix exceeds 1 in the exponent, which is what bounds its false alarms
(Lorden, Procedures for reacting to a change in distribution, Annals of Mathematical Statistics 42, 1971), if shares are
known. They are estimates; so each chart is told in units of what it rarely exceeds in streams whose shares are drawn
anew (`drift`), and the greatest counts.

The watch on drift: whether live requests still are what the routing table was fitted to.

Four things are watched of every decision: the cosine to the nearest centroid, the workers in the band (its logarithm),
the share of choices at experts that no calibration request used, and which centroid is the nearest. Requests are taken
in blocks of 25. For the first three, with block means x standardised by the calibration requests, two one-sided CUSUM
charts a statistic (rises alone for the third)

    S = max(0, S + z - k),   z = (x - mean) / (deviation / sqrt(25)),   k = 0.25 sqrt(25),

which are the quickest of their kind for a shift of half a deviation a request. For the last, shares of the centroids
over about the last 250 requests, m = (1 - w) m + w (shares of the block) with w = 0.1, against those of calibration,

    Q = sum over centroids of (m - p)^2 / q,   q = (p + 1 / K) / 2,

whose divisor is no smaller than half an even share: a centroid that is rarely the nearest must not be the loudest. And
with each block the logarithm of the likelihood that 0.3 of the traffic has moved to one kind of request is summed up,
for each of many kinds (`mix_charts`): that finds a quarter of the traffic that moves to a known kind, where the squares
of all centroids' shares have the noise of all centroids.

A chart sounds the alarm at a threshold, and the alarm stays until `reset`.

Thresholds come from the calibration requests: 4,000 streams of blocks drawn from them with replacement, each with
means, deviations and shares of its own, drawn anew as well, since those that are known are estimates. They are drawn
from a quarter as many requests as there are (half as many for groups, whose members are the nearest to the same
requests whichever of them is), because a request that is left out of its cluster has still had its part
in the layers, the weights and the other clusters: what is known is that much less sure. A chart's threshold is what
its greatest value in a stream stays below in all but a quarter of the share of streams that `false_alarms` says. So the
four charts together sound a false alarm in at most that share of runs of `horizon` requests, as far as calibration
requests stand for live ones.

Source of the charts: Page, Continuous inspection schemes (Biometrika 41, 1954); Roberts, Control chart tests based on
geometric moving averages (Technometrics 1, 1959). Their use here, and the thresholds, are ours.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lbopt.exceptions import InputError
from lbopt.kinds import whole
from lbopt.locality.routing_table import DriftReference
from lbopt.locality.workload import Bools, Floats

#: Kinds at most.
_MOST_KINDS = 32
#: Shares of requests that a group has at least and at most.
_LEAST_SHARE, _LARGEST_SHARE = 0.02, 0.5
#: Kinds of a group around one, and groups, at most.
_NEAREST, _MOST_GROUPS = 8, 64


def centroid_kinds(cosines: Floats) -> Floats:
    """Return of which kind each centroid is, float64 (K, B) with a 1 in each row.

    Parameters
    ----------
    cosines
        float64 (N, K), of calibration requests.
    """
    K = cosines.shape[1]
    groups = [frozenset([k]) for k in range(K)]
    if K > _MOST_KINDS:
        groups = _joined(_alike(cosines), _MOST_KINDS)[0]
    return _members(groups, K).astype(np.float64)


def centroid_groups(cosines: Floats, shares: Floats) -> Bools:
    """Return which kinds are in each group, bool (B, M).

    Parameters
    ----------
    cosines
        float64 (N, B), of calibration requests, the means over the centroids of each kind.
    shares
        float64 (B,), of requests by the nearest centroid.
    """
    B = len(shares)
    alike = _alike(cosines)
    order = np.argsort(-alike, axis=1, kind="stable")
    around = [frozenset(row[: n + 1].tolist()) for n in range(1, min(_NEAREST, B)) for row in order]
    found = list(dict.fromkeys([*_joined(alike, 2)[1][::-1], *around]))
    members = _members(found, B)
    of_group = shares @ members
    chosen = np.flatnonzero((of_group >= _LEAST_SHARE) & (of_group <= _LARGEST_SHARE))
    return members[:, chosen[:_MOST_GROUPS]]


def _alike(cosines: Floats) -> Floats:
    """Return the correlations of columns, (K, K), with infinity of each to itself."""
    centred = cosines - cosines.mean(axis=0)
    length = np.sqrt(np.einsum("ij,ij->j", centred, centred))
    near = np.divide(centred, length, out=np.zeros_like(centred), where=length > 0)
    alike: Floats = near.T @ near
    np.fill_diagonal(alike, np.inf)
    return alike


def _joined(alike: Floats, number: int) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """Join two by two until so many groups are left; return these, and all that came about on the way."""
    alike, K = alike.copy(), len(alike)
    np.fill_diagonal(alike, -np.inf)
    groups = {k: frozenset([k]) for k in range(K)}
    found = list(groups.values())
    for _ in range(K - number):
        first, second = divmod(int(alike.argmax()), K)
        merged = np.minimum(alike[first], alike[second])
        merged[[first, second]] = -np.inf
        alike[first], alike[:, first] = merged, merged
        alike[second], alike[:, second] = -np.inf, -np.inf
        groups[first] |= groups.pop(second)
        found.append(groups[first])
    return list(groups.values()), found


def _members(groups: list[frozenset[int]], K: int) -> Bools:
    """Return which of K are in each group, bool (K, M)."""
    members = np.zeros((K, len(groups)), dtype=np.bool_)
    for m, group in enumerate(groups):
        members[list(group), m] = True
    return members


#: Requests of a block, and the weight of a block in the shares that the last chart goes by.
BLOCK = 25
WEIGHT = 0.1
#: f, and the deviations of a share that a rise of it must exceed.
SHIFT = 0.3
_NOISE = 1.0


class MixLaw(NamedTuple):
    """What a block's shares are held against.

    Parameters
    ----------
    shares
        float64 (..., B), of kinds, none of them 0.
    rise, fall
        float64 (..., M): what a block adds to a group's chart if all of it are of the group, less what it adds if none
        is; and the latter.
    scale
        float64 (M + 1,), the unit of each chart.
    """

    shares: Floats
    rise: Floats
    fall: Floats
    scale: Floats


def mix_law(counted: Floats, members: Floats, known: int) -> MixLaw:
    """Return the law of shares.

    Parameters
    ----------
    counted
        float64 (..., B), shares of kinds among `known` requests; half a request more is put to each.
    members
        float64 (B, M), 1 where a kind is in a group.
    """
    B, M = members.shape
    shares = (counted * known + 0.5) / (known + 0.5 * B)
    p = shares @ members
    q = p + SHIFT * (1 - p)
    fall = BLOCK * np.log((1 - q) / (1 - p))
    return MixLaw(shares, BLOCK * np.log(q / p) - fall, fall, np.ones(M + 1))


@dataclass(slots=True)
class MixCharts:
    """State of the charts, for one stream or, with a leading axis, for many at a time."""

    recent: Floats  # (..., B), shares of kinds
    sums: Floats  # (..., M + 1), the last by the kinds whose shares have risen

    @classmethod
    def start(cls, law: MixLaw) -> MixCharts:
        """Return charts at rest."""
        return cls(law.shares.copy(), np.zeros((*law.fall.shape[:-1], law.fall.shape[-1] + 1)))

    def advance(self, law: MixLaw, kinds: Floats, groups: Floats) -> None:
        """Take a block in.

        Parameters
        ----------
        kinds, groups
            float64 (..., B) and (..., M), its shares.
        """
        p, sums = law.shares, self.sums
        sums[..., :-1] += groups * law.rise + law.fall
        over = self.recent - p - _NOISE * np.sqrt(p * (1 - p) * (WEIGHT / (2 - WEIGHT) / BLOCK))
        np.maximum(over, 0.0, out=over)
        total = over.sum(axis=-1, keepdims=True)
        part = np.divide(over, total, out=over, where=total > 0)
        gain = np.log(1.0 - SHIFT + SHIFT * part / p)
        sums[..., -1] += BLOCK * np.where(total[..., 0] > 0, (kinds * gain).sum(axis=-1), 0.0)
        np.maximum(sums, 0.0, out=sums)
        self.recent += WEIGHT * (kinds - self.recent)

    def level(self, law: MixLaw) -> Floats:
        """Return the greatest chart, in its unit, (...)."""
        return np.asarray((self.sums / law.scale).max(axis=-1))


#: The slack of a CUSUM in deviations of a block mean.
SLACK = 0.25 * BLOCK**0.5

#: What is watched, in the order of the charts.
STATISTICS = ("similarity", "band", "strange", "centroids", "mix")
_NUMBERS = 3  # of the statistics that are means of numbers
#: Streams, how many are drawn at a time, so that they stay in the cache, and blocks that they are drawn from.
_STREAMS, _TOGETHER = 4000, 500
_BLOCKS = 8000
#: Deviations below which a number counts as scattering that much: what was the same for all will not be so for ever.
_LEAST_SPREAD = np.array([0.005, 0.05, 0.002])
#: Thresholds at least: a chart that no stream has raised must not sound at the first block that does.
_LEAST_THRESHOLDS = np.array([4.0, 4.0, 4.0, 0.05, 1.0])
#: Of the false alarms that may be, the part of each chart.
_PARTS = (0.15, 0.15, 0.15, 0.15, 0.4)
#: A chart of the mix is told in units of what this share of streams stays below, and of no less than the second.
_USUAL, _LEAST_SCALE = 0.998, 8.0
#: As if so many times fewer requests had been measured; the second for the mix of kinds.
_LESS_SURE, _LESS_SURE_OF_KINDS = 4, 2
#: Blocks from which the means of a simulated stream are drawn at most.
_MOST_ESTIMATED = 200


@dataclass(frozen=True, slots=True)
class Alarm:
    """What sounded: the statistic, at which request since the watch began, and its chart over its threshold."""

    statistic: str
    request: int
    level: float


@dataclass(frozen=True, slots=True)
class DriftReading:
    """What a watch knows.

    Parameters
    ----------
    requests
        Seen since the watch began.
    similarity, band, strange
        Means over the last blocks, weighed as the shares of centroids are: cosine to the nearest centroid, workers in
        the band, share of choices at experts that no calibration request used.
    expected
        The same three of the calibration requests.
    levels
        Each chart over its threshold, by statistic; 1 sounds the alarm.
    alarm
        The first alarm; None where there was none.
    """

    requests: int
    similarity: float
    band: float
    strange: float
    expected: tuple[float, float, float]
    levels: dict[str, float]
    alarm: Alarm | None


@dataclass(slots=True)
class _Charts:
    """State of the charts, for one stream or, with a leading axis, for many at a time."""

    up: Floats  # (..., 3)
    down: Floats  # (..., 3)
    shares: Floats  # (..., K)
    mix: MixCharts
    means: Floats = field(default_factory=lambda: np.zeros(0))  # (..., 3)

    def advance(self, law: _Law, block: _Block) -> Floats:
        """Take a block in; return the charts, (..., 5)."""
        z = (block.means - law.mean) / law.deviation
        self.up = np.maximum(0.0, self.up + z - SLACK)
        self.down = np.maximum(0.0, self.down - z - SLACK)
        self.down[..., 2] = 0.0  # fewer strange experts than expected are no trouble
        self.shares = (1 - WEIGHT) * self.shares + WEIGHT * block.shares
        far = self.shares - law.shares
        self.mix.advance(law.mix, block.kinds, block.groups)
        charts = np.empty((*z.shape[:-1], len(STATISTICS)))
        charts[..., :_NUMBERS] = np.maximum(self.up, self.down)
        charts[..., _NUMBERS] = np.sum(far * far / (0.5 * law.shares + 0.5 / far.shape[-1]), axis=-1)
        charts[..., _NUMBERS + 1] = self.mix.level(law.mix)
        return charts


class _Block(NamedTuple):
    """A block, or many: means (..., 3), shares of centroids (..., K), of kinds (..., B), of groups of them (..., M)."""

    means: Floats
    shares: Floats
    kinds: Floats
    groups: Floats


@dataclass(frozen=True, slots=True)
class _Law:
    """What blocks are held against: mean and deviation of their means, (..., 3), shares of centroids, (..., K), mix."""

    mean: Floats
    deviation: Floats
    shares: Floats
    mix: MixLaw

    def start(self) -> _Charts:
        """Return charts at rest."""
        zero = np.zeros_like(self.mean)
        return _Charts(zero, zero.copy(), self.shares.copy(), MixCharts.start(self.mix), self.mean.copy())


class DriftWatch:
    """Watches the decisions of one routing table; threads may share it.

    Parameters
    ----------
    reference
        Calibration requests as the table sees them.
    tau
        Width of the band.
    horizon
        Requests in which a false alarm is to be rare.
    false_alarms
        Share of runs of `horizon` requests in which there may be one.
    seed
        Of the streams by which thresholds are set.
    """

    def __init__(
        self,
        reference: DriftReference,
        tau: float,
        *,
        horizon: int = 10_000,
        false_alarms: float = 0.005,
        seed: int = 0,
    ) -> None:
        whole("horizon", horizon, BLOCK)
        whole("seed", seed, 0)
        if not 1 / _STREAMS < false_alarms < 1:
            raise InputError(f"false_alarms is {false_alarms!r}; expected a share between {1 / _STREAMS:g} and 1")
        values, nearest = features(reference, tau)
        cosines = reference.cosines.astype(np.float64)
        self._places = cosines.shape[1]
        self._kinds = kinds = centroid_kinds(cosines)
        shares = np.bincount(nearest, minlength=self._places) / len(nearest)
        self._groups = centroid_groups(cosines @ (kinds / kinds.sum(axis=0)), shares @ kinds).astype(np.float64)
        self._law, self.thresholds = _thresholds(values, nearest, kinds, self._groups, horizon, false_alarms, seed)
        self._expected = values.mean(axis=0)
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Begin anew, without an alarm."""
        with self._lock:
            self._pending: list[tuple[float, int, float, int]] = []
            self._charts = self._law.start()
            self._levels = np.zeros(len(STATISTICS))
            self._blocks = 0
            self._alarm: Alarm | None = None

    def observe(self, similarity: float, within: int, strange: float, nearest: int) -> None:
        """Take one decision in.

        Parameters
        ----------
        similarity
            Cosine to the nearest centroid.
        within
            Workers whose centroids are within tau of it, open or not.
        strange
            Share of choices at experts that no calibration request used.
        nearest
            The centroid.
        """
        pending = self._pending
        pending.append((similarity, within, strange, nearest))
        if len(pending) >= BLOCK:
            self._take(pending)

    def _take(self, pending: list[tuple[float, int, float, int]]) -> None:
        """Take whole blocks in; of several threads that come at once one does it."""
        with self._lock:
            while len(pending) >= BLOCK:
                rows = np.array(pending[:BLOCK], dtype=np.float64)
                del pending[:BLOCK]  # what others append meanwhile stands behind
                rows[:, 1] = np.log(np.maximum(rows[:, 1], 1.0))
                shares = np.bincount(rows[:, 3].astype(np.int64), minlength=self._places) / BLOCK
                kinds, means = shares @ self._kinds, rows[:, :_NUMBERS].mean(axis=0)
                block = _Block(means, shares, kinds, kinds @ self._groups)
                charts = self._charts
                self._levels = charts.advance(self._law, block) / self.thresholds
                charts.means = (1 - WEIGHT) * charts.means + WEIGHT * means
                self._blocks += 1
                if self._alarm is None and self._levels.max() >= 1.0:
                    worst = int(self._levels.argmax())
                    self._alarm = Alarm(STATISTICS[worst], self._blocks * BLOCK, float(self._levels[worst]))

    @property
    def alarm(self) -> Alarm | None:
        """The first alarm; None where there was none."""
        return self._alarm

    def reading(self) -> DriftReading:
        """Return what is known."""
        with self._lock:
            similarity, band, strange = self._charts.means.tolist()
            first, second, third = self._expected.tolist()
            return DriftReading(
                self._blocks * BLOCK + len(self._pending),
                similarity,
                float(np.exp(band)),
                strange,
                (first, float(np.exp(second)), third),
                dict(zip(STATISTICS, self._levels.tolist(), strict=True)),
                self._alarm,
            )


def features(reference: DriftReference, tau: float) -> tuple[Floats, NDArray[np.int64]]:
    """Return what is watched of calibration requests: numbers, float64 (N, 3), and nearest centroids, int64 (N,)."""
    cosines = reference.cosines.astype(np.float64)
    greatest = cosines.max(axis=1)
    within = (cosines >= greatest[:, np.newaxis] - tau).sum(axis=1)
    return np.column_stack([greatest, np.log(within), reference.strange]), cosines.argmax(axis=1).astype(np.int64)


def _law(values: Floats, squares: Floats, shares: Floats, mix: MixLaw) -> _Law:
    """Return the law of means, mean squares, shares of centroids and mix."""
    spread = np.sqrt(np.maximum(squares - values * values, 0.0))
    return _Law(values, np.maximum(spread, _LEAST_SPREAD) / np.sqrt(BLOCK), shares, mix)


def _thresholds(
    values: Floats,
    nearest: NDArray[np.int64],
    kinds: Floats,
    groups: Floats,
    horizon: int,
    false_alarms: float,
    seed: int,
) -> tuple[_Law, Floats]:
    """Return the law of calibration requests and the threshold of each chart.

    Parameters
    ----------
    values
        float64 (N, 3), the numbers that are watched.
    nearest
        int64 (N,), the nearest centroid of each request.
    kinds, groups
        float64 (K, B) and (B, M), 1 where a centroid is of a kind, and a kind in a group.
    horizon, false_alarms, seed
        As of `DriftWatch`.
    """
    rng = np.random.default_rng(seed)
    N, K = len(values), len(kinds)
    picks = rng.integers(N, size=(_BLOCKS, BLOCK))
    squares = (values[picks] ** 2).mean(axis=1)
    flat = (nearest[picks] + K * np.arange(_BLOCKS)[:, np.newaxis]).ravel()
    shares = np.bincount(flat, minlength=_BLOCKS * K).reshape(_BLOCKS, K) / BLOCK
    pool = _Block(values[picks].mean(axis=1), shares, shares @ kinds, shares @ kinds @ groups)
    own = np.bincount(nearest, minlength=K) / N
    estimated = min(max(N // (_LESS_SURE * BLOCK), 1), _MOST_ESTIMATED)  # blocks
    known = max(N // _LESS_SURE_OF_KINDS, 1)
    greatest = np.zeros((_STREAMS, len(STATISTICS)))
    of_each = np.zeros((_STREAMS, groups.shape[1] + 1))
    for start in range(0, _STREAMS, _TOGETHER):
        some = slice(start, start + _TOGETHER)
        told = [np.zeros((_TOGETHER, width)) for width in (_NUMBERS, _NUMBERS, K)]
        for _ in range(estimated):
            drawn = rng.integers(_BLOCKS, size=_TOGETHER)
            for total, of_blocks in zip(told, (pool.means, squares, shares), strict=True):
                total += of_blocks[drawn]
        mix = mix_law(rng.multinomial(known, own @ kinds, size=_TOGETHER) / known, groups, known)
        law = _law(told[0] / estimated, told[1] / estimated, told[2] / estimated, mix)
        charts = law.start()
        for _ in range(-(-horizon // BLOCK)):
            drawn = rng.integers(_BLOCKS, size=_TOGETHER)
            found = charts.advance(law, _Block(*(part[drawn] for part in pool)))
            np.maximum(greatest[some], found, out=greatest[some])
            np.maximum(of_each[some], charts.mix.sums, out=of_each[some])
    scale = np.maximum(np.quantile(of_each, _USUAL, axis=0), _LEAST_SCALE)
    greatest[:, _NUMBERS + 1] = (of_each / scale).max(axis=1)
    wanted = [np.quantile(greatest[:, j], 1.0 - part * false_alarms) for j, part in enumerate(_PARTS)]
    mix = mix_law(own @ kinds, groups, N)._replace(scale=scale)
    law = _law(values.mean(axis=0), (values**2).mean(axis=0), own, mix)
    return law, np.maximum(wanted, _LEAST_THRESHOLDS)
