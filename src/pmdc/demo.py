"""A one-minute demo: learn a network on real data, show it, and compare it with other methods.

python -m pmdc.demo --out out
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import KFold

from pmdc._support.arrays import Floats
from pmdc._support.progress import watching
from pmdc.baselines import BinaryRelevance, ClassifierChain, ClassPowerset
from pmdc.classifier import GBNC
from pmdc.datasets import load_election
from pmdc.estimator import MultiDimensionalClassifier
from pmdc.evaluation.held_out import evaluate
from pmdc.network.summary import describe_structure

_METHODS: dict[str, tuple[MultiDimensionalClassifier, tuple[str, str]]] = {
    # the classifier, and its decisions for the Hamming loss and for the subset 0/1 loss
    "GBNC": (GBNC(), ("hamming", "subset")),
    "binary relevance": (BinaryRelevance(), ("hamming", "subset")),
    "classifier chain": (ClassifierChain(), ("greedy", "greedy")),
    "class powerset": (ClassPowerset(), ("hamming", "subset")),
}


def cross_validate(model: MultiDimensionalClassifier, losses: Sequence[str], X: Any, Y: Any, n_folds: int) -> Floats:
    """Compute Hamming loss, subset 0/1 loss and joint log-loss of each fold; shape (n_folds, 3)."""
    rows = []
    for train, test in KFold(n_folds, shuffle=True, random_state=0).split(X):
        model.fit(X.iloc[train], Y.iloc[train])
        held_out = evaluate(model, X.iloc[test], Y.iloc[test], losses)
        assert held_out.log_prob is not None
        hamming, subset = (held_out.wrong(loss) for loss in losses)
        rows.append([hamming.mean(), subset.any(axis=1).mean(), -held_out.log_prob.mean()])
    return np.array(rows)


def graph_text(model: GBNC) -> str:
    """Return the structure as text, one class variable per line."""
    lines = []
    for child, parents in model.structure_.parents.items():
        lines.append(f"  {child:<10} depends on {', '.join(sorted(parents)) or 'the features alone'}")
    return "\n".join(lines)


def comparison_table(results: dict[str, Floats]) -> str:
    """Return the means over folds with their standard errors as text."""
    lines = [f"  {'':<18}{'Hamming loss':>18}{'subset 0/1 loss':>18}{'joint log-loss':>18}"]
    for name, folds in results.items():
        error = folds.std(axis=0, ddof=1) / np.sqrt(len(folds))
        cells = (f"{mean:.3f} ± {e:.3f}" for mean, e in zip(folds.mean(axis=0), error, strict=True))
        lines.append(f"  {name:<18}" + "".join(f"{cell:>18}" for cell in cells))
    return "\n".join(lines)


class _Compilation:
    """A progress watcher that only reports compilation."""

    def phase(self, name: str) -> None:
        if name.startswith("compiling"):
            sys.stderr.write(f"{name} ...\n")

    def step(self, done: float, total: float) -> None:
        pass


def survey_table() -> Any:
    """Return the survey as one table."""
    survey = load_election(levels=3)
    return survey.X.join(survey.Y)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the demo; writes ``graph.png`` into the folder given by ``--out``."""
    parser = argparse.ArgumentParser(prog="python -m pmdc.demo", description="Learn a network on an election survey.")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the picture (default: out)")
    parser.add_argument("--folds", type=int, default=5, help="folds of the comparison (default: 5)")
    options = parser.parse_args(arguments)
    write = sys.stdout.write

    survey = load_election(levels=3)
    write(f"US election survey 1996: {len(survey.X)} respondents\n")
    write(f"  class variables  {', '.join(survey.Y.columns)}\n")
    write(f"  features         {', '.join(survey.X.columns)} (education is discrete)\n\n")
    sys.stdout.flush()

    with watching(_Compilation()):
        model = GBNC().fit(survey.X, survey.Y)
    write(f"The graph, {describe_structure(model.structure_)}:\n")
    write(graph_text(model) + "\n\n")

    write(f"Held-out losses, {options.folds}-fold cross-validation, mean ± standard error (lower is better):\n")
    results = {
        name: cross_validate(model, losses, survey.X, survey.Y, options.folds)
        for name, (model, losses) in _METHODS.items()
    }
    write(comparison_table(results) + "\n\n")

    import matplotlib

    matplotlib.use("Agg")
    options.out.mkdir(parents=True, exist_ok=True)
    picture = options.out / "graph.png"
    figure: Any = model.plot(title="What the answers depend on").figure
    figure.savefig(picture, dpi=150)
    write(f"The graph was drawn to {picture}\n")


if __name__ == "__main__":
    main()
