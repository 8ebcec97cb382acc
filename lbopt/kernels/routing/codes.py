"""Numbers by which the compiled loop knows the compiled rules, and the places of their parameters.

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

#: Every rule gets a parameter array of this length; what the entries mean is the rule's own affair.
NUM_PARAMETERS = 8

# max-min
MAX_MIN_WHOLE_POOL = 0  # 1: the U largest of the pool; 0: the oldest U

# br-0
BR_STAGE_SWITCH = 0  # stage 1 runs while more than this many slots are free
BR_WINDOW_SIZE = 1  # R_max
BR_WINDOW_BY_ARRIVAL = 2  # 0: largest first, 1: pool order
BR_KEY_PRODUCT = 3  # 0: lexicographic (slots, margin), 1: slots * margin
BR_AGE_BOUND = 4  # steps after which a request is placed before the stages; -1 = never

# iqr
IQR_THOUSANDTHS = 0  # the multiplier k, in thousandths
IQR_PERCENTILE = 1  # one of the following
PERCENTILE_LINEAR = 0  # NumPy's default, type 7
PERCENTILE_LOWER = 1
PERCENTILE_HIGHER = 2
PERCENTILE_NEAREST = 3
PERCENTILE_WEIBULL = 4  # type 6

# br-0-bypass
BYPASS_OVERBOOKING = 0  # requests that a worker may hold beyond its slots; -1 = any number
BYPASS_TIES_BY_NUMBER = 1  # 0: equal F goes to the lighter worker, 1: to the lower number

# band
BAND_WIDTH = 0  # in units of BAND_UNIT
BAND_UNIT = 1e-9

#: Largest stage-2 window that subset enumeration accepts (2**16 subsets a pop).
LARGEST_WINDOW = 16
