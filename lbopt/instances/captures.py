"""A capture of calibration requests as a trace: real prompts with the experts that they use.

A capture knows prompts and experts, and not how long answers are or when requests come: every answer is taken to be
512 tokens, as in ELDR's runs, and a closed loop needs no times. Requests are in the order of the file.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from lbopt.instances.families.experts import OUTPUT_TOKENS
from lbopt.instances.readers import Reading
from lbopt.model import RequestExperts, Trace

SUFFIX = ".npz"


def read_capture_trace(path: Path) -> Reading:
    """Return the requests of a capture."""
    from lbopt.locality import read_capture  # compiled code is imported when a capture is read, not when a trace is

    capture = read_capture(path)
    N = len(capture.counts)
    trace = Trace(
        prompt=capture.counts[:, 0].sum(axis=1) // capture.experts_per_token,
        output=np.full(N, OUTPUT_TOKENS),
        name=path.stem,
        experts=RequestExperts(
            chosen=capture.counts,
            decode=np.clip(capture.decode, 0, 1).astype(np.float32),  # a capture may be off by rounding
            domain=np.zeros(N, dtype=np.int64) if capture.domain is None else capture.domain,
            profile=np.arange(N),
            gate_prob=capture.gate_prob,
            model=capture.model,
        ),
    )
    return Reading(trace=trace, format="capture")
