"""Compiled routing rules.

All pooled rules share one form. They see the pool as request numbers in order of revelation, write the chosen worker
of the request at each pool position into `choice` (-1 = keeps waiting), and return how many leading positions they
filled; positions from there on were not looked at. `load` and `free` are scratch copies that a rule may change.
Ties go to the lowest worker and to the earliest request unless a rule says otherwise.
"""
