"""The gap study of the prefill side: how far are allocation rules from the best placement of the batches of a run?

`run_batches` goes through stages that can each be read alone: `sampling` (where the batches come from) and `judging`
(what the best of each is, and what the rules make of it).
"""

from lbopt.studies.batches.study import BatchesConfig, BatchesOutcome, BatchGap, JudgedBatch, SampledBatch, run_batches

__all__ = [
    "BatchGap",
    "BatchesConfig",
    "BatchesOutcome",
    "JudgedBatch",
    "SampledBatch",
    "run_batches",
]
