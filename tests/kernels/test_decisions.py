"""From requests to size classes and back, and the cheap first assignments, beside what their definitions say."""

import random
from collections import Counter

import numpy as np
import pytest

from lbopt.kernels.search.decision import choose, extreme_tokens, hand_out, longest_first
from lbopt.model import StepProblem, objective
from lbopt.solvers.exact.decision import Decision


def problems(count: int):
    """Steps of up to nine requests, with requests of size 0, equal sizes, forced ones and closed workers."""
    rng = random.Random(20)
    while count:
        slots = [rng.randint(0, 3) for _ in range(rng.randint(1, 4))]
        sizes = [rng.choice([0, 1, 2, rng.randint(0, 30)]) for _ in range(rng.randint(1, 9))]
        forced = rng.randint(0, min(len(sizes), sum(slots))) if rng.random() < 0.5 else 0
        must = [i < forced for i in range(len(sizes))]
        rng.shuffle(must)
        if sum(slots):
            count -= 1
            yield StepProblem.now([rng.randint(0, 20) for _ in slots], slots, sizes, must_admit=must)


def test_classes_are_the_sizes_with_their_requests():
    """Forced requests are a class of their own, after the others of their size."""
    for problem in problems(200):
        decision = Decision(problem)
        step = decision.step
        found = zip(step.v.tolist(), (step.floor < 0).tolist(), step.n.tolist(), strict=True)
        forced = decision.must if decision.forced else np.zeros_like(decision.must)
        waiting = Counter(zip(decision.sizes.tolist(), (forced == 1).tolist(), strict=True))
        if decision.forced or not decision.must.any():
            assert list(found) == [(*kind, count) for kind, count in sorted(waiting.items())]
        else:  # all are admitted: nobody has to be forced, but the classes are still apart
            assert sum(count for *_, count in found) == decision.sizes.size
            assert step.v.tolist() == sorted(step.v.tolist())


def test_what_a_worker_takes_of_a_class_goes_to_the_first_of_it():
    rng = random.Random(21)
    for problem in problems(200):
        decision = Decision(problem)
        step = decision.step
        _, cost = decision.first_assignment()
        search = decision.start(cost)
        requests = [k for k, copies in enumerate(step.n.tolist()) for _ in range(copies)]
        rng.shuffle(requests)
        for w, c in enumerate(step.slots.tolist()):
            search.answer[w, :c] = [requests.pop() for _ in range(c)]
        placed = decision.handed_out(search).tolist()
        of_class: dict[int, list[int]] = {}
        places = iter(decision.order.tolist())
        for k, copies in enumerate(step.n.tolist()):
            of_class[k] = [next(places) for _ in range(copies)]
        expected = [-1] * problem.num_requests
        for w in np.argsort(decision.workers):  # the lowest worker comes first
            for k in search.answer[w, : step.slots[w]].tolist():
                i = of_class[k].pop(0)
                if i < len(expected):
                    expected[i] = int(decision.workers[w])
        assert placed == expected


@pytest.mark.parametrize("wrong", [-1, 1])
def test_an_answer_with_requests_that_do_not_exist_is_refused(wrong):
    """No class at all, and one request more than the last class has."""
    decision = Decision(StepProblem.now([0], [2], [5, 7]))
    answer = np.array([[1, wrong]])
    assert not hand_out(decision.step, answer, decision.order, np.zeros(2, np.int64), np.zeros(1, np.int64), answer[0])


def test_first_assignments():
    """The requests that each rule admits, largest first, each on the lightest worker that has room."""
    for problem in problems(200):
        decision = Decision(problem)
        sizes, must, slots = decision.sizes.tolist(), decision.must.tolist(), problem.slots.tolist()
        order, admitted = decision.order.tolist(), decision.admitted
        most = []
        for rule, preferred in enumerate((range(len(sizes)), order[::-1], order)):
            taken = [i for i in range(len(sizes)) if must[i]]
            taken += [i for i in preferred if not must[i]][: admitted - len(taken)]
            taken.sort(key=order.index, reverse=True)
            chosen, flags = np.zeros(admitted, np.int64), np.zeros(len(sizes), np.int64)
            choose(decision.order, decision.must, admitted, rule, flags, chosen)
            assert chosen.tolist() == taken
            most.append(sum(sizes[i] for i in taken))
            loads, room, placed = problem.base[:, 0].tolist(), list(slots), [-1] * len(sizes)
            for i in taken:
                g = min((g for g in range(len(loads)) if room[g]), key=loads.__getitem__)
                loads[g], room[g], placed[i] = loads[g] + sizes[i], room[g] - 1, g
            assignment = np.zeros(len(sizes), np.int64)
            scratch = np.zeros((2, len(loads)), np.int64)
            cost = longest_first(decision.loads, decision.slots, decision.sizes, chosen, assignment, *scratch)
            assert assignment.tolist() == placed
            assert cost == objective(problem, assignment[: problem.num_requests])
        numbers = (decision.sizes, decision.must, decision.order, admitted)
        assert extreme_tokens(*numbers, True) == most[1] == decision.step.most
        assert extreme_tokens(*numbers, False) == most[2] == decision.step.least
