"""The decode step of a model with experts, timed on an NVIDIA GPU: ``python -m tools.expert_step``.

Its layers of experts by active ones, everything else, and the head, with kernels of its own. What was measured so
stands in the package as constants of the step time `experts` (``h100-measured`` of ``lbopt study locality``).
"""
