"""The instance library: packaged step problems with a pedigree, to race against known optima and bounds.

    from lbopt.instances import library

    for name in library.names("tiny"):
        entry = library.load(name)
        print(name, entry.problem, entry.best, entry.bound)

The problems come from the recipes in `recipes/`; ``python -m lbopt.studies.library`` writes what is known of them.
"""

from lbopt.instances.library.collection import KINDS, certificate, load, names
from lbopt.instances.library.entry import Entry, Origin
from lbopt.instances.library.record import Record

__all__ = ["KINDS", "Entry", "Origin", "Record", "certificate", "load", "names"]
