"""Problems under conditions (`lbopt.model.Conditions`): their bounds, their exhaustion, and their integer programs.

A decision is an assignment and the running requests that pause. Decisions are compared by their rank: the goals in
their order, then the objective (`lbopt.model.objective.rank`). What is known of a goal or of the objective is a value
and a lower bound for it, which holds among the decisions that are as good in all that comes before.
"""
