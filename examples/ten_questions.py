"""Draw the pictures of docs/questions.md.

python examples/ten_questions.py --out docs/images
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from pmdc import GBNC
from pmdc.datasets import load_election
from pmdc.learners import Logistic

BLUE, ORANGE, GREY = "#3b6fb6", "#d9822b", "#c9ced6"


def learn():
    """Return the joint distribution of one held-out voter."""
    survey = load_election(levels=3)
    seen = np.arange(len(survey.X)) % 3 > 0
    model = GBNC(Logistic(), criterion="bic", conditioning="partition").fit(survey.X[seen], survey.Y[seen])
    return model.predict_joint(survey.X.iloc[[39]])


def draw_marginals(joint, axes, label=None, offset=0.0, colour=BLUE, width=0.7):
    for ax, name, states, marginal in zip(
        axes, joint.class_table.names, joint.class_table.states, joint.marginals(), strict=True
    ):
        place = np.arange(len(states))
        ax.bar(place + offset, marginal[0], width=width, color=colour, label=label)
        ax.set_xticks(place, [str(state) for state in states], rotation=30, ha="right", fontsize=8)
        ax.set_title(name, fontsize=10)
        ax.set_ylim(0, 1)
        ax.spines[["top", "right"]].set_visible(False)


def marginals(joint, path):
    """Draw two predictions: the most probable state of each class variable, and the most probable outcome."""
    fig, axes = plt.subplots(1, 5, figsize=(10, 2.6), sharey=True)
    draw_marginals(joint, axes, colour=GREY)
    for loss, marker, colour, label in (
        ("hamming", "v", BLUE, "most probable state of each class variable"),
        ("subset", "D", ORANGE, "most probable outcome"),
    ):
        codes = joint.class_table.encode(joint.decide(loss).outcome)[0]
        for k, ax in enumerate(axes):
            height = joint.marginals()[k][0, codes[k]] + (0.05 if loss == "hamming" else 0.15)
            ax.plot(codes[k], height, marker, color=colour, markersize=8, label=label)
    axes[0].set_ylabel("probability")
    axes[2].legend(loc="upper center", bbox_to_anchor=(0.5, 1.45), ncols=2, frameon=False, fontsize=9)
    save(fig, path)


def top(joint, path):
    """Draw the most probable outcomes."""
    best = joint.top(8)
    fig, ax = plt.subplots(figsize=(8, 3))
    labels = [" · ".join(outcome) for outcome in best.outcomes[0]]
    prob = np.exp(best.log_prob[0])
    ax.barh(labels[::-1], prob[::-1], color=[BLUE] * 7 + [ORANGE])
    for i, p in enumerate(prob[::-1]):
        ax.text(p + 0.002, i, f"{p:.3f}", va="center", fontsize=8)
    ax.set_xlabel("probability")
    ax.set_title(" · ".join(joint.class_table.names), loc="right", fontsize=9)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    save(fig, path)


def pair(joint, path):
    """Draw the joint distribution of two class variables."""
    table = joint.marginal(["vote", "self"])[0]
    fig, ax = plt.subplots(figsize=(4.6, 2.6))
    ax.imshow(table, cmap="Blues", vmin=0, vmax=table.max() * 2)
    names = joint.class_table.names
    ax.set_xticks(range(3), [str(s) for s in joint.class_table.states[names.index("self")]])
    ax.set_yticks(range(2), [str(s) for s in joint.class_table.states[names.index("vote")]])
    for (i, j), p in np.ndenumerate(table):
        ax.text(j, i, f"{p:.2f}", ha="center", va="center")
    ax.set_xlabel("self")
    ax.set_ylabel("vote")
    save(fig, path)


def what_if(joint, path):
    """Draw the marginals without and with evidence."""
    fig, axes = plt.subplots(1, 5, figsize=(10, 2.6), sharey=True)
    draw_marginals(joint, axes, "without evidence", -0.2, GREY, 0.38)
    draw_marginals(joint.given({"party": "Republican"}), axes, "given party = Republican", 0.2, ORANGE, 0.38)
    axes[0].set_ylabel("probability")
    axes[2].legend(loc="upper center", bbox_to_anchor=(0.5, 1.45), ncols=2, frameon=False, fontsize=9)
    save(fig, path)


def information(joint, path):
    """Draw the mutual information of all pairs of class variables."""
    names = joint.class_table.names
    table = np.full((5, 5), np.nan)
    for i, one in enumerate(names):
        for j, other in enumerate(names):
            if i != j:
                table[i, j] = joint.mutual_information(one, other)[0]
    fig, ax = plt.subplots(figsize=(4.2, 3.4))
    ax.imshow(table, cmap="Blues", vmin=0, vmax=np.nanmax(table) * 2)
    for (i, j), value in np.ndenumerate(table):
        if i != j:
            ax.text(j, i, f"{value:.2f}", ha="center", va="center", fontsize=8)
    ax.set_xticks(range(5), names)
    ax.set_yticks(range(5), names)
    ax.set_title("mutual information (nats)", fontsize=10)
    save(fig, path)


def save(fig, path):
    fig.savefig(path, dpi=110, bbox_inches="tight")
    plt.close(fig)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    joint = learn()
    for draw in (marginals, top, pair, what_if, information):
        draw(joint, out / f"questions-{draw.__name__.replace('_', '-')}.png")


if __name__ == "__main__":
    main()
