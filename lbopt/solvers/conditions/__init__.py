"""Problems under conditions (`lbopt.model.Conditions`): their greedy decisions, and lbopt's own search for them.

What is known of a goal or of the objective is a value and a lower bound for it, which holds among the decisions that
are as good in all that comes before (`lbopt.solvers.engine.Known`).
"""
