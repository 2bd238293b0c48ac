"""Two plain programs for the DAG with the greatest score, to compare ours with.

Both solve the integer program: one binary variable for each class variable and parent set, each class variable takes
exactly one set, and in each cluster (a set of class variables) at least one takes a set without a member of the
cluster. Violated cluster constraints are found by shortest cycles, in plain Python. `by_scip` is branch and cut with a
constraint handler of PySCIPOpt, `by_highs` solves, cuts and solves again with HiGHS. There is no heuristic for good
DAGs, no first DAG and no decomposition; tables are expected to have no dominated sets. What the solvers leave at its
default here is at its default.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import Any

Scores = Mapping[str, Mapping[frozenset[str], float]]
Parents = dict[str, frozenset[str]]
Column = tuple[str, frozenset[str]]

VIOLATION = 1e-5
"""A cluster constraint counts as violated from here on; the solvers' own tolerance is 1e-6."""


def columns_of(scores: Scores) -> list[Column]:
    """A class variable and one of its parent sets for each binary variable."""
    return [(child, parents) for child, sets in scores.items() for parents in sets]


def violated_clusters(columns: Sequence[Column], values: Sequence[float]) -> list[frozenset[str]]:
    """The members of the shortest cycle through each class variable, where it is shorter than 1.

    An edge is as long as its weight, the sum of the values of the sets that have it, falls short of 1. The sets of the
    members of a cycle that have no member sum up to its length at most. In a whole-numbered solution every cycle has
    length 0, so none is overlooked.
    """
    weights: dict[str, dict[str, float]] = {child: {} for child, _ in columns}
    for (child, parents), value in zip(columns, values, strict=True):
        if value > 1e-9:
            for parent in parents:
                weights[parent][child] = weights[parent].get(child, 0.0) + value
    lengths = {a: {b: max(0.0, 1.0 - weight) for b, weight in after.items()} for a, after in weights.items()}
    clusters = (shortest_cycle(lengths, start) for start in lengths)
    return list(dict.fromkeys(cluster for cluster in clusters if cluster))


def shortest_cycle(lengths: Mapping[str, Mapping[str, float]], start: str) -> frozenset[str] | None:
    """The members of the shortest cycle through `start`, by Dijkstra's algorithm; None if it is not shorter than 1."""
    distance = {start: 0.0}
    before: dict[str, str] = {}
    waiting = [(0.0, start)]
    best, last = 1.0 - VIOLATION, None
    while waiting:
        so_far, here = heapq.heappop(waiting)
        if so_far >= best:
            break
        if so_far > distance[here]:
            continue
        for there, length in lengths[here].items():
            total = so_far + length
            if there == start:
                if total < best:
                    best, last = total, here
            elif total < min(best, distance.get(there, math.inf)):
                distance[there] = total
                before[there] = here
                heapq.heappush(waiting, (total, there))
    if last is None:
        return None
    cycle = [last]
    while cycle[-1] != start:
        cycle.append(before[cycle[-1]])
    return frozenset(cycle)


def cluster_terms(columns: Sequence[Column], cluster: frozenset[str]) -> list[int]:
    """The left side of the constraint of a cluster: its members' sets that have no member of it."""
    return [i for i, (child, parents) in enumerate(columns) if child in cluster and not parents & cluster]


def chosen(columns: Sequence[Column], values: Sequence[float]) -> Parents:
    return {child: parents for (child, parents), value in zip(columns, values, strict=True) if value > 0.5}


# SCIP ------------------------------------------------------------------------------------------------------


def by_scip(scores: Scores) -> Parents:
    """Branch and cut."""
    from pyscipopt import Model, quicksum

    model = Model()
    model.hideOutput()
    # SCIP finds symmetries and independent components in the rows it has; cluster constraints may forbid both. Locks
    # tell its other parts that a variable cannot be rounded freely.
    model.setParam("misc/usesymmetry", 0)
    model.setParam("constraints/components/maxprerounds", 0)
    model.setParam("constraints/components/propfreq", -1)
    model.setParam("misc/allowstrongdualreds", False)
    model.setParam("misc/allowweakdualreds", False)

    columns = columns_of(scores)
    variables = [model.addVar(vtype="B", obj=scores[child][parents]) for child, parents in columns]
    model.setMaximize()
    for name in scores:
        mine = zip(columns, variables, strict=True)
        model.addCons(quicksum(variable for (child, _), variable in mine if child == name) == 1)
    handler = acyclicity(columns, variables)
    model.includeConshdlr(
        handler, "acyclicity", "cluster constraints", sepafreq=1, enfopriority=-1, chckpriority=-1, needscons=False
    )
    model.optimize()
    if model.getStatus() != "optimal":
        raise RuntimeError(f"SCIP stopped with the status {model.getStatus()!r}")
    solution = model.getBestSol()
    found = chosen(columns, [solution[variable] for variable in variables])
    model.free()
    return found


def acyclicity(columns: Sequence[Column], variables: Sequence[Any]) -> Any:
    """The constraint handler."""
    from pyscipopt import SCIP_RESULT, Conshdlr, quicksum

    class Acyclicity(Conshdlr):
        def clusters(self, solution: Any = None) -> list[frozenset[str]]:
            return violated_clusters(columns, [self.model.getSolVal(solution, variable) for variable in variables])

        def separate(self, otherwise: int) -> dict[str, int]:
            clusters = self.clusters()
            for cluster in clusters:
                row = self.model.createEmptyRowUnspec("cluster", lhs=1.0, rhs=None, local=False)
                for i in cluster_terms(columns, cluster):
                    self.model.addVarToRow(row, variables[i], 1.0)
                infeasible = self.model.addCut(row, forcecut=True)
                self.model.releaseRow(row)
                if infeasible:
                    return {"result": SCIP_RESULT.CUTOFF}
            return {"result": SCIP_RESULT.SEPARATED if clusters else otherwise}

        def conssepalp(self, constraints, nusefulconss):
            return self.separate(SCIP_RESULT.DIDNOTFIND)

        def consenfolp(self, constraints, nusefulconss, solinfeasible):
            return self.separate(SCIP_RESULT.FEASIBLE)

        def consenfops(self, constraints, nusefulconss, solinfeasible, objinfeasible):
            clusters = self.clusters()
            for cluster in clusters:
                self.model.addCons(quicksum(variables[i] for i in cluster_terms(columns, cluster)) >= 1)
            return {"result": SCIP_RESULT.CONSADDED if clusters else SCIP_RESULT.FEASIBLE}

        def conscheck(self, constraints, solution, checkintegrality, checklprows, printreason, completely):
            return {"result": SCIP_RESULT.INFEASIBLE if self.clusters(solution) else SCIP_RESULT.FEASIBLE}

        def conslock(self, constraint, locktype, nlockspos, nlocksneg):
            both = nlockspos + nlocksneg
            for variable in variables:
                self.model.addVarLocksType(variable, locktype, both, both)

    return Acyclicity()


# HiGHS -----------------------------------------------------------------------------------------------------


def by_highs(scores: Scores) -> Parents:
    """The LP relaxation with cuts until none is violated, then the integer program with cuts until it gives a DAG."""
    import highspy
    import numpy as np

    columns = columns_of(scores)
    count = len(columns)
    model = highspy.Highs()
    model.silent()
    model.setOptionValue("threads", 1)
    model.setOptionValue("mip_rel_gap", 0.0)  # its default, 1e-4, proves too little
    nothing = np.empty(0, dtype=np.int32)
    costs = np.array([-scores[child][parents] for child, parents in columns])
    model.addCols(count, costs, np.zeros(count), np.ones(count), 0, nothing, nothing, np.empty(0))
    for name in scores:
        mine = np.array([i for i, (child, _) in enumerate(columns) if child == name], dtype=np.int32)
        model.addRow(1.0, 1.0, len(mine), mine, np.ones(len(mine)))

    def solve_and_cut() -> list[float]:
        """Until the solution violates no cluster constraint that is found."""
        while True:
            model.run()
            if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
                raise RuntimeError(f"HiGHS stopped with the status {model.getModelStatus()}")
            values = list(model.getSolution().col_value)
            clusters = violated_clusters(columns, values)
            if not clusters:
                return values
            for cluster in clusters:
                terms = np.array(cluster_terms(columns, cluster), dtype=np.int32)
                model.addRow(1.0, highspy.kHighsInf, len(terms), terms, np.ones(len(terms)))

    solve_and_cut()
    every = np.arange(count, dtype=np.int32)
    model.changeColsIntegrality(count, every, np.full(count, highspy.HighsVarType.kInteger.value, dtype=np.uint8))
    return chosen(columns, solve_and_cut())
