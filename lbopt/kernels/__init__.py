"""All compiled code of lbopt: arrays and scalars in, arrays out; imports nothing else of the package.

Kernels use the paper's letters (G, B, U, k) where words would hide the formula. Every kernel works uncompiled under
``NUMBA_DISABLE_JIT=1``; ``tests/rules/kernel_twins.toml`` names what checks each module: a slow twin that was written
from the definition alone, or an exhaustive check.
"""
