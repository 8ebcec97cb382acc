"""Fast-Phi: by how much a request is expected to lift the straggler over its whole life, worker by worker.

    cost of worker g  =  sum_h S(h) max(0, s + h - m_g(h)),        m_g(h) = max_g' L_g'(h) - L_g(h)

S is the survival of the request's output length, L_g(h) the load that is expected on worker g in h steps. The sum is
taken over every step or, in the published form, at K nodes with quadrature weights (J. Li, *The EP Barrier Tax*, 2026).

* `state`: records;
* `survival`: curves as arrays;
* `quadrature`: nodes and weights;
* `projection`: expected loads at the nodes;
* `route`: the costs of one request, the worker of least cost, and the projection after it is placed.
"""
