"""A small table for the command line, as text."""

import numpy as np

FIT = ["--classes", "mood,works", "--estimator", "naive-bayes", "--max-parents", "1"]


def survey(n_rows=120, seed=0):
    """Rows of age, income, site (codes with leading zeros), colour, mood (text) and works (0 and 1)."""
    random = np.random.default_rng(seed)
    rows = ["age,income,site,colour,mood,works"]
    for _ in range(n_rows):
        works = int(random.random() < 0.5)
        mood = random.choice(["good", "bad", "so so"], p=[0.6, 0.2, 0.2] if works else [0.2, 0.6, 0.2])
        site = random.choice(["007", "012", "120"])
        colour = random.choice(["red", "blue"], p=[0.8, 0.2] if mood == "good" else [0.3, 0.7])
        rows.append(
            f"{20 + works * 5 + int(random.integers(30))},{random.normal(works):.3f},{site},{colour},{mood},{works}"
        )
    return "\n".join(rows) + "\n"
