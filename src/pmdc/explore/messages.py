"""The requests and answers of the JSON interface, as types that pydantic checks and OpenAPI describes.

The types of requests depend on the model: a row has the model's columns, and known states are those of its class
variables.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    WithJsonSchema,
    create_model,
    with_config,
)
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from pmdc._support.checks import suggest
from pmdc.explore.values import MAX_EXACT, States, shown
from pmdc.table.features import FeatureTable

MAX_TOP = 1000
MAX_SET_OUTCOMES = 100
"""A larger set of outcomes is not listed."""
MAX_LISTED = 2_000_000
"""States in the outcomes of an answer: rows times outcomes times class variables."""

_STRICT = ConfigDict(extra="forbid")
_EXAMPLES = 50
"""At most so many values are listed in a description."""
_ALL, _EACH = "all rows", "each row"
_SCALAR = ["string", "number", "boolean", "null"]


class Request(BaseModel):
    """A request; what it does not know is an error."""

    model_config = _STRICT


@dataclass(frozen=True)
class Requests:
    """The types of the requests to one model."""

    predict: type[BaseModel]
    explain: type[BaseModel]
    ask: type[BaseModel]
    rows: type[BaseModel]


def request_types(features: FeatureTable, states: Sequence[States], losses: Sequence[str], max_rows: int) -> Requests:
    """Return the types of the requests to a model."""
    row = _row_type(features)
    known = _known_type("KnownStates", states, several=True)
    single = _known_type("KnownSingleStates", states, several=False)
    variable = _choice("class variable", [own.name for own in states])
    loss = (_choice("loss", losses), Field(losses[0], description="By default that of the model."))
    scalar = Annotated[Any, WithJsonSchema({"type": _SCALAR})]
    predict = {
        "rows": (_list(row, min_length=1, max_length=max_rows), ...),
        "given": (_for_all_or_each(known), Field(None, description="Known states: of all rows, or a list for each.")),
        "loss": loss,
        "marginals": (StrictBool, True),
        "top": (StrictInt, Field(0, ge=0, le=MAX_TOP, description="At most so many most probable outcomes.")),
        "coverage": (
            StrictFloat | None,
            Field(None, gt=0, lt=1, description="Sets that contain the truth with this probability."),
        ),
    }
    other = _request("Other", {"row": (row, ...), "given": (single | None, None)})
    explain = {
        "row": (row, ...),
        "variable": (variable, ...),
        "state": (scalar, Field(None, description="By default the most probable state.")),
        "given": (single | None, None),
        "index": (
            StrictInt | None,
            Field(None, ge=0, le=MAX_EXACT, description="The row of the table that this row takes the place of."),
        ),
        "compare": (other | None, Field(None, description="The first of two rows, instead of the average row.")),
        "by": (Literal["features", "experts"], "features"),
    }
    ask = {"row": (row, ...), "given": (known | None, None), "loss": loss}
    return Requests(
        _request("Predict", predict),
        _request("Explain", explain),
        _request("Ask", ask),
        _rows_type(features, variable),
    )


def _request(name: str, fields: dict[str, Any]) -> Any:
    return create_model(name, __base__=Request, **fields)


def _list(of: Any, **limits: Any) -> Any:
    return Annotated[list[of], Field(**limits)]


def _for_all_or_each(known: Any) -> Any:
    """Return the type of known states of all rows, or a list of those of each row."""
    alternatives = {_ALL: known, _EACH: _list(known | None)}
    return _one_of(alternatives, lambda given: _EACH if isinstance(given, list) else _ALL) | None


def _one_of(alternatives: dict[str, Any], choose: Callable[[Any], str]) -> Any:
    """Return a type of alternatives, of which the value itself tells which one it is."""
    return _chosen(reduce(or_, (_tagged(own, tag) for tag, own in alternatives.items())), choose)


def _tagged(kind: Any, tag: str) -> Any:
    return Annotated[kind, Tag(tag)]


def _chosen(kinds: Any, choose: Callable[[Any], str]) -> Any:
    return Annotated[kinds, Discriminator(choose)]


# Rows and known states --------------------------------------------------------------------------------------------


def _row_type(features: FeatureTable) -> Any:
    """Return the type of a row: a value or null for each column."""
    fields: dict[str, Any] = {}
    parts = features.date_names
    for i, name in enumerate(features.names):
        if i in features.discrete:
            fields[name] = _category(States(name, features.values(features.discrete.index(i))))
        elif name in parts:
            kind = datetime.time if parts[name] == ["time"] else datetime.datetime
            fields[name] = _checked(_iso(kind), {"anyOf": [*_FORMS[kind], {"type": "null"}], "examples": [_ISO[kind]]})
        elif i in features.continuous:
            fields[name] = Annotated[float, Field(strict=True, allow_inf_nan=False)] | None
        else:
            fields[name] = _checked(_scalar, {"type": _SCALAR, "description": "Ignored by the model."})
    row = TypedDict("Row", fields)  # type: ignore[misc]
    return with_config(_STRICT)(row)


def _checked(check: Callable[[Any], Any], schema: dict[str, Any]) -> Any:
    return Annotated[Any, BeforeValidator(check), WithJsonSchema(schema)]


def _category(known: States) -> Any:
    """Return the type of a value of a discrete feature: one of the known values, or another of their type."""
    kind: type[Any] = type(known.listed[0]) if known.listed else str
    kinds, word = {str: (str, "string"), bool: (bool, "boolean")}.get(kind, ((int, float), "number"))

    def check(value: Any) -> Any:
        if value is not None and (not isinstance(value, kinds) or (word == "number" and isinstance(value, bool))):
            raise _error(f"{shown(value)} is not a {word}, as the values {known.listed[:3]} of {known.name!r} are")
        return _sendable(value)

    return _checked(check, {"type": [word, "null"], "examples": known.listed[:_EXAMPLES]})


def _scalar(value: Any) -> Any:
    if value is not None and not isinstance(value, (str, int, float)):
        raise _error("must be a string, a number, true, false or null")
    return _sendable(value)


def _bound(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (str, int, float, type(None))):
        raise _error("must be a number, or a date as a string, or null")
    return _sendable(value)


def _sendable(value: Any) -> Any:
    """Return a string or number that tables and answers can hold."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _error(_NO_UNICODE) from None
    elif isinstance(value, (int, float)) and not abs(value) <= sys.float_info.max:
        raise _error("must be a finite number")
    return value


_ISO: dict[type, str] = {datetime.datetime: "2024-01-31", datetime.time: "12:30:00"}
_FORMS: dict[type, list[dict[str, str]]] = {
    datetime.datetime: [{"type": "string", "format": own} for own in ("date", "date-time")],
    datetime.time: [{"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$"}],
}


def _iso(kind: type[datetime.datetime] | type[datetime.time]) -> Callable[[Any], str | None]:
    def check(value: Any) -> str | None:
        if value is None:
            return None
        try:
            kind.fromisoformat(value)
        except (TypeError, ValueError):
            word = "time" if kind is datetime.time else "date"
            raise _error(f"{shown(value)} is not a {word} such as {_ISO[kind]}") from None
        return str(value)

    return check


def _known_type(name: str, states: Sequence[States], several: bool) -> Any:
    """Return the type of known states: the code of a state, or if `several`, a list of codes that are possible."""

    def field(own: States) -> Any:
        def check(value: Any) -> Any:
            if value is None:
                return None
            if isinstance(value, list) and several:
                if not value:
                    raise _error(f"a list of states of {own.name!r} must not be empty")
                return [read(one) for one in value]
            return read(value)

        def read(value: Any) -> int:
            if isinstance(value, (list, dict)):
                raise _error(f"must be a state of {own.name!r}, not a list or an object")
            try:
                return own.require(value)
            except ValueError as error:
                raise _error(str(error)) from None

        one = {"enum": own.listed}
        choices: list[Any] = [one, {"type": "null"}]
        if several:
            choices.insert(1, {"type": "array", "items": one, "minItems": 1, "description": "One of these."})
        return _checked(check, {"anyOf": choices})

    known = TypedDict(name, {own.name: field(own) for own in states}, total=False)  # type: ignore[misc]
    return with_config(_STRICT)(known)


def _choice(what: str, names: Sequence[str]) -> Any:
    """Return the type of a name out of a list."""

    def check(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise _error(f"{shown(value)} is not a {what}{suggest(value, names)}")
        return value

    return _checked(check, {"enum": list(names)})


def _error(message: str) -> PydanticCustomError:
    return PydanticCustomError("value", "{message}", {"message": message})


# The row picker ---------------------------------------------------------------------------------------------------


def _rows_type(features: FeatureTable, variable: Any) -> Any:
    feature = _choice("column", features.names)
    scalar = _checked(_scalar, {"type": _SCALAR})
    bound = _checked(_bound, {"type": ["string", "number", "null"]})
    filters: dict[str, dict[str, Any]] = {
        "feature": {
            "feature": (feature, ...),
            "min": (bound, None),
            "max": (bound, None),
            "values": (_list(scalar) | None, None),
        },
        "state": {
            "variable": (variable, ...),
            "state": (scalar, ...),
            "of": (Literal["true", "predicted"], "true"),
        },
        "error": {
            "error": (Literal["none", "any", "variable"], ...),
            "variable": (variable | None, None),
        },
    }

    def kind(value: Any) -> str:
        keys = value if isinstance(value, dict) else ()
        return "error" if "error" in keys else "feature" if "feature" in keys else "state"

    one = _one_of({tag: _request(f"{tag.title()}Filter", own) for tag, own in filters.items()}, kind)
    return _request(
        "Rows",
        {
            "search": (StrictStr, Field("", max_length=1000)),
            "filters": (_list(one, max_length=100), []),
            "offset": (StrictInt, Field(0, ge=0, le=MAX_EXACT)),
            "limit": (StrictInt, Field(50, ge=0, le=1000)),
        },
    )


# Errors -----------------------------------------------------------------------------------------------------------

_NO_UNICODE = "must be Unicode text, without halves of characters (lone surrogates)"
_TAGS = (_ALL, _EACH, "feature", "state", "error")


class Problem(Exception):
    """A request that cannot be answered, with the status and what the client is told."""

    def __init__(self, message: str, field: str | None = None, code: str = "invalid", status: int = 422):
        super().__init__(message)
        self.message, self.field, self.code, self.status = message, field, code, status

    def to_json(self) -> dict[str, Any]:
        return {"error": {"code": self.code, "message": self.message, "field": self.field}}


def problem_of(errors: Sequence[Any], columns: Sequence[str], variables: Sequence[str]) -> Problem:
    """Return the first error that pydantic found, in plain words."""
    error = errors[0]
    place = list(error["loc"])
    if place and place[0] in ("body", "path", "query"):
        del place[0]
    if len(place) > 1 and place[0] in ("given", "filters"):  # without the names of alternatives
        at = 1 if place[0] == "given" else 2
        if len(place) > at and place[at] in _TAGS:
            del place[at]
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".") or None
    message = _message(error, place, columns, variables).rstrip(".")
    if error["type"] == "json_invalid":
        field = None
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    end = "" if message.endswith("?") and not more else "."
    return Problem(f"{field}: {message}{more}{end}" if field else f"{message}{more}{end}", field)


def _message(error: Any, place: Sequence[Any], columns: Sequence[str], variables: Sequence[str]) -> str:
    """Return what is wrong, without the name of the field."""
    kind, value, detail = error["type"], error["input"], error.get("ctx", {})
    if kind == "json_invalid":
        return f"the body is not JSON ({detail['error']})"
    if kind == "string_unicode":
        return f"all strings {_NO_UNICODE}"
    if not place:
        return "the body must be a JSON object, with Content-Type: application/json"
    if kind == "missing":
        row = place[-1] in columns and ("row" in place or "rows" in place)
        return "the column is missing: give it a value, or null if it is not known" if row else "it is missing: give it"
    if kind == "extra_forbidden":
        known = variables if "given" in place else columns if "row" in place or "rows" in place else ()
        return f"{shown(place[-1])} is not known" + (suggest(place[-1], list(known)) if known else "")
    if kind in ("float_type", "int_type") and isinstance(value, (str, bool, int, float)):
        return f"{shown(value)} is not a {'number' if kind == 'float_type' else 'whole number'}"
    if kind == "too_long":
        return f"{detail['actual_length']} are too many, there may be {detail['max_length']}: send several requests"
    if kind == "too_short":
        return "give at least one"
    if kind in ("dict_type", "model_type", "model_attributes_type"):
        return "must be a JSON object"
    if kind == "list_type":
        return "must be a JSON list"
    if kind in ("int_parsing", "int_parsing_size"):
        return f"{shown(value)} is not a whole number"
    message = str(error["msg"]).removeprefix("Input ")
    return message[:1].lower() + message[1:]
