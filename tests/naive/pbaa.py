"""Algorithm 2 of staggered batch scheduling, line by line, on lists."""


def pbaa(headroom, length, hits=None, pending=None, printed=False, whole=False, chunk=None):
    """Return the unit of each request or None, and the headroom that is left (by the rule's own reckoning)."""
    room, unit = list(headroom), [None] * len(length)
    old = [r for r in range(len(length)) if pending is not None and pending[r]]
    for queue in (old, [r for r in range(len(length)) if r not in old]):
        for r in sorted(queue, key=lambda r: -length[r]):
            cost = [length[r] - (hits[r][d] if hits is not None else 0) for d in range(len(room))]
            fits = [
                room[d] > 0 and (not whole or cost[d] <= room[d] or room[d] >= chunk) for d in range(len(room))
            ]  # fmt: skip
            among = [d for d in range(len(room)) if printed or fits[d]]
            if not among:
                continue
            d = max(among, key=lambda d: (room[d] - cost[d], -d))
            if fits[d]:
                unit[r] = d
                room[d] -= cost[d]
    return unit, room
