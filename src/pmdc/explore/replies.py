"""The types of the answers, for the OpenAPI description; answers are not checked against them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from pmdc.explore.values import Json


class Fault(BaseModel):
    """What is wrong with a request."""

    code: str = Field(description="A word for programs, such as invalid, impossible, too_large or timeout.")
    message: str = Field(description="A sentence for people.")
    field: str | None = Field(description="The part of the request, such as rows[0].age.")


class ErrorReply(BaseModel):
    error: Fault


class Outcome(BaseModel):
    states: dict[str, Json]
    probability: float


class Sets(BaseModel):
    states: dict[str, list[Json]] = Field(description="For each class variable, the states in its set.")
    outcomes: list[dict[str, Json]] | None = Field(description="The outcomes in the set; null: too many to list.")
    probability: float = Field(description="The probability of these outcomes by the model.")


class RowPrediction(BaseModel):
    prediction: dict[str, Json] = Field(description="The prediction of least expected loss.")
    expected_loss: float
    standard_error: float = Field(description="Of the expected loss; 0 if it is exact.")
    proved: bool = Field(description="Whether it is proved that no prediction has a lower expected loss.")
    marginals: dict[str, list[float]] | None = Field(None, description="In the order of the states in /schema.")
    outcomes: list[Outcome] | None = Field(None, description="The most probable ones, with `top`.")
    sets: Sets | None = Field(None, description="With `coverage`.")


class Calibrated(BaseModel):
    n_rows: int


class PredictReply(BaseModel):
    loss: str
    rows: list[RowPrediction]
    calibrated: Calibrated | None = Field(
        None, description="The rows with known outcomes by which sets are calibrated; null: they rely on the model."
    )
    warnings: list[str]


class ContributionReply(BaseModel):
    kind: str
    name: str
    value: Json | list[Json]
    contribution: float
    standard_error: float


class ExplainReply(BaseModel):
    variable: str
    state: Json
    base: float = Field(description="The log-odds of the state in the average row, or in the first row.")
    base_probability: float
    log_odds: float = Field(description="The base plus all contributions.")
    probability: float
    reference: str
    contributions: list[ContributionReply]
    through: dict[str, list[ContributionReply]]
    warnings: list[str]


class VariableValue(BaseModel):
    name: str
    value: float = Field(description="By how much the expected loss decreases on average if it becomes known.")


class FeatureValue(BaseModel):
    name: str
    value: float | None
    standard_error: float | None
    learned_gaps: bool


class AskReply(BaseModel):
    loss: str
    expected_loss: float
    class_variables: list[VariableValue]
    features: list[FeatureValue] = Field(description="Those that are missing in the row; needs a table.")
    exact: bool
    warnings: list[str]


class ClassVariableReply(BaseModel):
    name: str
    states: list[Json]
    parents: list[str]


class LossReply(BaseModel):
    name: str
    title: str
    description: str
    whole_batch: bool


class SchemaReply(BaseModel):
    pmdc: str
    model: str
    title: str
    class_variables: list[ClassVariableReply]
    features: list[dict[str, Any]]
    losses: list[LossReply]
    default_loss: str
    n_outcomes: int | str
    explains: str | None
    limits: dict[str, float]
    table: dict[str, Any] | None


class HealthReply(BaseModel):
    status: str


class RowReply(BaseModel):
    index: int
    values: dict[str, Json]
    true: dict[str, Json] | None


class ListedRow(BaseModel):
    index: int
    text: str
    true: dict[str, Json] | None
    predicted: dict[str, Json] | None
    wrong: list[str]


class RowsReply(BaseModel):
    n_rows: int
    found: int
    predicted: int
    rows: list[ListedRow]


class Node(BaseModel):
    name: str
    x: float
    y: float
    width: float
    height: float


class Edge(BaseModel):
    parent: str
    child: str
    strength: float | None
    path: str


class GraphReply(BaseModel):
    width: float
    height: float
    nodes: list[Node]
    edges: list[Edge]
