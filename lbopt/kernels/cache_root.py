"""Where compiled kernels are kept, before anybody asks whether that folder can be written. Imports no Numba."""

from __future__ import annotations

import os
from pathlib import Path


def cache_root() -> Path:
    """Return ``NUMBA_CACHE_DIR``, or the folder ``kernels`` in ``LBOPT_CACHE`` or in the user's cache folder."""
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(named)
    if named := os.environ.get("LBOPT_CACHE"):
        return Path(named) / "kernels"
    import platformdirs

    return Path(platformdirs.user_cache_dir("lbopt")) / "kernels"
