"""Windows in which requests end: any work vectors, any number of waiting requests, proved by prices and branching."""
