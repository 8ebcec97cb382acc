"""What the study asks, a module each: `measure` answers one part of it for one seed, as rows.

Arguments are those of the parts in `study`: `place` names a configuration of `PLACES`, `instances` is N, `requests` are
of an instance, `contender` and `against` name rules. `version` is part of the key of a task, and not used otherwise.
"""
