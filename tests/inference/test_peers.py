"""Answers beside those of pgmpy and pyAgrum, for the networks of the literature that pgmpy's wheel brings along."""

import gzip
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from pmdc.inference import JointDistribution
from problems import States

SMALL = ["asia", "cancer", "earthquake", "survey", "sachs", "child"]
MEDIUM = ["alarm", "insurance", "hailfinder", "hepar2", "win95pts", "water"]
LARGE = ["andes", "pathfinder", "mildew", "pigs"]
N_ROWS = 3


class Network:
    """A network with its own tables in the first row, and with changed ones, zeros kept, in the others."""

    def __init__(self, text):
        declared = re.findall(r"variable\s+(\S+)\s*{\s*type\s+discrete\s*\[[^]]*]\s*{([^}]*)}", text)
        states = {name: [state.strip() for state in listed.split(",")] for name, listed in declared}
        place = {name: k for k, name in enumerate(states)}
        self.names = list(states)
        self.sizes = [len(states[name]) for name in self.names]
        self.parents = [()] * len(place)
        self.tables = [np.empty(0)] * len(place)
        rng = np.random.default_rng(0)
        for name, before, entries in re.findall(r"probability\s*\(\s*([^\s|]+)\s*(?:\|([^)]*))?\)\s*{([^}]*)}", text):
            k, above = place[name], [parent.strip() for parent in before.split(",") if before]
            table = np.full([len(states[parent]) for parent in above] + [len(states[name])], np.nan)
            for configuration, numbers in re.findall(r"(?:table|\(([^)]*)\))\s*([^;]*);", entries):
                where = [state.strip() for state in configuration.split(",") if configuration]
                index = tuple(states[parent].index(state) for parent, state in zip(above, where, strict=True))
                table[index] = np.array(numbers.split(","), dtype=float)
            weights = np.stack([table] + [table * rng.gamma(2, size=table.shape) for _ in range(N_ROWS - 1)])
            self.tables[k] = weights / weights.sum(axis=-1, keepdims=True)
            self.parents[k] = tuple(place[parent] for parent in above)
        class_table = States(self.sizes)
        class_table.names = self.names
        with np.errstate(divide="ignore"):
            self.distribution = JointDistribution(class_table, self.parents, [np.log(table) for table in self.tables])

    def evidence(self):
        """States of some class variables that are possible together in all rows: by name, and as codes."""
        drawn = self.distribution.sample(1, random_state=0)[0]
        codes = self.distribution.class_table.encode(drawn)[0]
        some = np.random.default_rng(0).permutation(len(self.names))[:4].tolist()
        return {self.names[k]: drawn[0, k] for k in some}, {k: int(codes[k]) for k in some}


def text_of(name):
    spec = find_spec("pgmpy")
    if spec is None:
        pytest.skip("the networks come with pgmpy, which is not installed")
    packed = Path(spec.submodule_search_locations[0]) / "utils" / "example_models" / f"{name}.bif.gz"
    if not packed.is_file():
        pytest.skip(f"this version of pgmpy does not bring the network {name} along")
    return gzip.decompress(packed.read_bytes()).decode()


@cache
def network(name):
    return Network(text_of(name))


class Pgmpy:
    """One row of a network in pgmpy."""

    def __init__(self, net, row):
        pytest.importorskip("pgmpy")
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.inference import VariableElimination
        from pgmpy.models import DiscreteBayesianNetwork

        self.net = net
        self.model = DiscreteBayesianNetwork()
        self.model.add_nodes_from(net.names)
        self.model.add_edges_from((net.names[p], net.names[k]) for k, above in enumerate(net.parents) for p in above)
        for name, size, above, table in zip(net.names, net.sizes, net.parents, net.tables, strict=True):
            columns = table[row].reshape(-1, size).T
            above_names, above_sizes = [net.names[p] for p in above], [net.sizes[p] for p in above]
            self.model.add_cpds(TabularCPD(name, size, columns, above_names, above_sizes))
        self.engine = VariableElimination(self.model)

    def marginals(self, evidence):
        known = {self.net.names[k]: state for k, state in evidence.items()}
        unknown = [name for name in self.net.names if name not in known]
        answers = {name: self.engine.query([name], known, show_progress=False).values for name in unknown}
        certain = {self.net.names[k]: np.eye(self.net.sizes[k])[state] for k, state in evidence.items()}
        return [(answers | certain)[name] for name in self.net.names]

    def log_evidence(self, evidence):
        joint = self.engine.query([self.net.names[k] for k in evidence], show_progress=False)
        return np.log(joint.values[tuple(evidence.values())])

    def mode_log_prob(self, evidence):
        # For a Bayesian network max-marginals are normalised; evidence, and parts of the network that are eliminated
        # to a number, are forgotten. So a product of factors is asked, and one variable of each part is kept.
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.inference import VariableElimination

        tree = self.net.distribution.junction_tree
        kept = [self.net.names[v] for v in tree.order if tree.cliques[v].parent is None]
        order = [self.net.names[v] for v in tree.order if self.net.names[v] not in kept]
        factors = self.model.to_markov_model()
        for k, state in evidence.items():
            size = self.net.sizes[k]
            factors.add_factors(DiscreteFactor([self.net.names[k]], [size], np.eye(size)[state]))
        return np.log(VariableElimination(factors).max_marginal(kept, elimination_order=order, show_progress=False))


class PyAgrum:
    """One row of a network in pyAgrum."""

    def __init__(self, net, row):
        self.gum = pytest.importorskip("pyagrum")
        self.net = net
        self.model = self.gum.BayesNet()
        for name, size in zip(net.names, net.sizes, strict=True):
            self.model.add(self.gum.RangeVariable(name, name, 0, size - 1))
        for k, (above, table) in enumerate(zip(net.parents, net.tables, strict=True)):
            for p in reversed(above):  # then a table has our layout
                self.model.addArc(p, k)
            self.model.cpt(k).fillWith(table[row].reshape(-1))

    def _engine(self, evidence):
        engine = self.gum.LazyPropagation(self.model)
        engine.setEvidence(evidence)
        engine.makeInference()
        return engine

    def marginals(self, evidence):
        engine = self._engine(evidence)
        return [engine.posterior(k).toarray() for k in range(len(self.net.names))]

    def log_evidence(self, evidence):
        return np.log(self._engine(evidence).evidenceProbability())

    def mode_log_prob(self, evidence):
        # Its own `mpe` fails in many networks ("Empty tensor", version 3.3), so tensors are maximised one by one.
        tensors = [self.model.cpt(k) for k in range(len(self.net.names))]
        for k, state in evidence.items():
            known = self.gum.Tensor().add(self.model.variable(k))
            tensors.append(known.fillWith(np.eye(self.net.sizes[k])[state]))
        total = 0.0
        for k in self.net.distribution.junction_tree.order:
            name = self.net.names[k]
            potential, rest = None, []
            for tensor in tensors:
                if name not in tensor.names:
                    rest.append(tensor)
                else:
                    potential = tensor if potential is None else potential * tensor
            if potential.nbrDim() > 1:
                rest.append(potential.maxOut([name]))
            else:
                total += np.log(potential.max())
            tensors = rest
        return total


def beside(peers):
    pairs = [(name, peer) for peer, names in peers.items() for name in names]
    return pytest.mark.parametrize(("name", "peer"), pairs, ids=[f"{name}-{peer.__name__}" for name, peer in pairs])


@beside({Pgmpy: SMALL + MEDIUM, PyAgrum: SMALL + MEDIUM + LARGE})
def test_marginals(name, peer):
    net = network(name)
    others = [peer(net, row) for row in range(N_ROWS)]
    marginals = net.distribution.marginals()
    for row, other in enumerate(others):
        for marginal, expected in zip(marginals, other.marginals({}), strict=True):
            np.testing.assert_allclose(marginal[row], expected, atol=1e-10)


@beside({Pgmpy: SMALL + MEDIUM, PyAgrum: SMALL + MEDIUM + LARGE})
def test_evidence(name, peer):
    net = network(name)
    others = [peer(net, row) for row in range(N_ROWS)]
    evidence, codes = net.evidence()
    posterior = net.distribution.given(evidence)
    marginals = posterior.marginals()
    for row, other in enumerate(others):
        for marginal, expected in zip(marginals, other.marginals(codes), strict=True):
            np.testing.assert_allclose(marginal[row], expected, atol=1e-10)
        np.testing.assert_allclose(posterior.log_evidence[row], other.log_evidence(codes), atol=1e-9)


@beside({Pgmpy: SMALL + MEDIUM, PyAgrum: SMALL + MEDIUM + LARGE})
def test_mode(name, peer):
    net = network(name)
    others = [peer(net, row) for row in range(N_ROWS)]
    evidence, codes = net.evidence()
    mode, given = net.distribution.mode(), net.distribution.given(evidence).mode()
    np.testing.assert_allclose(net.distribution.log_prob(mode.outcome), mode.log_prob, rtol=1e-12)
    assert (net.distribution.class_table.encode(given.outcome)[:, list(codes)] == list(codes.values())).all()
    with_evidence = net.distribution.log_prob(given.outcome)
    for row, other in enumerate(others):
        np.testing.assert_allclose(mode.log_prob[row], other.mode_log_prob({}), rtol=1e-10)
        np.testing.assert_allclose(with_evidence[row], other.mode_log_prob(codes), rtol=1e-10)


@pytest.mark.parametrize("name", ["survey", "child"])
def test_networks_are_read_as_pgmpy_reads_them(name):
    """Otherwise all might agree on a network that is not the one of the literature."""
    net, text = network(name), text_of(name)
    reader = pytest.importorskip("pgmpy.readwrite").BIFReader(string=text)
    assert list(reader.variable_states) == net.names
    for k, variable in enumerate(net.names):
        assert reader.variable_parents[variable] == [net.names[p] for p in net.parents[k]]
        columns = net.tables[k][0].reshape(-1, net.sizes[k]).T
        np.testing.assert_allclose(reader.variable_cpds[variable], columns, rtol=1e-12)
