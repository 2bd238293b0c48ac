"""Progress of a fit: phases in order, each of them to its end."""

from pmdc import GBNC
from pmdc._support.progress import part_of, tell_step, watching
from pmdc.datasets import make_network
from pmdc.learners import NaiveBayes


class Diary:
    def __init__(self):
        self.phases, self.steps = [], []

    def phase(self, name):
        self.phases.append(name)
        self.steps.append([])

    def step(self, done, total):
        assert 0 <= done <= total
        if self.steps:
            self.steps[-1].append((done, total))


def test_a_fit_tells_its_phases():
    data = make_network(150, n_class_variables=3, n_discrete=1, random_state=0)
    diary = Diary()
    with watching(diary):
        GBNC(NaiveBayes(), max_parents=2).fit(data.X, data.Y)
    phases = list(dict.fromkeys(diary.phases))
    assert phases == [
        "scoring discrete features",
        "scoring parent sets of size 0",
        "scoring parent sets of size 1",
        "scoring parent sets of size 2",
        "scoring families without each of their parents",
        "scoring parent sets of size 3",
        "searching for the best graph",
        "reversing arcs",
        "fitting the local models",
    ]
    for name, steps in zip(diary.phases, diary.steps, strict=True):
        assert not steps or steps[-1][0] == steps[-1][1], name
    assert diary.steps[diary.phases.index("fitting the local models")] == [(1, 3), (2, 3), (3, 3)]
    GBNC(NaiveBayes(), max_parents=1).fit(data.X, data.Y)
    assert len(diary.phases) == len(diary.steps), "nobody watches any more"


def test_parts_of_a_phase():
    diary = Diary()
    with watching(diary):
        diary.phase("all")
        with part_of(10, 5, 20):
            tell_step(1, 5)
            tell_step(5, 5)
        tell_step(20, 20)
    assert diary.steps == [[(11, 20), (15, 20), (20, 20)]]
