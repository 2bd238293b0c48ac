"""A network with non-linear marginals, where experts and graph together beat each of them alone."""

import numpy as np
import pytest

from pmdc import GBNC
from pmdc.metrics import joint_log_loss

NOISE = 0.08


def draw(n, seed):
    """y0 is the xor of two signs; y1 depends on y0 and |x2|; y2 on y1 and x3 x4."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y0 = (X[:, 0] > 0) ^ (X[:, 1] > 0) ^ (rng.random(n) < NOISE)
    y1 = np.where(rng.random(n) < NOISE, rng.integers(0, 3, n), y0.astype(int) + (np.abs(X[:, 2]) > 0.7))
    y2 = ((y1 == 1) & (X[:, 3] * X[:, 4] > -0.2)) ^ (rng.random(n) < NOISE)
    return X, np.column_stack([y0, y1, y2]).astype(int)


def truth():
    """The entropy of the class variables given the features, in nats."""
    flip = -(NOISE * np.log(NOISE) + (1 - NOISE) * np.log(1 - NOISE))
    own = 1 - NOISE + NOISE / 3
    return 2 * flip - own * np.log(own) - 2 * NOISE / 3 * np.log(NOISE / 3)


@pytest.fixture(scope="module")
def losses():
    """The held-out joint log-loss of the default, of the graph alone and of the experts alone; and the default."""
    train, test = draw(700, 0), draw(4000, 1)
    models = {name: GBNC(**parameters).fit(*train) for name, parameters in PARAMETERS.items()}
    return {name: joint_log_loss(test[1], model.predict_joint(test[0])) for name, model in models.items()}, models


PARAMETERS = {"both": {}, "graph": {"experts": None}, "experts": {"max_parents": 0}}


def test_both_beat_the_graph_alone_and_the_experts_alone(losses):
    found, _ = losses
    assert truth() < found["both"] < found["experts"] - 0.2
    assert found["both"] < found["graph"] - 0.5


def test_the_graph_is_that_of_the_network(losses):
    graph = losses[1]["both"].graph_
    assert {frozenset(edge) for edge in graph.edges} == {frozenset({"y0", "y1"}), frozenset({"y1", "y2"})}
    assert not losses[1]["experts"].graph_.edges


def test_the_experts_see_what_a_linear_model_cannot(losses):
    scores = {score.name: score for score in losses[1]["both"].experts_["y0"]}
    used = [score.log_loss for score in scores.values() if score.used]
    assert min(used) < np.log(2) - 0.2
    linear = scores["logistic regression"]
    assert np.isnan(linear.log_loss) or linear.log_loss > np.log(2) - 0.03
