"""Parent sets where all parents partition the rows, the paper's way: level by level (Algorithm 3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pmdc._support.progress import tell_phase
from pmdc.candidates.families import ParentSet
from pmdc.candidates.pruning import ScoreTable, make_pruning
from pmdc.candidates.rules import ParentRules

Scorer = Callable[[list[tuple[int, ParentSet]]], list[float]]
"""Scores many (class variable, parent set) pairs at once, in order, in parallel if it likes."""


def restrict(rules: Sequence[ParentRules], limit: int, score: Scorer) -> tuple[list[ParentRules], list[ScoreTable]]:
    """Fewer possible parents, so that all class variables together have at most `limit` parent sets.

    Every class variable gets an equal share of the limit. Its possible parents are ranked by the score that each
    has as the only one (beside the required ones), and the longest head of this ranking whose sets fit into the
    share is kept. Also returned are the scores that the ranking has cost already.
    """
    share = limit // len(rules)
    if share < 1:
        raise ValueError(
            f"max_candidates={limit} leaves no parent set to some of the {len(rules)} class variables: "
            f"it must be at least {len(rules)}."
        )
    kept: list[ParentRules] = []
    spent: list[ScoreTable] = []
    for rule in rules:
        # Parents that no set can take (their kind has no room) are not worth a score. What they add to comes first.
        size = len(rule.required) + 1
        least = tuple(sorted(rule.required))
        singles = list(rule.sets(size)) if size <= rule.max_size() else []
        table = {parents: score([(rule.child, parents)])[0] for parents in [least]}
        table.update(zip(singles, score([(rule.child, parents) for parents in singles]), strict=True))
        ranked = sorted(singles, key=lambda parents: -table[parents])  # stable: ties stay in node order
        order = [next(v for v in parents if v not in rule.required) for parents in ranked]
        width = len(order)
        while width and rule.keep(order[:width]).count() > share:
            width -= 1
        kept.append(rule.keep(order[:width]))
        spent.append(table)
    return kept, spent


def score_parent_sets(
    rules: Sequence[ParentRules],
    penalty: Callable[[int, ParentSet], float],
    score: Scorer,
    prune: str | None,
    known: Sequence[ScoreTable] | None = None,
    progress: Callable[[str], None] = lambda message: None,
) -> list[ScoreTable]:
    """S(Y, D) of all parent sets that pruning leaves: Algorithm 3, and Algorithm 2 with ``prune=None``.

    Parameters
    ----------
    rules : one `ParentRules` for each class variable
    penalty : function (child, parents) -> pen(D)
    score : function that scores many pairs at once
    prune : {"lemma", "definition", None}
    known : scores that are there already
    progress : called with a line of text after each level

    Returns
    -------
    list of dict
        For each class variable, parent set -> score, smaller sets first.
    """
    pruning = make_pruning(prune, rules)
    tables: list[ScoreTable] = [{} for _ in rules]
    for level in range(max(rule.max_size() for rule in rules) + 1):
        tasks: list[tuple[int, ParentSet]] = []
        visited = 0
        for rule in rules:
            sets = list(rule.sets(level)) if level <= rule.max_size() else []
            visited += len(sets)
            survivors = pruning.survivors(rule.child, sets, [penalty(rule.child, parents) for parents in sets])
            tasks.extend((rule.child, parents) for parents in survivors)
        if not visited:
            continue
        tell_phase(f"scoring parent sets of size {level}")
        new = [task for task in tasks if known is None or task[1] not in known[task[0]]]
        fresh = dict(zip(new, score(new), strict=True))
        for child, parents in tasks:
            value = fresh[child, parents] if (child, parents) in fresh else known[child][parents]  # type: ignore[index]
            tables[child][parents] = value
            pruning.record(child, parents, value)
        progress(f"level {level}: {len(tasks)} of {visited} parent sets scored, {visited - len(tasks)} pruned")
    return [pruning.table(child, table) for child, table in enumerate(tables)]
