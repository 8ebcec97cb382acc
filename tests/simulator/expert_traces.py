"""Small traces whose requests use experts."""

import numpy as np

from lbopt.model import RequestExperts, Trace


def expert_trace(seed=0, count=40, profiles=7, layers=2, experts=6, k=2, longest=9, rate=30.0):
    rng = np.random.default_rng(seed)
    prompt = rng.integers(1, 30, profiles)
    picked = rng.random((profiles, layers, experts)).argsort(axis=2) < k
    decode = np.clip(picked * 0.7 + rng.random(picked.shape) * 0.3, 0, 1)
    decode[0, 0, 0] = 1.0  # always
    profile = rng.integers(0, profiles, count)
    return Trace(
        prompt=prompt[profile],
        output=rng.integers(1, longest, count),
        arrival=np.cumsum(rng.exponential(1 / rate, count)),
        experts=RequestExperts(
            chosen=picked * prompt[:, None, None], decode=decode, domain=rng.integers(0, 3, profiles), profile=profile
        ),
    )
