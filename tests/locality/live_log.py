"""Threads that use one live router, the log of what they did, and its replay by naive decisions, one by one."""

import math
import threading

import numpy as np

from lbopt.kernels.routing.band import TOLERANCE
from lbopt.locality import RoutingTable
from lbopt.locality.gate import MoEShape

NAMES = tuple("abcdefgh")
TAU = 0.08


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def similarities(row, centroids):
    """Cosines of one request's cells, flat, to unit centroids."""
    length = math.sqrt(math.fsum(x * x for x in row))
    return [math.fsum(x * c for x, c in zip(row, centre, strict=True)) / length for centre in centroids]


def tables(seed=0, requests=60, L=2, E=16, K=8):
    """Two tables of the same workers in another order, and requests with their naive cosines to both."""
    rng = np.random.default_rng(seed)
    counts = rng.poisson(rng.gamma(0.3, 20, size=(requests, L, E))).astype(np.int64) + 1
    rows = counts.reshape(requests, -1).astype(float)
    made = []
    for names in (NAMES[:K], NAMES[:K][::-1]):
        centroids = unit(rows[rng.permutation(requests)[:K]] + 3 * rng.random((K, L * E)))
        made.append(RoutingTable("", MoEShape(L, E, 1), "count", None, np.arange(L), centroids, workers=names))
    near = [[similarities(row.tolist(), t.centroids.tolist()) for row in rows] for t in made]
    for table, found in zip(made, near, strict=True):
        assert np.allclose(table.similarities(counts), found, rtol=0, atol=1e-12)
        edge = np.abs(np.max(found, axis=1)[:, None] - TAU - TOLERANCE - np.array(found))
        assert edge.min() > 1e-9  # nobody is at the edge of a band, where rounding would decide
    return made, counts, near


def workers_of(table):
    return {name: k for k, name in enumerate(table.names)}


def replay(log, near, made, first=0):
    """Replay changes in the order of their versions, one by one, and return how many decisions are not the naive ones.

    A row is (version, kind, ...): ("begin", request, worker), ("end", version of its decision), ("open", worker, yes)
    or ("table", number).
    """
    log = sorted(log)
    assert [row[0] for row in log] == list(range(1, len(log) + 1)), "versions without gap or double"
    table, load, is_open, at = first, dict.fromkeys(NAMES, 0), dict.fromkeys(NAMES, True), {}
    wrong, places = 0, [workers_of(one) for one in made]
    for version, kind, *what in log:
        if kind == "begin":
            request, worker = what
            place = places[table]
            s = {w: near[table][request][place[w]] for w in NAMES if is_open[w]}
            floor = max(s.values()) - TAU - TOLERANCE
            band = [w for w in s if s[w] >= floor]
            best = min(band, key=lambda w: (load[w], -s[w], place[w]))
            wrong += best != worker
            load[worker] += 1
            at[version] = worker
        elif kind == "end":
            load[at.pop(what[0])] -= 1
        elif kind == "open":
            is_open[what[0]] = what[1]
        else:
            table = what[0]
    return wrong, load


def run_threads(router, made, counts, threads, decisions, seed=0, changes=True):
    """Let threads begin and end requests at once, and others change the fleet meanwhile; returns the log."""
    log, errors, ready = [], [], threading.Barrier(threads + changes)

    def serve(thread):
        rng = np.random.default_rng((seed, thread))
        own, live = [], []
        ready.wait()
        try:
            for request in rng.integers(len(counts), size=decisions).tolist():
                placed = router.begin(counts[request])
                own.append((placed.ticket, "begin", request, placed.worker))
                live.append(placed.ticket)
                if len(live) > 5:
                    ticket = live.pop(int(rng.integers(len(live))))
                    version = router.end(ticket)
                    assert version and router.end(ticket) == 0
                    own.append((version, "end", ticket))
            own += [(router.end(ticket), "end", ticket) for ticket in live]
        except BaseException as error:
            errors.append(error)
        log.extend(own)

    def change():
        rng, done, table = np.random.default_rng((seed, 99)), 0, 0
        ready.wait()
        while any(worker.is_alive() for worker in workers) and done < 4000:
            name = NAMES[int(rng.integers(1, 8))]
            log.append((router.set_open(name, False), "open", name, False))
            table = 1 - table
            log.append((router.reload(made[table]), "table", table))
            log.append((router.set_open(name, True), "open", name, True))
            done += 1

    workers = [threading.Thread(target=serve, args=(n,)) for n in range(threads)]
    changer = threading.Thread(target=change) if changes else None
    for thread in [*workers, *([changer] if changer else [])]:
        thread.start()
    for thread in [*workers, *([changer] if changer else [])]:
        thread.join()
    assert errors == []
    return log
