"""All requests are admitted, and the largest load is minimised: balanced multiway number partitioning.

The driver, which calls these kernels in slices, is `lbopt.solvers.exact.balance`. A cluster that starts cold, or a
queue no longer than the free slots, leaves no choice of whom to admit, and cost and largest load are one question. Real
sizes are so many and so close that the mean, rounded up, can nearly always be reached; these kernels find how.
"""
