"""Items of the staggering study that only its page of results needs; `items` registers them."""
