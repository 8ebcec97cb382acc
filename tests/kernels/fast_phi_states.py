"""States for fast-phi, as the twin sees them and as an observation shows them."""

import numpy as np
from naive.fast_phi import FastPhiOptions, FastPhiState

from lbopt.policies import ActiveRequests, Observation
from lbopt.predictors import Forecast
from lbopt.predictors.predictor import Samples


def samples_of(everybody, own):
    """Bucket 0 is everybody, the others are `own`, a list of lists."""
    buckets = [sorted(everybody), *[sorted(outputs) for outputs in own]]
    outputs = np.array([o for bucket in buckets for o in bucket], dtype=np.int64)
    starts = np.concatenate([[0], np.cumsum([len(bucket) for bucket in buckets])]).astype(np.int64)
    return Samples(outputs, starts, np.concatenate([[0], np.cumsum(outputs)]))


def observation_of(state: FastPhiState, samples: Samples | None = None, step: int = 0) -> Observation:
    """What the policy sees of `state`; `samples` where they are to be the same object as before."""
    G, running = state.num_workers, state.running
    own = [outputs for *_, outputs in running] + [outputs for _, outputs in state.waiting]
    given = [i for i, outputs in enumerate(own) if outputs]
    buckets = np.zeros(len(own), dtype=np.int64)
    buckets[given] = np.arange(1, len(given) + 1)
    if samples is None:
        samples = samples_of(state.everybody, [own[i] for i in given])
    worker, prompt, age = (np.array([r[j] for r in running], dtype=np.int64) for j in range(3))
    queued = np.array([g for g, *_ in state.queued], dtype=np.int64)
    tokens = [prompt for _, prompt, _ in state.queued]
    A, n = len(running), len(state.waiting)
    return Observation(
        step=step,
        clock=0.0,
        loads=np.bincount(worker, prompt + age, minlength=G).astype(np.int64),
        free_slots=np.full(G, 99) if state.free is None else state.free,
        running=np.bincount(worker, minlength=G),
        queued=np.bincount(queued, minlength=G),
        queued_tokens=np.bincount(queued, tokens, minlength=G).astype(np.int64),
        sizes=[size for size, _ in state.waiting],
        waited=np.zeros(n),
        requests=np.arange(n),
        active=ActiveRequests(worker, np.arange(A), prompt, age),
        forecast=Forecast(1, np.ones(A), np.ones(n), samples, buckets[:A], buckets[A:]),
    )


def random_state(rng, kind=None, largest=40):
    """Survival of everybody, memorised groups, or an oracle; ages beyond all samples, ties, queues, closed workers."""
    kind = kind or rng.choice(["survival", "survival", "memorised", "oracle"])
    G = rng.choice([1, 2, 2, 3, 4, 6])
    top = rng.choice([1, 3, 10, largest])

    def output():
        return rng.randint(1, top)

    groups = [[output() for _ in range(rng.randint(1, 4))] for _ in range(3)]

    def own(age=0):
        if kind == "memorised":
            return rng.choice([[], *groups])
        if kind == "oracle":  # some err, and are outlived
            return [output() + rng.choice([0, age])]
        return []

    size = rng.choice([lambda: rng.randint(0, 5), lambda: rng.randint(0, 200), lambda: 7])
    running = []
    for _ in range(rng.choice([0, 1, 4, 9])):
        age = rng.randint(0, top + 2)
        running.append((rng.randrange(G), size(), age, own(age)))
    return FastPhiState(
        num_workers=G,
        everybody=[] if kind == "oracle" else [output() for _ in range(rng.choice([1, 2, 5, 12]))],
        running=running,
        waiting=[(size(), own()) for _ in range(rng.choice([1, 1, 2, 4]))],
        queued=[(rng.randrange(G), size(), []) for _ in range(3)] if kind == "survival" and rng.random() < 0.4 else [],
        free=[rng.randint(0, 2) for _ in range(G)] if rng.random() < 0.4 else None,
    )


def random_options(rng):
    """Any value of every option, as lbopt's spec and as the twin's."""
    given = {
        "nodes": rng.choice(["all", 1, 2, 3, 5, 8, 50]),
        "rule": rng.choice(["published", "product"]),
        "percentile": rng.choice([100, 95, 50]),
        "ends": rng.choice(["plain", "corrected"]),
        "weights": rng.choice(["survival", "survival", "geometric"]),
        "gamma": rng.choice([1, 0.9, 0.5]),
        "drift": rng.choice([0, 0, 0.01, 1]),
        "drift_scale": rng.choice(["none", "mean"]),
        "ties": rng.choice(["load", "index"]),
        "longest": rng.choice(["none", "none", "mean", 0, 4, 60]),
        "growth": rng.choice(["yes", "yes", "no"]),
        "beyond": rng.choice(["stays", "leaves"]),
    }
    if given["weights"] == "survival":
        del given["gamma"]
    longest = given["longest"]
    return ",".join(f"{option}={value}" for option, value in given.items()), FastPhiOptions(
        nodes=0 if given["nodes"] == "all" else given["nodes"],
        rule=given["rule"],
        percentile=given["percentile"],
        corrected=given["ends"] == "corrected",
        gamma=given.get("gamma"),
        drift=given["drift"],
        drift_by_mean=given["drift_scale"] == "mean",
        ties_by_load=given["ties"] == "load",
        longest=None if longest == "none" else longest,
        growth=given["growth"] == "yes",
        stays=given["beyond"] == "stays",
    )
