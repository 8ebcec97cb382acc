"""The theory, checked: closed forms, claims by their number in the papers, Monte Carlo with intervals, verdicts."""
