"""Write the models of this folder, one for each kind of content, and what they predict.

    python tests/saved/write.py NAME ...

Files that are here stay as they are, so that those of earlier versions go on being read: write new ones under the name
of the version, and only when the format or what models hold has changed.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import VotingClassifier
from sklearn.pipeline import make_pipeline

import pmdc
from pmdc import GBNC, BinaryRelevance, ChainEnsemble
from pmdc.learners import Logistic, NaiveBayes

FOLDER = Path(__file__).parent


def table(n):
    """Mixed features and class variables, made without a random generator that may change."""
    i = np.arange(n)
    u, v = np.sin(12.9898 * i) * 2, np.cos(78.233 * i) * 3
    X = pd.DataFrame({"u": u, "v": v, "colour": pd.Categorical(np.array(["red", "green", "blue"])[i % 3])})
    noise = np.sin(i * i)
    Y = pd.DataFrame(
        {
            "size": pd.Categorical(
                np.array(["small", "large"])[(u + noise > 0).astype(int)], categories=["small", "medium", "large"]
            ),
            "count": (v + (u > 0) + noise > 1).astype("int64") + (i % 3 == 0),
            "ripe": (u * (i % 3 == 1) + noise) > 0,
            "kind": np.where((v > 0) == (u > 0), "a", "b"),
        }
    )
    return X, Y


def models():
    """The models by name."""
    X, Y = table(120)
    numbers, outcomes = X[["u", "v"]].to_numpy(), Y.astype({"size": str}).to_numpy(dtype=object)
    return {
        "gbnc-pandas": GBNC(experts=None, max_parents=2).fit(X, Y),
        "gbnc-naive-bayes": GBNC(NaiveBayes(), criterion="bic", conditioning="partition", max_parents=2).fit(X, Y),
        "gbnc-estimator": GBNC(LinearDiscriminantAnalysis(), max_parents=1).fit(numbers, outcomes),
        "relevance-pipelines": BinaryRelevance(
            VotingClassifier(
                [("one", make_pipeline(Logistic())), ("other", make_pipeline(NaiveBayes()))], voting="soft"
            )
        ).fit(X, Y),
        "chain-ensemble": ChainEnsemble(n_chains=3, random_state=0).fit(X, Y),
    }


def questions(name):
    """The rows that are asked about."""
    X, _ = table(20)
    return X[["u", "v"]].to_numpy() if name == "gbnc-estimator" else X


def answers(model, X):
    """Predictions and probabilities, for JSON."""
    joint = model.predict_joint(X)
    return {
        "predict": [[str(state) for state in row] for row in np.asarray(model.predict(X), dtype=object)],
        "proba": [proba.tolist() for proba in model.predict_proba(X)],
        "log_prob": joint.log_prob(joint.mode()[0]).tolist(),
    }


def main(names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = models()
        for name in names or found:
            place = FOLDER / f"{name}-{pmdc.__version__}"
            if Path(f"{place}.skops").exists():
                raise SystemExit(f"{place}.skops is there already")
            pmdc.save(found[name], f"{place}.skops")
            Path(f"{place}.json").write_text(json.dumps(answers(found[name], questions(name))) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
