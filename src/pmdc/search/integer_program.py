"""The best DAG by the integer program (P2) of the paper, with SCIP.

One binary variable for each class variable and parent set, one convexity row for each class variable (it
takes exactly one set), and the cluster constraints: in each cluster of two or more class variables at least
one takes a set that has no member of the cluster. (The paper prints "> 1" where ">= 1" is meant: with "> 1"
no two class variables could be joined by an edge.) There are exponentially many of them, so a constraint
handler adds those that a solution violates (`clusters`). Good DAGs come from a local search over orders, before the
solver starts and then near each of its LP solutions.
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
from .problem import Outcome, Problem, is_acyclic, members
from .progress import Watch

# The solver has absolute tolerances, so regrets are scaled: that of the first DAG becomes this number.
_SCALE = 1e4

# The solver sees only a part of the rows, and few of its own parts ask the handler whether there is more to a
# solution. Those that reason from the rows alone are off: symmetries, independent components, reductions that
# keep some optimal solution only. The rest is for speed, measured on networks other than those of benchmarks/search.py.
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

# The greatest limits that the solver takes, in seconds and MiB.
_LONGEST, _LARGEST = 1e20, 8796093022207.0

# Easy problems end before this node and never need the exact program for cuts, which costs as much as many nodes.
_FIRST_PROGRAM = 8

Method = Callable[..., dict[str, int]]

# New starts without a better DAG after which the local search gives way to the solver.
_PATIENCE = 40

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
    model.setHeuristics(SCIP_PARAMSETTING.OFF)
    model.setParams(_SETTINGS)
    program = _Program(model, problem, most)
    observer = _Observer(program, first, watch)
    handler = _Acyclicity(program, observer)
    model.includeConshdlr(
        handler,
        "acyclicity",
        "cluster constraints",
        enfopriority=-1,  # after integrality: only whole-numbered solutions are enforced
        chckpriority=-1,
        sepafreq=1,
        maxprerounds=0,
        needscons=False,  # the handler itself is the one constraint
    )
    model.includeHeur(
        _Near(program, handler, observer),
        "near",
        "local search from orders near the LP solution",
        "N",
        timingmask=SCIP_HEURTIMING.DURINGLPLOOP | SCIP_HEURTIMING.AFTERLPNODE,
    )
    model.addSol(program.solution(first.ranks))

    model.includeEventhdlr(observer, "observer", "better DAGs and bounds, and the wish to end")
    model.setParam("limits/time", min(max(0.0, watch.time_left()), _LONGEST))
    model.setParam("limits/memory", min(watch.memory_budget / 2**20, _LARGEST))
    model.optimize()
    if observer.error is not None:
        raise observer.error

    status = model.getStatus()
    if status not in _STATUS:
        raise RuntimeError(f"the solver stopped with the unexpected status {status!r}")
    best = observer.best()
    if not is_acyclic([row[rank] for row, rank in zip(problem.masks, best.ranks, strict=True)]):
        raise RuntimeError("the solver accepted parent sets that form a cycle")
    if status == "optimal":
        return best._replace(least_regret=problem.total_regret(best.ranks), status="optimal")
    return best._replace(status=observer.reason or _STATUS[status])


class _Program:
    """The variables and the rows that are there from the beginning."""

    def __init__(self, model: Model, problem: Problem, most: float) -> None:
        self.model, self.problem = model, problem
        self.unit = most / _SCALE
        """The regret that costs 1."""
        # A set that alone loses more than the whole first DAG is in no best DAG. The sets are ranked, so what
        # remains are the first ones of each class variable; very low scores ("-1e30") never reach the solver.
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

        # Whether two class variables are joined by an edge. It cannot have both directions, so this is the constraint
        # of the cluster of the two, and the solver may branch on it, which divides the DAGs more evenly than one set.
        joining: dict[tuple[int, int], list[Any]] = {}
        for child, (masks, row) in enumerate(zip(self.masks, self.takes, strict=True)):
            for mask, variable in zip(masks, row, strict=True):
                for parent in members(mask):
                    joining.setdefault(_pair(parent, child), []).append(variable)
        self.joins = {pair: model.addVar(vtype="B") for pair, some in joining.items() if len(some) > 1}
        for pair, variable in self.joins.items():
            model.addCons(quicksum(joining[pair]) == variable)
        # Presolving may not express a variable by several others: then a DAG could not be handed over as a solution.
        for variable in [*self.joins.values(), *(variable for row in self.takes for variable in row)]:
            model.markDoNotMultaggrVar(variable)

    def solution(self, ranks: Sequence[int], heuristic: Heur | None = None) -> Any:
        """A DAG as a solution."""
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
    """For methods that the solver calls: they look at the watch first, and no error of theirs gets lost.

    The solver ignores exceptions, so they are kept, the solver is ended, and `solve` raises them.
    """

    def guard(method: Method) -> Method:
        @wraps(method)
        def run(self: Any, *arguments: Any, **named: Any) -> dict[str, int]:
            try:
                self.observer.look()
                return method(self, *arguments, **named)
            except BaseException as error:
                self.observer.fail(error)
                return otherwise

        return run

    return guard


class _Observer(Eventhdlr):
    """Tells the watch of better DAGs and bounds, and the solver when to end."""

    def __init__(self, program: _Program, first: Outcome, watch: Watch) -> None:
        self.program, self.known, self.watch = program, first, watch
        self.observer = self
        self.n_solutions = 0
        self.reason = ""
        self.error: BaseException | None = None

    def best(self) -> Outcome:
        """The best DAG and bound so far; of equal ones the first."""
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

    def look(self) -> None:
        """Tell the watch how far the solver is, and end it if it should."""
        if self.reason or self.model.getStage() != SCIP_STAGE.SOLVING:
            return
        best = self.best()
        self.reason = self.watch.stop(best.ranks, best.least_regret)
        if self.reason:
            self.model.interruptSolve()

    def fail(self, error: BaseException) -> None:
        """End the solver because of an error; the first one counts."""
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
        """The node from which on the exact program may look for cuts; twice as far each time that there are none."""

    def lp_support(self) -> Support:
        """What the LP solution takes."""
        return self.columns.support(np.array([variable.getLPSol() for variable in self.variables]))

    def support(self, solution: Any) -> Support:
        """What a solution takes; None is that of the node."""
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
            cut, proved = by_program(support, self.observer.watch.time_left())
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
        # Without an LP there are no cuts, so the constraints are added as rows of the problem.
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
        # Rounding down may violate a cluster constraint; rounding up adds edges, which may close a cycle.
        locks = nlockspos + nlocksneg
        for variable in self.variables:
            self.model.addVarLocksType(variable, locktype, locks, locks)


class _Near(Heur):
    """Good DAGs near the LP solution."""

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
