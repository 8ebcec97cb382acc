"""The theory's chains: slots that end with probability p in every step, refilled at once (BF-IO, sections 3 to 5)."""
