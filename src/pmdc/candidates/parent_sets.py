"""Parent sets where all parents partition the rows, as in the paper: level by level (Algorithm 3).

When a set is visited, the scores of all its subsets are known, so pruning can skip its local models. The local models
of a level are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import Family, FamilyTable, ParentSet, Task
from pmdc.candidates.pruning import ScoreTable, make_pruning
from pmdc.candidates.rules import ParentRules

Score = Callable[[Sequence[Task]], dict[Task, float]]
"""Scores many families at once, and those that their scores depend on; fewer when the time is up."""


def restrict(rules: Sequence[ParentRules], limit: int, score: Score, inputs: bool) -> list[ParentRules]:
    """Remove possible parents so that all class variables together have at most `limit` parent sets.

    Every class variable gets an equal share of the limit. Its possible parents are ranked by their scores as the only
    parent (beside required ones), as inputs or as partitions, and as many as fit into the share are kept.
    """
    share = limit // len(rules)
    if share < 1:
        raise ValueError(
            f"max_candidates={limit} must be at least {len(rules)}: each class variable needs one parent set."
        )
    kept: list[ParentRules] = []
    for rule in rules:
        # Do not score parents that no set can contain because their kind has reached its limit.
        size = len(rule.required) + 1
        singles = list(rule.sets(size)) if size <= rule.max_size() else []
        families = [Family((), parents) if inputs else Family(parents) for parents in singles]
        table = score([(rule.child, family) for family in families])
        ranked = sorted(families, key=lambda family: -table.get((rule.child, family), -math.inf))  # ties: node order
        order = [next(v for v in family.parents if v not in rule.required) for family in ranked]
        width = len(order)
        while width and rule.keep(order[:width]).count() > share:
            width -= 1
        kept.append(rule.keep(order[:width]))
    return kept


def score_parent_sets(
    rules: Sequence[ParentRules],
    penalty: Callable[[int, ParentSet], float],
    score: Score,
    prune: str | None,
    progress: Callable[[str], None] = lambda message: None,
    max_sets: int | None = None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> list[FamilyTable]:
    """Compute S(Y, D) of all parent sets that pruning leaves: Algorithm 3, and Algorithm 2 with ``prune=None``.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    penalty : function (child, parents) -> pen(D)
    score : function that scores many families at once
    prune : {"lemma", "definition", None}
    progress : called with a line of text after each level
    max_sets : int or None
        Levels are scored as long as there are at most this many sets in all.
    out_of_time : asked before each set; after it has said True, the levels so far are returned

    Returns
    -------
    list of dict
        For each class variable, family -> score, smaller sets first.
    """
    pruning = make_pruning(prune, rules)
    tables: list[ScoreTable] = [{} for _ in rules]
    total = visited = 0

    def visit(rule: ParentRules, level: int) -> Iterator[tuple[ParentSet, float]]:
        nonlocal visited
        for parents in rule.sets(level) if level <= rule.max_size() else ():
            if out_of_time():
                return
            visited += 1
            yield parents, penalty(rule.child, parents)

    for level in range(max(rule.max_size() for rule in rules) + 1):
        total += sum(rule.count_of(level) for rule in rules)
        if max_sets is not None and total > max_sets:
            break
        visited = 0
        survivors = {rule.child: pruning.survivors(rule.child, visit(rule, level)) for rule in rules}
        tasks = [(child, parents) for child, sets in survivors.items() for parents in sets]
        if out_of_time():
            break
        if not visited:
            continue
        tell_phase(f"scoring parent sets of size {level}")
        scores = score([(child, Family(parents)) for child, parents in tasks])
        for child, parents in tasks:
            if (child, Family(parents)) in scores:
                value = tables[child][parents] = scores[child, Family(parents)]
                pruning.record(child, parents, value)
        progress(f"level {level}: {len(tasks)} of {visited} parent sets scored, {visited - len(tasks)} pruned")
    kept = [pruning.table(child, table) for child, table in enumerate(tables)]
    return [{Family(parents): value for parents, value in table.items()} for table in kept]
