"""Export of the network of one row to other tools."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pmdc._support.extras import require

if TYPE_CHECKING:
    from pmdc.inference.distribution import JointDistribution


def _probabilities(distribution: JointDistribution, k: int, row: int) -> Any:
    """Return the conditional table of a class variable, normalised again after the exponential."""
    table = np.exp(distribution.log_tables[k][row])
    return table / table.sum(axis=-1, keepdims=True)


def to_pgmpy(distribution: JointDistribution, row: int) -> Any:
    """Return a `pgmpy.models.DiscreteBayesianNetwork` with the names and states of the class variables."""
    models, factors = require("pgmpy.models"), require("pgmpy.factors.discrete")
    names, states, parents = distribution.class_table.names, distribution.class_table.states, distribution.parents
    network = models.DiscreteBayesianNetwork()
    network.add_nodes_from(names)
    network.add_edges_from([(names[p], names[k]) for k, members in enumerate(parents) for p in members])
    for k, members in enumerate(parents):
        network.add_cpds(
            factors.TabularCPD(
                names[k],
                len(states[k]),
                _probabilities(distribution, k, row).reshape(-1, len(states[k])).T,
                evidence=[names[p] for p in members] or None,
                evidence_card=[len(states[p]) for p in members] or None,
                state_names={names[v]: states[v].tolist() for v in (k, *members)},
            )
        )
    return network


def to_bif(distribution: JointDistribution, row: int) -> str:
    """Return the Bayesian interchange format, version 0.15.

    It allows only letters, digits and underscores in names: other names are rewritten, and numbered if not unique.
    """
    table = distribution.class_table
    names = _words(table.names)
    states = [_words([str(state) for state in known.tolist()]) for known in table.states]
    blocks = ["network pmdc {\n}\n"]
    for name, known in zip(names, states, strict=True):
        blocks.append(f"variable {name} {{\n  type discrete [ {len(known)} ] {{ {', '.join(known)} }};\n}}\n")
    for k, members in enumerate(distribution.parents):
        probabilities = _probabilities(distribution, k, row)
        lines = []
        for configuration in product(*(range(len(states[p])) for p in members)):
            numbers = ", ".join(repr(float(p)) for p in probabilities[configuration])
            given = ", ".join(states[p][code] for p, code in zip(members, configuration, strict=True))
            lines.append(f"  ({given}) {numbers};\n" if members else f"  table {numbers};\n")
        condition = f" | {', '.join(names[p] for p in members)}" if members else ""
        blocks.append(f"probability ( {names[k]}{condition} ) {{\n{''.join(lines)}}}\n")
    return "".join(blocks)


def _words(texts: list[str]) -> list[str]:
    """Return unique texts of letters, digits and underscores."""
    words: list[str] = []
    for text in texts:
        word = re.sub(r"\W+", "_", text, flags=re.ASCII) or "_"
        unique, number = word, 2
        while unique in words:
            unique, number = f"{word}_{number}", number + 1
        words.append(unique)
    return words
