"""Windows with departures: requests may end inside the window, so any work vectors and any number of waiting requests.

Bounds come from prices, and a tree on chain counts closes what is left. `windows` covers the faster case in which every
new request outlives the window.
"""
