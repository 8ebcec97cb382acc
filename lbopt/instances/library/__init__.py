"""The instance library: packaged step problems with a pedigree, to race against known optima and bounds.

    from lbopt.instances import library

    for name in library.names("tiny"):
        entry = library.load(name)
        print(name, entry.problem, entry.best, entry.bound)

``python -m tools.library`` of a checkout draws the problems from their recipes and writes what is known of them.
Beside them are whole small runs that are bad for a rule: `run_names` and `load_run`, see `runs`.
"""

from lbopt.instances.library.collection import KINDS, StoredRun, certificate, load, load_run, names, run_names
from lbopt.instances.library.entry import Entry, Origin, Record

__all__ = ["KINDS", "Entry", "Origin", "Record", "StoredRun", "certificate", "load", "load_run", "names", "run_names"]
