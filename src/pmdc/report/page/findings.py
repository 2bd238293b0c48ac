"""What a report tells, measured once: losses, calibration, importance, hard rows, doubtful cells, prediction sets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import _safe_indexing, check_random_state

from pmdc._support.arrays import Codes, Floats
from pmdc._support.progress import tell_phase, tell_step
from pmdc.completion import SuspiciousCells, improbable_cells
from pmdc.evaluation.held_out import HeldOut, evaluate
from pmdc.evaluation.losses import LossReport, report_losses
from pmdc.evaluation.training_rows import is_like_training
from pmdc.explain import Importance, importance
from pmdc.table.columns import UNKNOWN, Column, read_columns

COVERAGES = (0.8, 0.9, 0.95)
N_CELLS = 10
"""The number of doubtful cells that are listed."""
MAX_OUTCOMES = 1000
"""Longer lists of outcomes are not made for prediction sets."""

_MAX_SHUFFLED, _MIN_ROWS, _MAX_ROWS = 100_000, 100, 1000
"""Features times rows, and limits of the rows, for the importance of features."""
_REPEATS, _FEW_FEATURES = 3, 100
"""How often each feature is shuffled; once if there are more than so many."""
_SET_ROWS, _MIN_SET_ROWS = 600, 40
"""The rows of prediction sets: at most, and fewer are too few."""
_CELL_ROWS, _CELL_STEP = 4000, 500
"""Rows in which doubtful cells are looked for: at most, and so many at a time."""


@dataclass(frozen=True)
class Rows:
    """The rows that a report is about.

    Attributes
    ----------
    X, Y : tables
        In Y, cells that are sets of states are missing.
    source : str
        Where they come from.
    word : str
        What their numbers count, such as "row" or "line".
    places : sequence of int
        The number of each row.
    """

    X: Any
    Y: Any
    source: str
    word: str
    places: Sequence[int]

    def place(self, row: int) -> str:
        return f"{self.word} {self.places[row]}"

    def take(self, rows: Codes) -> tuple[Any, Any]:
        return _safe_indexing(self.X, rows), _safe_indexing(self.Y, rows)


class DoubtfulCells(NamedTuple):
    """The most improbable known states given the features and the other known states of their rows."""

    cells: SuspiciousCells
    n_rows: int
    """How many rows were looked at, those of the highest joint log-loss."""
    complete: bool
    """Whether no cell of another row can be less probable."""


class SetSizes(NamedTuple):
    """Prediction sets of one kind and coverage on rows that were not used for their calibration."""

    kind: str
    coverage: float
    found: float
    error: float
    sizes: Floats
    """Infinite for sets of all outcomes."""


class Sets(NamedTuple):
    lines: list[SetSizes]
    n_calibrated: int
    n_tested: int


@dataclass(frozen=True)
class Findings:
    """All that was measured; a part that could not be measured is a text that says why."""

    model: Any
    rows: Rows
    columns: list[Column]
    held_out: HeldOut
    losses: LossReport
    importance: Importance | str
    hardest: Codes
    """The rows of the highest joint log-loss that is finite."""
    n_impossible: int
    """Rows whose outcome has probability zero, mostly states that the model does not know."""
    doubtful: DoubtfulCells | None
    sets: Sets | str
    like_training: bool
    """Whether these are probably the training rows, by what the model knows of them."""

    @property
    def names(self) -> list[str]:
        return self.held_out.names


def measure(model: Any, rows: Rows, n_rows: int, random_state: Any) -> Findings:
    """Measure what a report tells; `n_rows` is the number of rows that are shown, 0 for none."""
    random = check_random_state(random_state)
    tell_phase("predicting")
    held_out = evaluate(model, rows.X, rows.Y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about values that the first prediction has told of
        measured = _importance(model, rows, held_out, random)
        sets = _prediction_sets(model, rows, held_out, random)
        doubtful = _doubtful(model, rows, held_out) if n_rows else None
    assert held_out.log_prob is not None
    finite = np.flatnonzero(np.isfinite(held_out.log_prob) & held_out.known.any(axis=1))
    hardest = finite[np.argsort(held_out.log_prob[finite], kind="stable")][:n_rows]
    columns = read_columns(rows.X, "X", type(model).__name__, allow_missing=True)
    return Findings(
        model,
        rows,
        columns,
        held_out,
        report_losses(model, rows.X, rows.Y, held_out=held_out),
        measured,
        hardest,
        int(np.isneginf(held_out.log_prob).sum()),
        doubtful,
        sets,
        is_like_training(model, columns, held_out.truth),
    )


def _complete(held_out: HeldOut) -> Codes:
    """Return the rows of which the model knows all states."""
    return np.flatnonzero((held_out.truth >= 0).all(axis=1))


def _importance(model: Any, rows: Rows, held_out: HeldOut, random: Any) -> Importance | str:
    n_features = len(model.feature_table_.names)
    if np.count_nonzero((held_out.truth >= 0).any(axis=1)) < 2:
        return "Not measured: it takes at least 2 rows with states that the model knows."
    most = int(np.clip(_MAX_SHUFFLED // n_features, _MIN_ROWS, _MAX_ROWS))
    n_repeats = _REPEATS if n_features <= _FEW_FEATURES else 1
    return importance(model, rows.X, rows.Y, n_repeats=n_repeats, max_rows=most, random_state=random)


def _prediction_sets(model: Any, rows: Rows, held_out: HeldOut, random: Any) -> Sets | str:
    complete = _complete(held_out)
    if len(complete) < _MIN_SET_ROWS:
        return (
            f"Not measured: {len(complete)} row(s) have only states that the model knows and no gap; it takes at least "
            f"{_MIN_SET_ROWS}, half of them to calibrate the sets and half to test them."
        )
    tell_phase("prediction sets")
    chosen = random.permutation(complete)[:_SET_ROWS]
    own, other = chosen[: len(chosen) // 2], chosen[len(chosen) // 2 :]
    X, _ = rows.take(other)
    truth, lines = held_out.truth[other], []
    for i, kind in enumerate(("outcomes", "variables")):
        calibration = model.calibrate_sets(*rows.take(own), kind=kind, max_outcomes=MAX_OUTCOMES)
        for j, coverage in enumerate(COVERAGES):
            found = model.predict_set(X, coverage, calibration=calibration)
            inside, sizes = _whole_sets(model, found, truth) if kind == "outcomes" else _state_sets(model, found, truth)
            lines.append(SetSizes(kind, coverage, *_mean(inside), sizes))
            tell_step(i * len(COVERAGES) + j + 1, 2 * len(COVERAGES))
    return Sets(lines, len(own), len(other))


def _mean(rows: Floats) -> tuple[float, float]:
    return float(rows.mean()), float(rows.std(ddof=1) / np.sqrt(len(rows)))


def _whole_sets(model: Any, found: Any, truth: Codes) -> tuple[Floats, Floats]:
    """Return which true outcomes are in their set, and how many outcomes are in each."""
    inside, sizes = np.ones(len(truth)), np.full(len(truth), np.inf)
    states = [known.tolist() for known in model.class_table_.states]
    for i, some in enumerate(found.outcomes):
        if some is not None:
            true = [own[code] for own, code in zip(states, truth[i].tolist(), strict=True)]
            inside[i], sizes[i] = any(outcome == true for outcome in some.tolist()), len(some)
    return inside, sizes


def _state_sets(model: Any, found: Any, truth: Codes) -> tuple[Floats, Floats]:
    """Return the share of class variables of each row whose true state is in its set, and the mean size of the sets."""
    masks = [found] if model.class_table_.one_dimensional else found
    every = np.arange(len(truth))
    inside = np.mean([mask[every, codes] for mask, codes in zip(masks, truth.T, strict=True)], axis=0)
    return inside, np.mean([mask.sum(axis=1) for mask in masks], axis=0)


def _doubtful(model: Any, rows: Rows, held_out: HeldOut) -> DoubtfulCells:
    """Look for improbable cells, beginning with the rows of the highest joint log-loss.

    A cell of probability p given the rest of its row has a row of log-loss -log p or more, so the search can end when
    the next row has a lower log-loss than the last cell listed.
    """
    assert held_out.log_prob is not None
    tell_phase("doubtful states")
    order = np.argsort(held_out.log_prob, kind="stable")
    order = order[(held_out.known.sum(axis=1) > 0)[order]]
    found: list[SuspiciousCells] = []
    done, complete = 0, False
    while not complete and done < min(len(order), _CELL_ROWS):
        some = order[done : done + _CELL_STEP]
        cells = improbable_cells(model, *rows.take(some), some)
        found.append(_known(cells, held_out))
        done += len(some)
        best = _least_probable(found)
        with np.errstate(divide="ignore"):
            last = np.log(best.prob[-1]) if len(best.prob) == N_CELLS else np.inf
        complete = done == len(order) or bool(last < held_out.log_prob[order[done]])
        tell_step(done, min(len(order), _CELL_ROWS))
    return DoubtfulCells(_least_probable(found), done, complete)


def _known(cells: SuspiciousCells, held_out: HeldOut) -> SuspiciousCells:
    """Leave out states that the model does not know: they are improbable for another reason."""
    column = np.array([held_out.names.index(name) for name in cells.names], dtype=np.int64)
    return _cells_at(cells, np.flatnonzero(held_out.truth[cells.rows, column] != UNKNOWN))


def _least_probable(found: Sequence[SuspiciousCells]) -> SuspiciousCells:
    cells = SuspiciousCells(*(np.concatenate(parts) for parts in zip(*found, strict=True)))
    return _cells_at(cells, np.lexsort((cells.rows, cells.prob))[:N_CELLS])


def _cells_at(cells: SuspiciousCells, index: Codes) -> SuspiciousCells:
    rows, names, states, expected, prob = cells
    return SuspiciousCells(rows[index], names[index], states[index], expected[index], prob[index])
