"""Numbers by which the compiled prefill simulation knows its dispatch policies, allocation rules and engines."""

# dispatch: bound on arrival ...
RANDOM = 0
ROUND_ROBIN = 1
JSQ = 2  # fewest requests sent and not finished
JSQ_TOKENS = 3  # fewest tokens sent and not computed
LAST_IMMEDIATE = JSQ_TOKENS
# ... or all wait together
POOLED = 4  # the instance that has been free the longest takes the queue
SPACING = 5  # ready AND so long since the last dispatch
TICK = 6  # ready AND a tick of the clock has passed
ANTICIPATING = 7  # the instance whose pass is predicted to end the soonest, before it ends

# allocation to the units of the chosen instance
IN_TURN = 0
LEAST_LOADED = 1  # fewest tokens sent and not computed
LONGEST_FIRST = 2  # the same, the longest prompt of the batch first
PBAA = 3  # Algorithm 2 of SBS, which chooses from the whole queue
BACKFILL = 4  # the oldest that fit, then who is short enough for what is left free

#: What a rule writes instead of a unit.
KEEP = -1  # it waits at the scheduler for the next dispatch
REFUSE = -2

# engines
WORK_CONSERVING = 0  # an idle instance starts when somebody is there
BACK_TO_BACK = 1  # a pass starts when one ends, even with nobody in it

#: Of an instance's pass to come, where batches are sent ahead: it takes a batch; nobody; nobody until somebody arrives;
#: those who fit beside its batch.
OPEN, CLOSED, FULL, TOPPED_UP = range(4)
#: Factor on the margin where the queue fills the pass.
FILLED = 1.5
#: s. A batch that is sent for the very end of a pass could miss it by the rounding of a sum.
LEAST_MARGIN = 2.0**-10

#: A limit that nobody reaches; 4096 units of it still fit into 63 bits.
NO_LIMIT = 2**50
