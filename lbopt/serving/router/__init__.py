"""The router: an HTTP service between clients and unmodified engines that speak OpenAI's API.

`service` holds the parts together; `handlers` are the doors to clients, `operators` those to operators. A request goes
through `ask` (what is read of its body), the pool of `lbopt.serving.state`, `dispatcher` (one round of the rule when
there is a request to place and a slot to fill) and `forward` (one attempt at one engine, bytes passed on untouched).
`poller` looks after the engines' health; `prefill` is the first hop where prefill and decode are apart.
"""
