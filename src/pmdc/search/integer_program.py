"""Exact structure search by the integer program (P2) of the paper, with SCIP.

There is one binary variable for each class variable and parent set, one row for each class variable (it takes exactly
one set), and the cluster constraints: in each cluster of two or more class variables at least one takes a set without a
member of the cluster. (The paper prints "> 1" where ">= 1" is meant: with "> 1" no edge would be possible.) There are
exponentially many, so a constraint handler adds those that a solution violates (`clusters`). Good DAGs come from a
local search over orders, before the solver starts and then near each LP solution.
"""

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np
from pyscipopt import (
    SCIP_EVENTTYPE,
    SCIP_HEURTIMING,
    SCIP_LPSOLSTAT,
    SCIP_PARAMSETTING,
    SCIP_RESULT,
    SCIP_STAGE,
    Conshdlr,
    Eventhdlr,
    Heur,
    Model,
    quicksum,
)

from . import orders
from .clusters import Columns, Cut, Support, by_cycles, by_growth, by_program
from .problem import Problem, SearchResult, members, topological_order
from .progress import SearchState

# The tolerances of the solver are absolute, so regrets are scaled: that of the first DAG becomes this number.
_SCALE = 1e4

# The solver does not know all rows, so plugins that reason from the rows alone are off: symmetries, independent
# components, dual reductions. The rest is for speed, tuned on networks other than those of benchmarks/search.py.
_SETTINGS: dict[str, Any] = {
    "misc/usesymmetry": 0,
    "misc/allowstrongdualreds": False,
    "misc/allowweakdualreds": False,
    "constraints/components/maxprerounds": 0,
    "constraints/components/propfreq": -1,
    "presolving/maxrestarts": 0,
    "misc/catchctrlc": False,
    "separating/aggregation/freq": -1,
    "separating/gomory/maxroundsroot": 4,
    "branching/relpscost/initcand": 20,
    "branching/relpscost/inititer": 20,
    "lp/pricing": "d",
}

# The greatest limits that the solver accepts, in seconds and MiB.
_MAX_SECONDS, _MAX_MEMORY = 1e20, 8796093022207.0

# The integer program for cuts costs as much as many nodes; easy problems end before this node and never need it.
_FIRST_PROGRAM = 8

Method = Callable[..., dict[str, int]]

# Restarts without improvement after which the local search is followed by the solver.
_PATIENCE = 40

_STATUS = {
    "optimal": "optimal",
    "timelimit": "time limit",
    "memlimit": "memory limit",
    "nodelimit": "unproved",
    "userinterrupt": "interrupted",
}


def solve(problem: Problem, first: SearchResult, state: SearchState, max_nodes: int = -1) -> SearchResult:
    """Return a best DAG, or the best found when a limit ends the search; -1 is no limit on the nodes.

    It starts with a local search, which often finds a best DAG; the solver then proves it.
    """
    first = orders.solve(problem, first, state, patience=_PATIENCE)
    if first.status != "unproved":
        return first
    model = Model()
    try:
        model.setParam("limits/nodes", max_nodes)
        return _solve(model, problem, first, state)
    finally:
        # The model and its handlers refer to each other; free() releases SCIP at once.
        model.free()


def _solve(model: Model, problem: Problem, first: SearchResult, state: SearchState) -> SearchResult:
    most = problem.total_regret(first.ranks)
    model.hideOutput()
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.setParams(_SETTINGS)
    program = _Program(model, problem, most)
    observer = _Observer(program, first, state)
    handler = _Acyclicity(program, observer)
    model.includeConshdlr(
        handler,
        "acyclicity",
        "cluster constraints",
        enfopriority=-1,  # after integrality: only integral solutions are enforced
        chckpriority=-1,
        sepafreq=1,
        maxprerounds=0,
        needscons=False,  # there is no constraint object
    )
    model.includeHeur(
        _LocalSearch(program, handler, observer),
        "local search",
        "local search over orders near the LP solution",
        "N",
        timingmask=SCIP_HEURTIMING.DURINGLPLOOP | SCIP_HEURTIMING.AFTERLPNODE,
    )
    model.addSol(program.solution(first.ranks))

    model.includeEventhdlr(observer, "observer", "better DAGs and bounds, limits")
    model.setParam("limits/time", min(max(0.0, state.time_left()), _MAX_SECONDS))
    model.setParam("limits/memory", min(state.memory_budget / 2**20, _MAX_MEMORY))
    model.optimize()
    if observer.error is not None:
        raise observer.error

    status = model.getStatus()
    if status not in _STATUS:
        raise RuntimeError(f"the solver stopped with the unexpected status {status!r}")
    best = observer.best()
    if topological_order([row[rank] for row, rank in zip(problem.masks, best.ranks, strict=True)]) is None:
        raise RuntimeError("the solver returned parent sets that form a cycle")
    if status == "optimal":
        return best._replace(least_regret=problem.total_regret(best.ranks), status="optimal")
    return best._replace(status=observer.reason or _STATUS[status])


class _Program:
    """The variables and the initial rows."""

    def __init__(self, model: Model, problem: Problem, most: float) -> None:
        self.model, self.problem = model, problem
        self.unit = most / _SCALE
        """The regret that has cost 1."""
        # A set whose regret exceeds that of the whole first DAG is in no best DAG. Very low scores, such as -1e30,
        # never reach the solver. Sets are ranked, so the first ones of each class variable remain.
        self.masks = [
            [mask for mask, regret in zip(masks, regrets, strict=True) if regret <= most]
            for masks, regrets in zip(problem.masks, problem.regrets, strict=True)
        ]
        self.takes = [
            [model.addVar(vtype="B", obj=regret / self.unit) for regret in regrets[: len(masks)]]
            for masks, regrets in zip(self.masks, problem.regrets, strict=True)
        ]
        for row in self.takes:
            model.addCons(quicksum(row) == 1)

        # One variable for each pair joined by an edge. As it is binary, the row is the constraint of the cluster of the
        # two; branching on it divides the DAGs more evenly than branching on one parent set.
        joining: dict[tuple[int, int], list[Any]] = {}
        for child, (masks, row) in enumerate(zip(self.masks, self.takes, strict=True)):
            for mask, variable in zip(masks, row, strict=True):
                for parent in members(mask):
                    joining.setdefault(_pair(parent, child), []).append(variable)
        self.joins = {pair: model.addVar(vtype="B") for pair, some in joining.items() if len(some) > 1}
        for pair, variable in self.joins.items():
            model.addCons(quicksum(joining[pair]) == variable)
        # No multi-aggregation in presolving: then a DAG could not be added as a solution.
        for variable in [*self.joins.values(), *(variable for row in self.takes for variable in row)]:
            model.markDoNotMultaggrVar(variable)

    def solution(self, ranks: Sequence[int], heuristic: Heur | None = None) -> Any:
        """Return a DAG as a solution."""
        solution = self.model.createSol(heuristic)
        for child, rank in enumerate(ranks):
            self.model.setSolVal(solution, self.takes[child][rank], 1.0)
            for parent in members(self.masks[child][rank]):
                if variable := self.joins.get(_pair(parent, child)):
                    self.model.setSolVal(solution, variable, 1.0)
        return solution


def _pair(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)


def _guarded(otherwise: dict[str, int]) -> Callable[[Method], Method]:
    """Decorate a method that the solver calls: check the limits first and keep its exceptions.

    The solver ignores exceptions, so they are stored, the solver is stopped, and `solve` raises them.
    """

    def guard(method: Method) -> Method:
        @wraps(method)
        def run(self: Any, *arguments: Any, **named: Any) -> dict[str, int]:
            try:
                self.observer.update()
                return method(self, *arguments, **named)
            except BaseException as error:
                self.observer.fail(error)
                return otherwise

        return run

    return guard


class _Observer(Eventhdlr):
    """Report better DAGs and bounds to the search state, and stop the solver at a limit."""

    def __init__(self, program: _Program, first: SearchResult, state: SearchState) -> None:
        self.program, self.known, self.state = program, first, state
        self.observer = self
        self.n_solutions = 0
        self.reason = ""
        self.error: BaseException | None = None

    def best(self) -> SearchResult:
        """Return the best DAG and bound so far; of equal DAGs the first."""
        problem = self.program.problem
        if self.model.getNBestSolsFound() > self.n_solutions:
            self.n_solutions = self.model.getNBestSolsFound()
            solution = self.model.getBestSol()
            ranks = [int(np.argmax([solution[variable] for variable in row])) for row in self.program.takes]
            if problem.total_regret(ranks) < problem.total_regret(self.known.ranks):
                self.known = self.known._replace(ranks=ranks)
        least = max(self.known.least_regret, self.model.getDualbound() * self.program.unit)
        return self.known._replace(least_regret=min(least, problem.total_regret(self.known.ranks)))

    def eventinit(self) -> None:
        self.model.catchEvent(SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.LPEVENT | SCIP_EVENTTYPE.NODESOLVED, self)

    def eventexit(self) -> None:
        self.model.dropEvent(SCIP_EVENTTYPE.BESTSOLFOUND | SCIP_EVENTTYPE.LPEVENT | SCIP_EVENTTYPE.NODESOLVED, self)

    def update(self) -> None:
        """Update the search state and stop the solver if a limit is reached."""
        if self.reason or self.model.getStage() != SCIP_STAGE.SOLVING:
            return
        best = self.best()
        self.reason = self.state.stop(best.ranks, best.least_regret)
        if self.reason:
            self.model.interruptSolve()

    def fail(self, error: BaseException) -> None:
        """Stop the solver because of an error; the first one is kept."""
        self.error, self.reason = self.error or error, "interrupted"
        self.model.interruptSolve()

    @_guarded({})
    def eventexec(self, event: Any) -> dict[str, int]:
        return {}


class _Acyclicity(Conshdlr):
    """The cluster constraints, added when a solution violates them."""

    def __init__(self, program: _Program, observer: _Observer) -> None:
        self.observer = observer
        self.variables = [variable for row in program.takes for variable in row]
        self.columns = Columns(program.masks)
        self.next_program = _FIRST_PROGRAM
        """Node number from which the integer program for cuts may run; doubled each time that there is no cut."""

    def lp_support(self) -> Support:
        """Return the support of the LP solution."""
        return self.columns.support(np.array([variable.getLPSol() for variable in self.variables]))

    def support(self, solution: Any) -> Support:
        """Return the support of a solution; None is the solution of the current node."""
        value = self.model.getSolVal
        return self.columns.support(np.array([value(solution, variable) for variable in self.variables]))

    def _add_cuts(self, cuts: Sequence[Cut], otherwise: int, force: bool) -> dict[str, int]:
        for cut in cuts:
            row = self.model.createEmptyRowUnspec("cluster", lhs=float(cut.k), rhs=None, local=False)
            self.model.cacheRowExtensions(row)
            for column in self.columns.outside(cut):
                self.model.addVarToRow(row, self.variables[column], 1.0)
            self.model.flushRowExtensions(row)
            infeasible = self.model.addCut(row, forcecut=force)
            self.model.releaseRow(row)
            if infeasible:
                return {"result": SCIP_RESULT.CUTOFF}
        return {"result": SCIP_RESULT.SEPARATED if cuts else otherwise}

    @_guarded({"result": SCIP_RESULT.DIDNOTRUN})
    def conssepalp(self, constraints: Any, nusefulconss: int) -> dict[str, int]:
        support = self.lp_support()
        cuts = by_growth(support)
        if not cuts and self.model.getNNodes() >= self.next_program:
            cut, proved = by_program(support, self.observer.state.time_left())
            cuts = [cut] if cut else []
            self.next_program *= 2 if proved else 1
        return self._add_cuts(cuts, SCIP_RESULT.DIDNOTFIND, force=False)

    @_guarded({"result": SCIP_RESULT.INFEASIBLE})
    def consenfolp(self, constraints: Any, nusefulconss: int, solinfeasible: bool) -> dict[str, int]:
        return self._add_cuts(by_cycles(self.lp_support()), SCIP_RESULT.FEASIBLE, force=True)

    @_guarded({"result": SCIP_RESULT.INFEASIBLE})
    def consenfops(
        self, constraints: Any, nusefulconss: int, solinfeasible: bool, objinfeasible: bool
    ) -> dict[str, int]:
        # Without an LP there are no cuts, so the constraints are added to the problem.
        cuts = by_cycles(self.support(None))
        for cut in cuts:
            self.model.addCons(quicksum(self.variables[column] for column in self.columns.outside(cut)) >= 1)
        return {"result": SCIP_RESULT.CONSADDED if cuts else SCIP_RESULT.FEASIBLE}

    @_guarded({"result": SCIP_RESULT.INFEASIBLE})
    def conscheck(
        self,
        constraints: Any,
        solution: Any,
        checkintegrality: bool,
        checklprows: bool,
        printreason: bool,
        completely: bool,
    ) -> dict[str, int]:
        cuts = by_cycles(self.support(solution))
        return {"result": SCIP_RESULT.INFEASIBLE if cuts else SCIP_RESULT.FEASIBLE}

    def conslock(self, constraint: Any, locktype: int, nlockspos: int, nlocksneg: int) -> None:
        # Rounding a variable up or down may violate a cluster constraint.
        locks = nlockspos + nlocksneg
        for variable in self.variables:
            self.model.addVarLocksType(variable, locktype, locks, locks)


class _LocalSearch(Heur):
    """A primal heuristic: local search near the LP solution."""

    def __init__(self, program: _Program, handler: _Acyclicity, observer: _Observer) -> None:
        self.program, self.handler, self.observer = program, handler, observer
        self.guided = orders.Guided(program.problem)

    @_guarded({"result": SCIP_RESULT.DIDNOTRUN})
    def heurexec(self, heurtiming: int, nodeinfeasible: bool) -> dict[str, int]:
        if self.model.getLPSolstat() != SCIP_LPSOLSTAT.OPTIMAL:
            return {"result": SCIP_RESULT.DIDNOTRUN}
        ranks = self.guided.near(self.handler.lp_support().weights())
        if ranks is None:
            return {"result": SCIP_RESULT.DIDNOTFIND}
        regret = self.program.problem.total_regret(ranks)
        if regret >= self.model.getPrimalbound() * self.program.unit:
            return {"result": SCIP_RESULT.DIDNOTFIND}
        accepted = self.model.trySol(self.program.solution(ranks, self), printreason=False)
        return {"result": SCIP_RESULT.FOUNDSOL if accepted else SCIP_RESULT.DIDNOTFIND}
