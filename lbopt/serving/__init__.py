"""Serving: the rules of lbopt, deciding live between clients and unmodified engines.

`state` is what the router knows, pure and synchronous; `rule` lets any policy decide on it; `router` is the HTTP
service; `record` is what it writes down, and how that is read back. `mock` is a fleet of engines that compute nothing,
`load` sends requests to either. aiohttp and prometheus-client are imported on use and in this room alone, so that
everything else works without the extra ``lbopt[serve]``.

Source: BalanceRoute (arXiv 2605.06113), section 5 and appendix D.
"""
