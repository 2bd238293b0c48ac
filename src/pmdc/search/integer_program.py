"""The best DAG by the integer program (P2) of the paper, with SCIP.

One binary variable for each class variable and parent set, one convexity row for each class variable (it
takes exactly one set), and the cluster constraints: in each cluster of two or more class variables at least
one takes a set that has no member of the cluster. (The paper prints "> 1" where ">= 1" is meant: with "> 1"
no two class variables could be joined by an edge.) There are exponentially many of them, so a constraint
handler adds those that a solution violates.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt
from pyscipopt import SCIP_EVENTTYPE, SCIP_PARAMSETTING, SCIP_RESULT, Conshdlr, Eventhdlr, Model, quicksum
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from . import orders
from .problem import Outcome, Problem, is_acyclic, members
from .progress import Watch

# The solver has absolute tolerances, so regrets are scaled: that of the first DAG becomes this number.
_SCALE = 1e4

# A cluster constraint counts as violated from here on; the solver's own feasibility tolerance is 1e-6.
_VIOLATION = 1e-5

# The solver sees only the convexity rows, and few of its parts ask the handler whether there is more to a
# solution. Those that reason from the rows alone are off: symmetries, independent components, reductions.
_SETTINGS: dict[str, Any] = {
    "misc/usesymmetry": 0,
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
    "constraints/components/maxprerounds": 0,
    "constraints/components/propfreq": -1,
    "presolving/maxrestarts": 0,
    "misc/catchctrlc": False,
}

# New starts without a better DAG after which the local search gives way to the solver.
_PATIENCE = 100

_STATUS = {
    "optimal": "optimal",
    "timelimit": "time limit",
    "memlimit": "memory limit",
    "userinterrupt": "interrupted",
}


def solve(problem: Problem, first: Outcome, watch: Watch) -> Outcome:
    """The best DAG, or the best so far when the watch ends the search.

    A local search comes before: what it finds is often the best DAG already, and then it remains to prove it.
    """
    first = orders.solve(problem, first, watch, patience=_PATIENCE)
    if first.status != "unproved":
        return first
    model = Model()
    try:
        return _solve(model, problem, first, watch)
    finally:
        # The model and its handler refer to each other; free() ends SCIP and that circle at once.
        model.free()


def _solve(model: Model, problem: Problem, first: Outcome, watch: Watch) -> Outcome:
    most = problem.total_regret(first.ranks)
    model.hideOutput()
    model.setPresolve(SCIP_PARAMSETTING.OFF)
    model.setParams(_SETTINGS)

    # A set that alone loses more than the whole first DAG is in no best DAG. The sets are ranked, so what
    # remains are the first ones of each class variable; very low scores ("-1e30") never reach the solver.
    variables = [
        [model.addVar(vtype="B", obj=regret * _SCALE / most) for regret in row if regret <= most]
        for row in problem.regrets
    ]
    for row in variables:
        model.addCons(quicksum(row) == 1)
    handler = _Acyclicity(problem, variables)
    model.includeConshdlr(
        handler,
        "acyclicity",
        "cluster constraints, by shortest cycles",
        enfopriority=-1,  # after integrality: only whole-numbered solutions are enforced
        chckpriority=-1,
        sepafreq=1,
        maxprerounds=0,
        needscons=False,  # the handler itself is the one constraint
    )
    start = model.createSol()
    for row, rank in zip(variables, first.ranks, strict=True):
        model.setSolVal(start, row[rank], 1.0)
    model.addSol(start)

    observer = _Observer(problem, variables, first, most / _SCALE, watch)
    model.includeEventhdlr(observer, "observer", "better DAGs and bounds, and the wish to end")
    if watch.time_left() < math.inf:
        model.setParam("limits/time", max(0.0, watch.time_left()))
    model.setParam("limits/memory", watch.memory_budget / 2**20)
    model.optimize()

    status = model.getStatus()
    if status not in _STATUS:
        raise RuntimeError(f"the solver stopped with the unexpected status {status!r}")
    best = observer.best()
    if not is_acyclic([row[rank] for row, rank in zip(problem.masks, best.ranks, strict=True)]):
        raise RuntimeError("the solver accepted parent sets that form a cycle")
    if status == "optimal":
        return best._replace(least_regret=problem.total_regret(best.ranks), status="optimal")
    return best._replace(status=observer.reason or _STATUS[status])


class _Observer(Eventhdlr):
    """Tells the watch of better DAGs and bounds, and the solver when to end."""

    def __init__(self, problem: Problem, variables: list[list[Any]], first: Outcome, unit: float, watch: Watch) -> None:
        self.problem, self.variables, self.known, self.unit, self.watch = problem, variables, first, unit, watch
        self.reason = ""

    def best(self) -> Outcome:
        """The best DAG and bound so far; of equal ones the first."""
        if self.model.getNSols():
            best = self.model.getBestSol()
            ranks = [int(np.argmax([best[variable] for variable in row])) for row in self.variables]
            if self.problem.total_regret(ranks) < self.problem.total_regret(self.known.ranks):
                self.known = self.known._replace(ranks=ranks)
        least = max(self.known.least_regret, self.model.getDualbound() * self.unit)
        return self.known._replace(least_regret=min(least, self.problem.total_regret(self.known.ranks)))

    def eventinit(self) -> None:
        self.model.catchEvent(SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.LPEVENT | SCIP_EVENTTYPE.NODESOLVED, self)

    def eventexit(self) -> None:
        self.model.dropEvent(SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.LPEVENT | SCIP_EVENTTYPE.NODESOLVED, self)

    def eventexec(self, event: Any) -> dict[str, int]:
        if not self.reason:
            best = self.best()
            self.reason = self.watch.stop(best.ranks, best.least_regret)
            if self.reason:
                self.model.interruptSolve()
        return {}


class _Acyclicity(Conshdlr):
    """The cluster constraints, added when a solution violates them."""

    def __init__(self, problem: Problem, variables: list[list[Any]]) -> None:
        self.count = len(variables)
        self.columns = [
            (child, mask, members(mask), variable)
            for child, row in enumerate(variables)
            for mask, variable in zip(problem.masks[child], row, strict=False)
        ]
        self.by_child = [[column for column in self.columns if column[0] == child] for child in range(self.count)]

    def _edge_weights(self, solution: Any) -> npt.NDArray[np.float64]:
        """How much of each edge (parent, child) a solution takes; None is the solution of the node."""
        weights = np.zeros((self.count, self.count))
        value = self.model.getSolVal
        for child, _, parents, variable in self.columns:
            if parents and (taken := value(solution, variable)) > 0.0:
                weights[parents, child] += taken
        return weights

    def _terms(self, cluster: int) -> list[Any]:
        """The left side of the cluster constraint: its members' sets that have no member of it."""
        return [
            variable
            for child in members(cluster)
            for _, mask, _, variable in self.by_child[child]
            if not mask & cluster
        ]

    def _separate(self, otherwise: int, force: bool) -> dict[str, int]:
        """Add the cluster constraints that the LP solution violates, as cuts."""
        clusters = violated_clusters(self._edge_weights(None))
        for cluster in clusters:
            row = self.model.createEmptyRowUnspec("cluster", lhs=1.0, rhs=None, local=False)
            self.model.cacheRowExtensions(row)
            for variable in self._terms(cluster):
                self.model.addVarToRow(row, variable, 1.0)
            self.model.flushRowExtensions(row)
            infeasible = self.model.addCut(row, forcecut=force)
            self.model.releaseRow(row)
            if infeasible:
                return {"result": SCIP_RESULT.CUTOFF}
        return {"result": SCIP_RESULT.SEPARATED if clusters else otherwise}

    def conssepalp(self, constraints: Any, nusefulconss: int) -> dict[str, int]:
        return self._separate(SCIP_RESULT.DIDNOTFIND, force=False)

    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> dict[str, int]:
        return self._separate(SCIP_RESULT.FEASIBLE, force=True)

    def consenfops(
        self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool
    ) -> dict[str, int]:
        # Without an LP there are no cuts, so the constraints are added as rows of the problem.
        clusters = violated_clusters(self._edge_weights(None))
        for cluster in clusters:
            self.model.addCons(quicksum(self._terms(cluster)) >= 1)
        return {"result": SCIP_RESULT.CONSADDED if clusters else SCIP_RESULT.FEASIBLE}

    def conscheck(
        self,
        constraints: Any,
        solution: Any,
        checkintegrality: bool,
        checklprows: bool,
        printreason: bool,
        completely: bool,
    ) -> dict[str, int]:
        violated = violated_clusters(self._edge_weights(solution))
        return {"result": SCIP_RESULT.INFEASIBLE if violated else SCIP_RESULT.FEASIBLE}

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        # Rounding down may violate a cluster constraint; rounding up adds edges, which may close a cycle.
        locks = nlockspos + nlocksneg
        for *_, variable in self.columns:
            self.model.addVarLocksType(variable, locktype, locks, locks)


def violated_clusters(weights: npt.NDArray[np.float64]) -> list[int]:
    """Clusters whose constraint is violated, as bit masks: the shortest cycle through each class variable.

    An edge is as long as its weight falls short of 1. Along a cycle each member takes sets with its
    predecessor to at least the weight of that edge, so the sets without any member of the cycle sum up to its
    length at most: a cycle shorter than 1 violates the constraint of its members. If the weights are 0 and 1,
    every cycle has length 0, and none is overlooked.
    """
    parents, children = np.nonzero(weights)
    if not parents.size:
        return []
    # Not quite 0 for a whole edge, because a graph library may take 0 for no edge.
    lengths = np.maximum(1.0 - weights[parents, children], 1e-12)
    graph = csr_array((lengths, (parents, children)), shape=weights.shape)
    distance, before = dijkstra(graph, return_predecessors=True, limit=1.0)

    # Close each shortest path from a child to its parent by the edge back to the child.
    cycle_lengths = distance[children, parents] + lengths
    clusters: dict[int, None] = {}
    closed = set()
    for edge in np.argsort(cycle_lengths, kind="stable"):
        if cycle_lengths[edge] > 1.0 - _VIOLATION:
            break
        child, position = int(children[edge]), int(parents[edge])
        if child in closed:
            continue
        closed.add(child)
        cluster = 1 << child
        while position != child:
            cluster |= 1 << position
            position = int(before[child, position])
        clusters[cluster] = None
    return list(clusters)
