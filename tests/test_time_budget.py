"""A time budget: every phase stops, a model always results, and what was left out is said once.

The clock of deadlines is replaced by one that goes on by a second with each question, so that results do not depend on
the speed of the machine.
"""

import pickle
import warnings

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from pmdc import GBNC
from pmdc._support import deadline as module
from pmdc._support.deadline import NEVER, Deadline, Pace
from pmdc._support.parallel import workers
from pmdc._support.progress import watching
from pmdc.scores.regularisation import DEFAULT_C

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.column_stack([X[:, 0] > 0, X[:, 0] + X[:, 1] > 0, RNG.integers(0, 3, 60)]).astype(int)
Y[:, 2] = np.where(RNG.random(60) < 0.8, Y[:, 0] + Y[:, 1], Y[:, 2])


class Clock:
    """A clock that goes on by `step` seconds with each question."""

    def __init__(self, step=0.0):
        self.time, self.step = 0.0, step

    def __call__(self):
        self.time += self.step
        return self.time


@pytest.fixture
def clock(monkeypatch):
    ticking = Clock()
    monkeypatch.setattr(module, "monotonic", ticking)
    return ticking


def fit(**parameters):
    """Fit a model; return it with its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = GBNC(**parameters).fit(X, Y)
    return model, [str(warning.message) for warning in caught if "time_" in str(warning.message)]


def same(one, other):
    assert one.structure_.parents == other.structure_.parents
    assert one.structure_.status == other.structure_.status
    assert one.scores_ == other.scores_
    for a, b in zip(one.predict_proba(X), other.predict_proba(X), strict=True):
        np.testing.assert_array_equal(a, b)


# Deadlines and pace ---------------------------------------------------------------------------------------------


def test_a_deadline_counts_from_the_start_of_the_fit_and_is_shared(clock):
    clock.time = 103.0
    whole = Deadline.after(10.0, started=100.0)
    assert whole.left() == 7.0
    part = whole.share(0.5)
    assert part.left() == 3.5
    clock.time = 106.5
    assert part.passed()
    assert not whole.passed()
    part.cut("one thing")
    part.cut("one thing")
    assert whole.cuts == ["one thing"]
    assert part.share(0.5).passed()
    assert pickle.loads(pickle.dumps(whole)).end == whole.end


def test_no_deadline_never_passes(clock):
    clock.time = 1e300
    assert not NEVER.passed()
    assert NEVER.note() == ""
    assert NEVER.share(0.1) is NEVER
    assert all(Pace(NEVER).may_start() for _ in range(3))


def test_a_job_starts_only_if_it_would_end_in_time(clock):
    pace = Pace(Deadline.after(10.0, started=0.0))
    begun = 0
    while pace.may_start():
        begun += 1
        clock.time += 3.0
        pace.stop()
    assert begun == 3, "the fourth would end after 12 s"
    assert clock.time == 9.0
    assert not Pace(Deadline.after(1.0, started=0.0)).may_start()


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_return_what_ended_in_time(clock, n_jobs):
    with workers(n_jobs, threads=True) as run:
        assert run(abs, range(5)) == [0, 1, 2, 3, 4]
        assert run(abs, range(5), deadline=Deadline.after(1e9, 0.0)) == [0, 1, 2, 3, 4]
        assert run(abs, range(5), deadline=Deadline.after(-1.0, 0.0)) == []
        clock.step = 1.0
        some = run(abs, range(100), deadline=Deadline.after(30.0, clock.time))
    assert some == list(range(len(some)))
    assert 0 < len(some) < 100


# Fits -----------------------------------------------------------------------------------------------------------

SETTINGS = {
    "experts": {},
    "experts on all rows": {"expert_models": "refit"},
    "user's experts": {"experts": [GaussianNB(), LogisticRegression()]},
    "logistic": {"experts": None},
    "naive Bayes": {"estimator": GaussianNB(), "conditioning": "partition"},
    "penalised": {"estimator": GaussianNB(), "conditioning": "partition", "criterion": "bic", "prune": "definition"},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_budget_that_is_not_reached_changes_nothing(settings):
    free, _ = fit(**settings)
    bounded, warned = fit(**settings, time_budget=1e6)
    same(free, bounded)
    assert not warned


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_model_results_however_early_the_time_is_up(clock, settings):
    clock.step = 1.0
    for budget in (1e-9, 10.0, 25.0, 150.0):
        clock.time = 0.0
        model, warned = fit(**settings, time_budget=budget)
        assert all(frozenset() in scored for scored in model.scores_.values())
        for proba in model.predict_proba(X):
            np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert len(warned) == 1 or (budget == 150.0 and not warned), "one warning, or everything was done"
        if not warned:
            same(model, fit(**settings)[0])
            continue
        assert f"time_budget={budget:g} " in warned[0]
        if "parent sets" in warned[0] or "independent" in warned[0]:
            assert model.structure_.status.endswith(f"scored until time_budget={budget:g} ran out")
        if "independent" in warned[0]:
            assert not any(model.structure_.parents.values())


def test_the_smallest_budget_leaves_out_what_a_model_does_not_need(clock):
    clock.step = 1.0
    model, [message] = fit(time_budget=1e-9)
    assert [[score.name for score in own if score.used] for own in model.experts_.values()] == [
        ["extra trees, larger leaves"]
    ] * 3
    for what in ("random forest", "logistic regression for 3", "slow boosting for 3 of 3", "independent"):
        assert what in message
    assert "--time-limit" in message
    assert not any(model.structure_.parents.values())
    refitted, [message] = fit(time_budget=1e-9, expert_models="refit")
    assert "on all rows" in message
    same(model, refitted)


def test_more_time_is_used(clock):
    clock.step = 1.0
    used = []
    for budget in (1e-9, 100.0, 400.0):
        clock.time = 0.0
        model, _ = fit(time_budget=budget, max_parents=0)
        used.append(sum(np.isfinite(score.log_loss) for own in model.experts_.values() for score in own))
    assert used == sorted(used)
    assert len(set(used)) == 3


def test_levels_of_parent_sets_stop(clock):
    settings = SETTINGS["naive Bayes"]
    whole, _ = fit(**settings)
    clock.step = 1.0
    sizes = []
    for budget in (1e-9, 20.0, 25.0, 30.0, 1e6):
        clock.time = 0.0
        model, _ = fit(**settings, time_budget=budget)
        scored = [parents for own in model.scores_.values() for parents in own]
        sizes.append(len(scored))
        for name, own in model.scores_.items():
            assert own.items() <= whole.scores_[name].items(), "a score does not depend on the time"
    assert sizes == sorted(sizes)
    assert (sizes[0], sizes[-1]) == (3, 12)
    assert len(set(sizes)) > 2


def test_C_is_a_default_if_there_is_no_time_to_choose_it(clock):
    clock.step = 1.0
    model, [message] = fit(experts=None, time_budget=1e-9)
    assert "choice of C" in message
    assert set(model.C_.values()) == {DEFAULT_C}


def test_the_structure_search_gets_what_is_left(clock, monkeypatch):
    monkeypatch.setattr("pmdc.find_network.MIN_SEARCH_SECONDS", 1e-9)
    given = {"estimator": GaussianNB(), "criterion": "cll", "conditioning": "partition"}
    spent = []

    def spend(*arguments, **parameters):
        from pmdc.search import find_structure

        spent.append(parameters["time_limit"])
        return find_structure(*arguments, **parameters)

    monkeypatch.setattr("pmdc.find_network.find_structure", spend)
    fit(**given, time_budget=10.0)
    fit(**given, time_budget=10.0, time_limit=5.0)
    assert spent == [10.0, 5.0]
    real = module.Deadline.left
    monkeypatch.setattr(module.Deadline, "left", lambda self: real(self) if not spent[2:] else -1.0)
    monkeypatch.setattr("pmdc.learn.SCORES_SHARE", 1.0)
    monkeypatch.setattr("pmdc.learn._check_scores", lambda *arguments: spent.append(None))  # the scores are done
    model, messages = fit(**given, time_budget=10.0)
    assert spent[3] == 1e-9
    assert len(messages) == 1
    assert "structure search" in messages[0]
    assert "Raise time_limit" not in messages[0]
    assert model.structure_.gap > 0


def test_a_search_within_bounds_ends_in_time_and_without_effect_is_the_same(clock):
    given = {"estimator": GaussianNB(), "experts": None, "max_treewidth": 1, "guard": 0}
    free, _ = fit(**given)
    model, messages = fit(**given, time_budget=1e6)
    same(free, model)
    assert not messages
    model, _ = fit(**given, time_limit=1e6)
    assert model.structure_.parents == free.structure_.parents


def test_blocks_are_not_tried_without_time(clock):
    clock.step = 1.0
    model, [message] = fit(estimator=GaussianNB(), blocks="auto", time_budget=30.0)
    assert model.blocks_ == []
    assert "blocks" in message


def test_user_experts_beyond_the_first_are_left_out(clock):
    clock.step = 1.0
    model, [message] = fit(experts=[GaussianNB(), LogisticRegression()], time_budget=1e-9)
    assert "LogisticRegression" in message
    assert all([score.used for score in own] == [True, False] for own in model.experts_.values())


def test_progress_names_the_budget(clock, capsys):
    class Watcher:
        def __init__(self):
            self.phases = []

        def phase(self, name):
            self.phases.append(name)

        def step(self, done, total):
            assert 0 <= done <= total

    bounded, free = Watcher(), Watcher()
    with watching(bounded):
        fit(estimator=GaussianNB(), time_budget=77.0, verbose=1)
    with watching(free):
        fit(estimator=GaussianNB())
    assert any("time budget: 77 s left" in phase for phase in bounded.phases)
    assert not any("budget" in phase for phase in free.phases)
    assert "time budget: 77 s left" in capsys.readouterr().err


@pytest.mark.parametrize("budget", [0, -1.0, "soon", float("nan")])
def test_a_bad_budget_is_refused(budget):
    with pytest.raises(ValueError, match=f"time_budget={budget!r}"):
        GBNC(time_budget=budget).fit(X, Y)


def test_two_fits_of_the_command_line_share_the_limit():
    from dataclasses import replace

    from pmdc.cli.fitting import Settings, _model
    from pmdc.cli.kinds import Choices

    alone = Settings(Choices(["y"], [], [], [], False, None), "auto", "auto", None, None, 60.0, None, None, 0, 1)
    budgets = [_model(one, None).time_budget for one in (alone, replace(alone, test_size=0.2))]
    assert budgets == [60.0, 20.0]
    assert _model(replace(alone, confidence=2), None).time_budget == 20.0
    assert _model(replace(alone, time_limit=None, test_size=0.2), None).time_budget is None
    assert _model(alone, None).time_limit is None
