"""All compiled code of lbopt: arrays and scalars in, arrays out; imports nothing else of the package.

Kernels use the paper's letters (G, B, U, k) where words would hide the formula. Every kernel has a slow twin in
``tests/naive`` that was written from the definition alone, and works uncompiled under ``NUMBA_DISABLE_JIT=1``.
"""
