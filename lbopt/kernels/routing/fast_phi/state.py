"""The records of fast-phi."""

from __future__ import annotations

from typing import NamedTuple

from lbopt.kernels.arrays import Floats, Ints


class Board(NamedTuple):
    """What the workers are expected to hold; changed as placements change it."""

    nodes: Ints  # int64 (K,), steps ahead, ascending from 0
    load: Floats  # float64 (K, G), expected tokens
    peak: Floats  # float64 (K,), their largest over the workers
    tokens: Ints  # int64 (G,), tokens held and queued now
    requests: Ints  # int64 (G,), requests running and queued now
    cost: Floats  # float64 (G,), of the request placed last; tokens times steps


class Law(NamedTuple):
    """How long a request is expected to run, float64 (K,) each."""

    coefficient: Floats  # weight times survival at each node
    alive: Floats  # survival


class How(NamedTuple):
    """How costs are reckoned and ties broken."""

    drift: float  # lambda, per token; by the mean load of the node where `by_mean`
    by_mean: bool
    growth: int  # 1: a request grows by a token a step; 0: it stays as it is
    by_load: bool  # ties go to the fewest tokens; else to the lowest number


class Entries(NamedTuple):
    """Running requests, each alone or several alike of one worker together; int64 (A,) each."""

    worker: Ints
    size: Ints  # tokens that they hold together
    members: Ints  # how many they are
    age: Ints  # tokens that each has made
    bucket: Ints  # of samples
