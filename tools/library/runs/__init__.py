"""Whole small runs that are bad for rules: the search for them, and the exact optima that it needs."""
