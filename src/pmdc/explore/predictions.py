"""What /predict says of each row: prediction, marginals, most probable outcomes, sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from pmdc._support.arrays import Codes, Floats
from pmdc.decisions import prediction_sets
from pmdc.decisions.decide import LossLike, choose
from pmdc.decisions.losses import Choice
from pmdc.decisions.prediction_sets import Calibration
from pmdc.explore.messages import MAX_SET_OUTCOMES
from pmdc.explore.values import States
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import NO_EVIDENCE

Part = dict[str, Any]
"""What is said of a row: some of the members of its answer."""


class Ranks(NamedTuple):
    """Where the truth stands among the most probable states, and outcomes, of each row."""

    states: Floats
    outcomes: Floats


class Calibrations(NamedTuple):
    """Held-out rows by which sets are calibrated."""

    states: Calibration
    outcomes: Calibration

    @property
    def n_rows(self) -> int:
        return len(self.outcomes.ranks)

    @classmethod
    def of(cls, ranks: Sequence[Ranks]) -> Calibrations | None:
        """Calibrate by the ranks of the true states in some blocks of rows; None if there is no row."""
        states, outcomes = (np.concatenate(own) for own in zip(*ranks, strict=True))
        if not len(outcomes):
            return None
        return cls(
            Calibration("variables", states, MAX_SET_OUTCOMES), Calibration("outcomes", outcomes, MAX_SET_OUTCOMES)
        )


def true_ranks(joint: BaseDistribution, codes: Codes, known: Sequence[bool]) -> Ranks:
    """Rank the true states and outcomes of rows, if the states of some class variables are known.

    Rows whose known states have probability zero say nothing, because there is no distribution given them.
    """
    mask = np.array(known)
    if mask.any():
        evidence = np.where(mask, codes, NO_EVIDENCE)
        possible = np.flatnonzero(~np.isneginf(joint.log_prob_codes(evidence)))
        if not len(possible):
            return Ranks(np.empty((0, len(mask))), np.empty(0))
        joint, codes = joint.rows(possible).given_codes(evidence[possible]), codes[possible]
    return Ranks(
        prediction_sets.true_state_ranks(joint, codes),
        prediction_sets.outcome_ranks(joint, codes, MAX_SET_OUTCOMES),
    )


def answers(
    joint: BaseDistribution, loss: LossLike, states: Sequence[States], request: Any, calibrations: Calibrations | None
) -> Iterator[Part]:
    """Yield the answer about each row of a batch."""
    parts = [_decisions(choose(joint, loss), states)]
    if request.marginals:
        parts.append(_marginals(joint, states))
    if request.top:
        parts.append(_outcomes(joint, states, request.top))
    if request.coverage is not None:
        parts.append(_sets(joint, states, request.coverage, calibrations))
    for row in zip(*parts, strict=True):
        yield {key: value for part in row for key, value in part.items()}


def outcomes_by_name(codes: Codes, states: Sequence[States]) -> list[dict[str, Any]]:
    """Return outcomes, codes of shape (n, K), as objects of states."""
    names = [own.name for own in states]
    columns = [[own.listed[code] for code in column] for own, column in zip(states, codes.T.tolist(), strict=True)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _decisions(choice: Choice, states: Sequence[States]) -> list[Part]:
    n = len(choice.codes)
    members = (np.broadcast_to(own, n).tolist() for own in choice[1:])
    keys = "prediction", "expected_loss", "standard_error", "proved"
    return [
        dict(zip(keys, row, strict=True)) for row in zip(outcomes_by_name(choice.codes, states), *members, strict=True)
    ]


def _marginals(joint: BaseDistribution, states: Sequence[States]) -> list[Part]:
    names = [own.name for own in states]
    rows = zip(*(own.tolist() for own in joint.marginals()), strict=True)
    return [{"marginals": dict(zip(names, row, strict=True))} for row in rows]


def _outcomes(joint: BaseDistribution, states: Sequence[States], top: int) -> list[Part]:
    codes, log_prob = joint.top_codes(min(top, joint.n_outcomes))
    found = []
    for own, prob in zip(codes, np.exp(log_prob).tolist(), strict=True):
        listed = zip(outcomes_by_name(own, states), prob, strict=True)
        found.append({"outcomes": [{"states": outcome, "probability": p} for outcome, p in listed]})
    return found


def _sets(
    joint: BaseDistribution, states: Sequence[States], coverage: float, calibrations: Calibrations | None
) -> list[Part]:
    calibrated = calibrations is not None
    levels, level = np.full(len(states), coverage), coverage
    if calibrations is not None:
        levels, level = calibrations.states.levels(coverage), float(calibrations.outcomes.levels(coverage)[0])
    marks = [
        prediction_sets.state_sets(marginal, float(own), calibrated)
        for marginal, own in zip(joint.marginals(), levels, strict=True)
    ]
    listed, prob = prediction_sets.outcome_sets(joint, level, MAX_SET_OUTCOMES, calibrated)
    found = []
    for i, outcomes in enumerate(listed):
        chosen = {
            own.name: [own.listed[code] for code in np.flatnonzero(mark[i])]
            for own, mark in zip(states, marks, strict=True)
        }
        outcome_set = None if outcomes is None else outcomes_by_name(outcomes, states)
        found.append({"sets": {"states": chosen, "outcomes": outcome_set, "probability": float(prob[i])}})
    return found
