"""The upkeep of the instance library: draw its problems, solve them, and never forget what was known.

``python -m tools.library`` does it for the whole library, ``python -m tools.library.adversarial`` and
``python -m tools.library.hardest_steps`` search for problems that are bad for rules, bounds and the exact search.
"""
