"""A plugin of pytest for trials of mutants: Hypothesis draws the same examples each time, and shrinks none.

The first failure ends a trial, so that a small counterexample would be found for nobody.
"""

from __future__ import annotations

from hypothesis import Phase, settings


def pytest_configure() -> None:
    """Make it the profile that the settings of all tests start from; conftest.py has loaded its own before."""
    settings.register_profile(
        "mutation", deadline=None, database=None, derandomize=True, phases=[Phase.explicit, Phase.generate]
    )
    settings.load_profile("mutation")
