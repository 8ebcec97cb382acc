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
TENSORRT_LLM = 13
AUTO = 14

#: From here on: rules of serving engines that take the worker of least score, see `least_score`.
FIRST_BY_SCORE = 15
VLLM_2026 = 15
SGLANG = 16
TPU_INFERENCE = 17
SMG = 18
DYNAMO = 19
LLM_D = 20
LMDEPLOY = 21
LIGHTLLM = 22
VLLM_ASCEND = 23

# iqr: which percentile Q1 and Q3 are
PERCENTILE_LINEAR = 0  # NumPy's default, type 7
PERCENTILE_LOWER = 1
PERCENTILE_HIGHER = 2
PERCENTILE_NEAREST = 3
PERCENTILE_WEIBULL = 4  # type 6

#: Rules that go by what their front end has sent and has not ended, see `books`; those that count prompts there.
KEEPING_BOOKS = frozenset({VLLM_2026, LMDEPLOY, VLLM_ASCEND, DYNAMO, TENSORRT_LLM})
COUNTING_PROMPTS = frozenset({VLLM_ASCEND, DYNAMO, TENSORRT_LLM})

#: Tokens in a block of KV cache, as Dynamo counts them.
BLOCK = 16

#: Unit of the width of a band.
BAND_UNIT = 1e-9

#: Largest stage-2 window that subset enumeration accepts (2**16 subsets a pop).
LARGEST_WINDOW = 16
