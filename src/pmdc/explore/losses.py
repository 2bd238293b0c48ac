"""The losses that can be chosen for a model, in words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pmdc.decisions.decide import LOSSES, LossLike, resolve

OWN = "own"
"""The name of a loss object or function that the model was made with."""

_WORDS = {
    "hamming": ("Each wrong state (Hamming)", "The share of class variables that are predicted wrongly."),
    "balanced": (
        "Each wrong state, rare ones counting more (balanced)",
        "The mean of the wrong class variables, each weighted by how rare its true state was in training: on average "
        "one minus the balanced accuracy.",
    ),
    "subset": ("Any mistake (subset 0/1)", "Whether any class variable is predicted wrongly."),
    "sub-exact": ("More than one mistake", "Whether more than one class variable is predicted wrongly."),
    "f1_samples": ("F1 of each row", "One minus the F1 measure of the positive class variables of each row."),
    "jaccard": (
        "Jaccard index of each row",
        "One minus the share of class variables that are predicted and truly positive among those that are either.",
    ),
    "f1_macro": ("Macro F1", "One minus the mean of the F1 measures of the class variables, over all rows."),
    "f1_micro": ("Micro F1", "One minus the F1 measure of all cells, over all rows."),
}


@dataclass(frozen=True)
class NamedLoss:
    """A loss and what people are told of it."""

    loss: LossLike
    title: str
    description: str

    def to_json(self, name: str) -> dict[str, Any]:
        return {
            "name": name,
            "title": self.title,
            "description": self.description,
            "whole_batch": resolve(self.loss).whole_batch,
        }


def known_losses(model: Any) -> dict[str, NamedLoss]:
    """Return the losses that fit a model by name, the model's own first."""
    found = {}
    if not isinstance(model.loss, str):
        shown = getattr(model.loss, "__name__", type(model.loss).__name__)
        found[OWN] = NamedLoss(model.loss, f"The model's own ({shown})", "The loss that the model was made with.")
    names = sorted(LOSSES, key=lambda name: name != model.loss)  # a stable order
    for name in names:
        try:
            resolve(name).check(model.class_table_)
        except ValueError:  # such as an F-measure of class variables with more than two states
            continue
        found[name] = NamedLoss(name, *_WORDS[name])
    return found
