"""What a search knows after a fixed amount of work is what it knew when this was frozen, compiled or not.

After a change of the search that is meant: `python -m tests.frozen.regenerate search-states`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from frozen import searches

KEPT = json.loads((Path(__file__).with_name("data") / "search_states.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", searches.CASES)
def test_a_search_goes_the_same_way(name):
    for at, now in enumerate(searches.states(name)):
        assert now == KEPT[name][at], f"look {at}"
    assert at == len(KEPT[name]) - 1
