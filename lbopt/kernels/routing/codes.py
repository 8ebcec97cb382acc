"""Numbers by which the compiled loop knows the compiled rules, and limits of their parameters.

One integer per rule instead of a function object, because a compiled loop that takes functions as arguments cannot
be cached on disk.
"""

#: The decision is made outside the compiled loop, which stops and asks.
EXTERNAL = 0
FCFS = 1
ROUND_ROBIN = 2
RANDOM = 3
POWER_OF_TWO = 4
JSQ = 5
JSQ_LOAD = 6
VLLM = 7
MAX_MIN = 8
BR_0 = 9
IQR = 10
BR_0_BYPASS = 11
BAND = 12

# iqr: which percentile Q1 and Q3 are
PERCENTILE_LINEAR = 0  # NumPy's default, type 7
PERCENTILE_LOWER = 1
PERCENTILE_HIGHER = 2
PERCENTILE_NEAREST = 3
PERCENTILE_WEIBULL = 4  # type 6

#: Unit of the width of a band.
BAND_UNIT = 1e-9

#: Largest stage-2 window that subset enumeration accepts (2**16 subsets a pop).
LARGEST_WINDOW = 16
