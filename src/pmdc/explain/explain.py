"""Why a model gives a state its probability in a row: contributions of features and of other class variables.

The log-odds of the state are divided in two steps, each of which adds up exactly.

1. *Class variables* (`pmdc.explain.path`). On the way from the network of the average row to that of the row, the
   conditional table of each class variable changes, and states become known. Each of these changes has a contribution.
   That of the variable's own table is what the features say directly; those of the table and the known state of another
   class variable are what this one says.
2. *Features* (`pmdc.explain.shapley`). The contribution of a table is a weighted sum of its log-probabilities, which is
   divided among the features by their Shapley values, or among the experts.

The average row has the mean of the log-probabilities of all background rows in each cell of its tables.

Beyond the paper.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from pmdc._support.arrays import Codes, Floats, Marks
from pmdc._support.checks import check_choice, check_count
from pmdc.explain.background import Background, weigh
from pmdc.explain.columns import check_tables
from pmdc.explain.explanation import Contribution, Explanation
from pmdc.explain.path import Change, Endpoint, change_of_log_odds
from pmdc.explain.shapley import Shapley, shapley_values
from pmdc.inference.distribution import JointDistribution
from pmdc.inference.evidence import NO_EVIDENCE, read_evidence, variable_number
from pmdc.table.columns import UNKNOWN, as_objects, encode_values, show

BY = ("features", "experts")
"""What the direct contribution of x can be divided among."""

MAX_STATES = 12
"""A message lists no more states."""

MAX_EXPERTS = 9
"""With so many experts and `BESIDE`, all coalitions are evaluated."""

BESIDE = "features beside the experts"
"""Discrete features that are parents, and experts that see the parents."""


def explain_row(
    model: Any,
    X: Any,
    row: int,
    variable: str,
    state: Any = None,
    given: Any = None,
    *,
    by: str = "features",
    max_background: int = 50,
    n_permutations: int = 2,
    random_state: Any = 0,
) -> Explanation:
    """Divide the log-odds of a state in a row among the features and the other class variables.

    The log-odds ``log P(Y = state | x, given) - log P(Y != state | x, given)`` are the base rate, the log-odds in the
    average row of X, plus the contributions:

    - of each feature: what it says directly, by the local model of the class variable;
    - of each other class variable: what its known state says and, known or not, what the features say about it
      (`Explanation.through` has these parts).

    They add up exactly. The contributions of class variables are exact. Those of features are Shapley values: exact
    with up to six features, and for logistic regression on x without shrinkage; otherwise estimated by random orders of
    the features, with a standard error.

    Parameters
    ----------
    model : fitted GBNC or BinaryRelevance
    X : table like the one given to `fit`
        Its rows are the background, with which the row is compared.
    row : int
        The position of the row in X.
    variable : str
        A class variable.
    state : default=None
        One of its states; by default the most probable one.
    given : mapping of names to states, default=None
        States of other class variables that are known.
    by : {"features", "experts"}, default="features"
        What the direct contribution of x is divided among. Experts are exact, up to eight of them.
    max_background : int, default=50
        If X has more rows, a random sample of this size is the background.
    n_permutations : int, default=2
        The number of random orders of the features for each background row, each of which is used with its reverse.
    random_state : int, RandomState instance or None, default=0
        Of the sample and the orders.

    Returns
    -------
    Explanation

    See Also
    --------
    explain_difference : The same for two rows, or for two sets of known states.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import load_election
    >>> from pmdc.explain import explain_row
    >>> survey = load_election(levels=3)
    >>> model = GBNC(experts=None, max_parents=1).fit(survey.X, survey.Y)
    >>> found = explain_row(model, survey.X, 39, "vote", given={"party": "Democrat"})
    >>> found.state
    'Clinton'
    >>> found.contributions[0].name, found.contributions[0].value
    ('party', 'Democrat')
    >>> total = found.base + sum(part.contribution for part in found.contributions)
    >>> abs(total - found.log_odds) < 1e-9
    True
    """
    question = _Question.of(model, variable, state, by, n_permutations)
    check_count("max_background", max_background, 1)
    n_rows = _count_rows(X)
    _check_row("row", row, n_rows)
    random = check_random_state(random_state)
    chosen = np.arange(n_rows)
    if n_rows > max_background:
        chosen = np.sort(random.choice(n_rows, max_background, replace=False))
    known = question.read_given("given", given)
    return question.answer(Background(model, X, row, chosen), known, random)


def explain_difference(
    model: Any,
    X: Any,
    rows: int | tuple[int, int],
    variable: str,
    state: Any = None,
    given: Any = None,
    *,
    by: str = "features",
    n_permutations: int = 100,
    random_state: Any = 0,
) -> Explanation:
    """Divide the difference of the log-odds of a state between two rows, or between two sets of known states.

    As `explain_row`, but with a row in the place of the average row: the contributions add up to the log-odds in the
    second row minus those in the first.

    Parameters
    ----------
    model : fitted GBNC or BinaryRelevance
    X : table like the one given to `fit`
    rows : int or pair of int
        The positions of the first and the second row in X; one position if only the known states differ.
    variable : str
        A class variable.
    state : default=None
        One of its states; by default the most probable one in the second row.
    given : mapping of names to states, or pair of these, default=None
        States of other class variables that are known; a pair if they differ, each of which may be None.
    by, n_permutations, random_state : as in `explain_row`

    Returns
    -------
    Explanation
        ``base`` is the log-odds in the first row.

    Examples
    --------
    >>> from pmdc import GBNC
    >>> from pmdc.datasets import load_election
    >>> from pmdc.explain import explain_difference
    >>> survey = load_election(levels=3)
    >>> model = GBNC(experts=None, max_parents=1).fit(survey.X, survey.Y)
    >>> found = explain_difference(model, survey.X, 39, "vote", given=(None, {"party": "Democrat"}))
    >>> {part.kind for part in found.contributions if part.contribution}
    {'class variable'}
    """
    question = _Question.of(model, variable, state, by, n_permutations)
    pair = tuple(rows) if isinstance(rows, (tuple, list, np.ndarray)) else (rows, rows)
    if len(pair) != 2:
        raise ValueError(f"rows={rows!r} must be one position or a pair of positions in X.")
    for row in pair:
        _check_row("rows", row, _count_rows(X))
    both = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, given)
    first, second = (question.read_given("given", one) for one in both)
    random = check_random_state(random_state)
    return question.answer(Background(model, X, pair[1], np.array(pair[:1]), first), second, random)


# Reading the question --------------------------------------------------------------------------------------------


def _count_rows(X: Any) -> int:
    n_rows = 0 if X is None or np.isscalar(X) else _num_samples(X)
    if not n_rows:
        raise ValueError("X must be a table with rows, like the one given to fit: the row is compared with the others.")
    return n_rows


def _check_row(argument: str, row: Any, n_rows: int) -> None:
    if isinstance(row, (bool, np.bool_)) or not isinstance(row, (int, np.integer)) or not 0 <= row < n_rows:
        raise ValueError(f"{argument}={row!r} must be a position in X, from 0 to {n_rows - 1}.")


def _check_experts(model: Any, k: int, variable: str, by: str) -> None:
    """Raise an error if the local models of the class variable are not on experts."""
    network = getattr(model, "_network", None)
    if by == "experts" and (network is None or model.blocks is not None or not network.has_experts(k)):
        raise ValueError(
            f"by='experts': this model has no experts for {variable!r} (or blocks of class variables). Choose "
            "by='features'."
        )


@dataclass(frozen=True)
class _Question:
    """Which state of which class variable, by which model, and how its log-odds are divided."""

    model: Any
    k: int
    state: int | None
    by: str
    n_permutations: int

    @classmethod
    def of(cls, model: Any, variable: str, state: Any, by: str, n_permutations: int) -> _Question:
        check_tables(model)
        check_choice("by", by, BY)
        check_count("n_permutations", n_permutations, 2)
        table = model.class_table_
        k = variable_number(table, "variable", variable)
        states = table.states[k]
        if len(states) < 2:
            raise ValueError(f"variable={variable!r} has one state, which is certain: choose another class variable.")
        _check_experts(model, k, variable, by)
        if state is None:
            return cls(model, k, None, by, n_permutations)
        code = UNKNOWN
        if isinstance(state, Hashable):
            (code,) = encode_values(as_objects([state]), states).tolist()
        if code == UNKNOWN:
            few = ", ".join(show(one) for one in states[:MAX_STATES])
            more = f", ... ({len(states)} in all)" if len(states) > MAX_STATES else ""
            raise ValueError(f"state={state!r} is not a state of {variable!r}, which has the states {few}{more}.")
        return cls(model, k, code, by, n_permutations)

    def read_given(self, argument: str, given: Any) -> Codes:
        """Return the codes of the known states."""
        table = self.model.class_table_
        if given is None:
            return np.full(len(table.sizes), NO_EVIDENCE)
        codes = np.array(read_evidence(table, given, 1)[0])
        if codes[self.k] != NO_EVIDENCE:
            raise ValueError(
                f"{argument} names {table.names[self.k]!r}, the class variable to be explained: its state is known "
                "then. Leave it out."
            )
        return codes

    def answer(self, table: Background, known: Codes, random: np.random.RandomState) -> Explanation:
        """Divide the log-odds, given these known states."""
        n_players, n = len(table.names), len(table.background)
        joint = self.model._distribution(table.one.complete())
        state = self._most_probable(joint, known) if self.state is None else self.state
        change = self._change(table, joint, known, state)

        def value(switched: Marks, rows: Codes) -> Floats:
            return table.weighted(change.weights, switched, rows)

        shares = shapley_values(value, n_players, n, self.n_permutations, random)
        direct = _features(table, shares, self.k)
        if self.by == "experts":
            direct = self._experts(table, change.weights[self.k], random)
        classes = self.model.class_table_
        others = [j for j in range(len(classes.names)) if j != self.k]
        said = [self._class_variable(table, change, j, known) for j in others]
        through = {}
        for j, part in zip(others, said, strict=True):
            own = [part._replace(contribution=float(change.known[j]))] if change.known[j] else []
            through[part.name] = _largest_first([*_features(table, shares, j), *own])
        return Explanation(
            variable=classes.names[self.k],
            state=classes.states[self.k].tolist()[state],
            base=change.start,
            log_odds=change.end,
            contributions=_largest_first([*direct, *said]),
            through=through,
            reference="base rate (average row)" if table.first is None else f"row {int(table.background[0])}",
        )

    def _change(self, table: Background, joint: JointDistribution, known: Codes, state: int) -> Change:
        """Divide the log-odds among the class variables."""
        start, end = table.mean_log_tables(), [own[0] for own in joint.log_tables]
        if not all(np.isfinite(own).all() for own in [*start, *end]):
            raise ValueError(
                f"model={type(self.model).__name__}: some of its probabilities are zero, so log-odds are infinite: fit "
                "with backoff='parents'."
            )
        before = np.full(len(end), NO_EVIDENCE) if table.first is None else table.first
        return change_of_log_odds(joint.junction_tree, Endpoint(start, before), Endpoint(end, known), self.k, state)

    def _most_probable(self, joint: JointDistribution, known: Codes) -> int:
        return int(joint.given_codes(known[None]).marginals()[self.k][0].argmax())

    def _class_variable(self, table: Background, change: Change, j: int, known: Codes) -> Contribution:
        """Return what another class variable says, by its state and by its table."""
        classes = self.model.class_table_

        def state_of(codes: Codes) -> Any:
            return None if codes[j] == NO_EVIDENCE else classes.states[j].tolist()[codes[j]]

        value = state_of(known) if table.first is None else (state_of(table.first), state_of(known))
        return Contribution("class variable", classes.names[j], value, float(change.tables[j] + change.known[j]), 0.0)

    def _experts(self, table: Background, weights: Floats, random: np.random.RandomState) -> list[Contribution]:
        """Divide what x says directly among the experts, and the features that enter beside them."""
        network = self.model._network
        names = [network.experts.experts[number].name for number in network.experts.order[self.k]]
        size, n, n_columns = weights.shape[-1], len(table.background), len(table.names)
        one, others = (network.experts(columns.complete())[self.k] for columns in (table.one, table.others))

        def value(switched: Marks, rows: Codes) -> Floats:
            features = table.mixed(np.repeat(switched[:, -1:], n_columns, axis=1), rows).complete()
            Z = np.where(np.repeat(switched[:, :-1], size, axis=1), one, others[rows])
            return weigh(network.table(self.k, features, Z), weights)[:, None]

        found = shapley_values(value, len(names) + 1, n, self.n_permutations, random, MAX_EXPERTS)
        parts = [
            Contribution("expert", name, None, float(share), float(error))
            for name, share, error in zip(
                [*names, BESIDE], found.values[:, 0], found.standard_errors[:, 0], strict=True
            )
        ]
        return parts if parts[-1].contribution else parts[:-1]


def _features(table: Background, shares: Shapley, j: int) -> list[Contribution]:
    """Return what the features say by the table of a class variable."""
    own = zip(table.names, table.values, shares.values[:, j], shares.standard_errors[:, j], strict=True)
    return [Contribution("feature", name, value, float(share), float(error)) for name, value, share, error in own]


def _largest_first(parts: list[Contribution]) -> list[Contribution]:
    return sorted(parts, key=lambda part: -abs(part.contribution))
