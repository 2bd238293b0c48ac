"""The answers to requests about a model: predictions, explanations, what to ask next.

The same request has the same answer: an `Interface` keeps nothing but the model and the table beside it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from pmdc._support.arrays import Codes
from pmdc._support.extras import require
from pmdc.decisions.decide import choose, resolve
from pmdc.explain import Explanation, explain_difference, explain_row, value_of_features
from pmdc.explain.explanation import Contribution, probability
from pmdc.explore.description import describe
from pmdc.explore.losses import known_losses
from pmdc.explore.messages import MAX_LISTED, MAX_SET_OUTCOMES, Problem, request_types
from pmdc.explore.predictions import Calibrations, answers, true_ranks
from pmdc.explore.reading import Reader, Row
from pmdc.explore.table import Table, predict_all
from pmdc.explore.turns import Turns, client_gone
from pmdc.explore.values import to_json, to_key
from pmdc.inference.base import BaseDistribution
from pmdc.inference.evidence import NO_EVIDENCE, Evidence, ImpossibleEvidenceError
from pmdc.table.features import Features

MAX_ROWS = 10_000
"""Rows of a request, by default."""
SECONDS = 30.0
"""Time for the answer to a request, by default."""

_STEP = 500
"""Rows predicted at once; after them, another request has its turn."""
_TABLE_STEP = 100
"""The same while the table is predicted, which nobody waits for."""
_KEPT_ROWS = 8
"""Rows of which the distribution is kept, because people ask several questions about the same row."""
_CALIBRATION_ROWS, _CALIBRATION_STEP = 1000, 200
"""Rows that calibrate sets, at most, and at once."""
_QUESTION_ROWS, _FEW_ROWS, _QUESTIONS = 200, 20, 4000
"""Rows of the table that tell what a missing feature may turn out to be: at most, at least, and times features."""


class Interface:
    """A model, and perhaps a table, that answers requests.

    Parameters
    ----------
    model : fitted classifier of pmdc
    table : Table, optional
        Rows to look at. They are also the background of explanations; those with known outcomes calibrate sets.
    title : str
        The name of the model, for people.
    max_rows : int
        The largest number of rows of a request.
    seconds : float
        The time for an answer.
    """

    def __init__(
        self,
        model: Any,
        table: Table | None = None,
        title: str = "",
        max_rows: int = MAX_ROWS,
        seconds: float = SECONDS,
    ):
        self.model, self.table, self.title = model, table, title
        self.max_rows, self.seconds = max_rows, seconds
        self.reader = Reader(model)
        self.losses = known_losses(model)
        self.requests = request_types(model.feature_table_, self.reader.states, list(self.losses), max_rows)
        self._turns = Turns()
        self._calibrations = lru_cache(maxsize=64)(self._calibrate)
        self._row = lru_cache(maxsize=_KEPT_ROWS)(self._distribution_of)

    @cached_property
    def schema(self) -> dict[str, Any]:
        """The answer to /schema: the class variables, the features, the losses and the table."""
        found = describe(self.model, self.reader, self.table)
        found["limits"] |= {"rows": self.max_rows, "seconds": self.seconds}
        listed = [own.to_json(name) for name, own in self.losses.items()]
        return {"title": self.title} | found | {"losses": listed, "default_loss": next(iter(self.losses))}

    # Requests -------------------------------------------------------------------------------------------------

    def predict(self, request: Any) -> dict[str, Any]:
        """Answer /predict: predictions, marginals, most probable outcomes and sets of rows."""
        loss, n = self.losses[request.loss].loss, len(request.rows)
        self._check_length(request)
        evidence = self.reader.evidence(request.given, n)
        short = n == 1 and not request.top and request.coverage is None  # a click on the page waits for it
        step = n if resolve(loss).whole_batch else _STEP
        messages, rows, end = list[str](), list[dict[str, Any]](), time.monotonic() + self.seconds
        calibrations = self._calibrations_for(evidence) if request.coverage is not None else None
        features: Features | None = None
        if n > 1:
            with self._computing(messages, end), _as_problem("rows"):
                features = self.model._read(self.reader.table(request.rows))
        for start in range(0, n, step):
            block = slice(start, start + step)
            with self._computing(messages, end, short=short), _as_problem("loss", "rows"):
                if features is None:
                    joint = self._joint_of(request.rows[0], messages)
                else:
                    joint = self.model._distribution(features.rows(block))
                joint = self._given(joint, evidence[block], start)
                rows += answers(joint, loss, self.reader.states, request, calibrations)
        found: dict[str, Any] = {"loss": request.loss, "rows": rows, "warnings": messages}
        if request.coverage is not None:
            found["calibrated"] = None if calibrations is None else {"n_rows": calibrations.n_rows}
        return found

    def explain(self, request: Any) -> dict[str, Any]:
        """Answer /explain: contributions to the log-odds of a state, compared with the average row or another one."""
        variable, state, messages = request.variable, self._state(request), list[str]()
        end = time.monotonic() + self.seconds
        given, field = self.reader.named(request.given), "by" if request.by == "experts" else "variable"
        for place, own in (("given", request), ("compare.given", request.compare)):
            if own is not None and (own.given or {}).get(variable) is not None:
                raise Problem(f"{place}: {variable!r} is to be explained, so it cannot be known: leave it out.", place)
        if request.compare is None:
            X, row = self._beside_table(request.row, request.index)
            with self._computing(messages, end), _as_problem(field):
                found = explain_row(self.model, X, row, variable, state, given, by=request.by)
        else:
            first = request.compare
            X, both = self.reader.table([first.row, request.row]), (self.reader.named(first.given), given)
            with self._computing(messages, end), _as_problem(field):
                found = explain_difference(self.model, X, (0, 1), variable, state, both, by=request.by)
        return self._explanation(found, request) | {"warnings": messages}

    def ask(self, request: Any) -> dict[str, Any]:
        """Answer /ask: by how much the expected loss decreases if a class variable or a missing feature is known."""
        loss, messages = self.losses[request.loss].loss, list[str]()
        if resolve(loss).whole_batch:
            raise Problem(f"loss: {request.loss!r} is a loss of many rows together: choose another one.", "loss")
        evidence = self.reader.evidence(request.given, 1)
        end = time.monotonic() + self.seconds
        with self._computing(messages, end), _as_problem("loss"):
            joint = self._given(self._joint_of(request.row, messages), evidence)
            choice = choose(joint, loss)
            values = joint.value_of_information(loss)[0].tolist()
        with self._computing(messages, end), _as_problem("loss"):
            features = self._values_of_features(request, loss)
        listed = zip(self.reader.states, evidence.codes[0], values, strict=True)
        asked = [{"name": own.name, "value": value} for own, code, value in listed if code == NO_EVIDENCE]
        return {
            "loss": request.loss,
            "expected_loss": float(choice.expected_loss[0]),
            "class_variables": sorted(asked, key=lambda own: -own["value"]),
            "features": sorted(features, key=lambda own: -(own["value"] or 0.0)),
            "exact": bool(choice.proved.all()) and not any("approximate" in text for text in messages),
            "warnings": messages,
        }

    @property
    def paths(self) -> dict[str, tuple[Any, Callable[[Any], dict[str, Any]]]]:
        """The type and the answer of each request that has a body."""
        return {
            "/predict": (self.requests.predict, self.predict),
            "/explain": (self.requests.explain, self.explain),
            "/ask": (self.requests.ask, self.ask),
        }

    def predict_table(self) -> None:
        """Predict all rows of the table, for the list of rows."""

        def predict(rows: slice) -> Codes:
            assert self.table is not None
            with self._computing([]):
                return choose(self.model.predict_joint(_safe_indexing(self.table.X, rows)), "hamming").codes

        if self.table is not None:
            predict_all(self.table, predict, _TABLE_STEP)

    # Predictions ----------------------------------------------------------------------------------------------

    @contextmanager
    def _computing(self, messages: list[str], end: float = math.inf, *, short: bool = False) -> Iterator[None]:
        """Wait for one's turn, and record the warnings of the library, which are those of the whole process.

        If the turn comes after the time `end`, or after the client has gone, nothing is computed.
        """
        with self._turns.take(short=short), warnings.catch_warnings(record=True) as caught:
            if client_gone():
                raise Problem("The client has gone away.", None, "gone", 499)
            if time.monotonic() > end:
                message = f"The answer took more than {self.seconds:g} seconds: send fewer rows at a time."
                raise Problem(message, None, "timeout", 503)
            warnings.simplefilter("always")
            yield
        messages += [text for text in _texts(caught) if text not in messages]

    def _check_length(self, request: Any) -> None:
        """Refuse a request whose answer would take too much memory."""
        sets = MAX_SET_OUTCOMES if request.coverage is not None else 0
        each = (request.top + sets) * len(self.reader.states)
        if each * len(request.rows) > MAX_LISTED:
            most = max(1, MAX_LISTED // each)
            what = "top" if request.top > sets else "coverage"
            raise Problem(
                f"{what}: {len(request.rows)} rows are too many for the outcomes listed for each: send at most {most} "
                f"at a time, or ask without {what}.",
                what,
            )

    def _joint_of(self, row: Row, messages: list[str]) -> BaseDistribution:
        """Return the distribution of a row, perhaps that of an earlier question."""
        joint, texts = self._row(tuple(to_key(row[name]) for name in self.reader.features.names))
        messages += [text for text in texts if text not in messages]
        return joint

    def _distribution_of(self, values: tuple[tuple[bool, Any], ...]) -> tuple[BaseDistribution, list[str]]:
        row = {name: value for name, (_, value) in zip(self.reader.features.names, values, strict=True)}
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            joint = self.model._distribution(self.model._read(self.reader.table([row])))
        return joint, _texts(caught)

    def _given(self, joint: BaseDistribution, evidence: Evidence, first: int = 0) -> BaseDistribution:
        if evidence.possible is None and (evidence.codes == NO_EVIDENCE).all():
            return joint
        try:
            return joint.given_evidence(evidence)
        except ImpossibleEvidenceError as error:
            raise Problem(
                f"given: the known states of row {first + error.row} have probability zero together, so nothing "
                "follows from them: leave one of them out.",
                "given",
                "impossible",
            ) from None

    def _calibrations_for(self, evidence: Evidence) -> Calibrations | None:
        """Return calibrations for rows in which the same class variables are known, otherwise None."""
        known = evidence.codes != NO_EVIDENCE
        if self.table is None or evidence.possible is not None or (known != known[:1]).any():
            return None
        return self._calibrations(tuple(known[0].tolist()))

    def _calibrate(self, known: tuple[bool, ...]) -> Calibrations | None:
        assert self.table is not None
        if self.table.truth is None or not len(self.table.complete()):
            return None
        with self._computing([]), _as_problem("coverage"):
            rows, joint = self._calibration_rows
        ranks = []
        for start in range(0, len(rows), _CALIBRATION_STEP):
            block = slice(start, start + _CALIBRATION_STEP)
            with self._computing([]), _as_problem("coverage"):
                ranks.append(true_ranks(joint.rows(block), self.table.truth[rows[block]], known))
        return Calibrations.of(ranks)

    @cached_property
    def _calibration_rows(self) -> tuple[Codes, BaseDistribution]:
        assert self.table is not None
        rows = self.table.complete()
        if len(rows) > _CALIBRATION_ROWS:
            rows = np.sort(np.random.RandomState(0).choice(rows, _CALIBRATION_ROWS, replace=False))
        return rows, self.model.predict_joint(_safe_indexing(self.table.X, rows))

    # Explanations and questions -------------------------------------------------------------------------------

    def _state(self, request: Any) -> Any:
        """Return the state to be explained; None for the most probable one."""
        if request.state is None:
            return None
        k = [own.name for own in self.reader.states].index(request.variable)
        try:
            return self.reader.state(k, self.reader.states[k].require(request.state))
        except (ValueError, TypeError) as error:
            raise Problem(f"state: {error}", "state") from None

    def _beside_table(self, row: Row, index: int | None) -> tuple[Any, int]:
        """Return the table with a row in the place of another or at its end, and its position."""
        if self.table is None:
            raise Problem(
                "compare: there is no table with whose average row this one could be compared: give another row here, "
                "or start with a table.",
                "compare",
            )
        X = self._frame
        if index is not None and index >= len(X):
            raise Problem(f"index: {index} is not a row of the table, which has {len(X)}, from 0.", "index")
        at = len(X) if index is None else index
        parts = [X.iloc[:at], self.reader.frame([row]), X.iloc[at + 1 :]]
        return self.reader.as_fitted(require("pandas").concat([p for p in parts if len(p)], ignore_index=True)), at

    @cached_property
    def _frame(self) -> Any:
        """The table as a DataFrame, in the types of `Reader.frame`."""
        assert self.table is not None
        return self.reader.frame([self.table.values(i) for i in range(len(self.table))])

    def _explanation(self, found: Explanation, request: Any) -> dict[str, Any]:
        k = [own.name for own in self.reader.states].index(found.variable)
        return {
            "variable": found.variable,
            "state": self.reader.state_json(k, found.state),
            "base": found.base,
            "base_probability": probability(found.base),
            "log_odds": found.log_odds,
            "probability": found.prob,
            "reference": "the average row" if request.compare is None else "the first row",
            "contributions": [_contribution(part) for part in found.contributions],
            "through": {name: [_contribution(part) for part in parts] for name, parts in found.through.items()},
        }

    def _values_of_features(self, request: Any, loss: Any) -> list[dict[str, Any]]:
        """Return what it is worth to know each feature that is missing in the row."""
        missing = [name for name, value in request.row.items() if value is None and self.reader.kind(name) != "ignored"]
        if self.table is None or not missing:
            return []
        found = value_of_features(
            self.model,
            self.table.X,
            loss,
            row=self.reader.table([request.row]),
            given=self.reader.named(request.given),
            features=missing,
            max_rows=int(np.clip(_QUESTIONS // len(missing), _FEW_ROWS, _QUESTION_ROWS)),
        )
        listed = zip(found.feature_names, found.value, found.standard_error, found.learned_gaps, strict=True)
        keys = "name", "value", "standard_error", "learned_gaps"
        return [dict(zip(keys, map(to_json, own), strict=True)) for own in listed if own[0] in missing]


def _texts(caught: list[warnings.WarningMessage]) -> list[str]:
    """Return the warnings that are for people, each once."""
    return list(dict.fromkeys(str(own.message) for own in caught if issubclass(own.category, UserWarning)))


def _contribution(part: Contribution) -> dict[str, Any]:
    value = [to_json(own) for own in part.value] if isinstance(part.value, tuple) else to_json(part.value)
    return part._asdict() | {"value": value}


@contextmanager
def _as_problem(field: str, row: str = "row") -> Iterator[None]:
    """Turn what the library refuses into a problem of a field; of `row` if its numbers are too large."""
    try:
        yield
    except ImpossibleEvidenceError as error:
        raise Problem(f"given: {error}", "given", "impossible") from error
    except FloatingPointError as error:
        raise Problem(f"{row}: {error}", row) from error
    except (ValueError, TypeError) as error:
        raise Problem(str(error), field) from error
