"""An open-loop load generator: requests of a trace are sent at their own times, however slowly answers come."""
