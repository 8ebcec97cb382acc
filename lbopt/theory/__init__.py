"""The theory, checked: laws, chains and single steps, claims by their number in the papers, verdicts.

`laws` are closed forms and what is computed without sampling, `chains` are run for a while, `steps` are single small
ones. A claim (`claim`, one statement or family a file in `claims`, all in `ledger`) is measured with them and returns
findings, from which the verdict follows.
"""
