"""Texts of a column as numbers of the distinct ones.

NumPy's arrays of texts take the room of the longest one in every row, and lose a NUL at an end.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def coded(texts: Sequence[str]) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct texts in order, and int64 (N,), the place of each text among them."""
    names = sorted(set(texts))
    place = {name: code for code, name in enumerate(names)}
    return names, np.fromiter((place[text] for text in texts), dtype=np.int64, count=len(texts))
