"""Ranks and tests: against the paper's tables, against formulas written out here, and on bad input."""

import doctest
import itertools
import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from paper_tables import (
    AVERAGE_RANKS,
    CLASSIFIERS,
    CONOVER_P_VALUES,
    FRIEDMAN_P_VALUES,
    NEMENYI_P_VALUES,
    PAIRS,
    TABLES,
)
from pmdc.evaluation import (
    average_ranks,
    compare,
    conover,
    corrected_t_test,
    critical_difference,
    friedman,
    holm,
    nemenyi,
    ranks,
)

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
MISRANKED = ("naive_bayes", "subset")


def paper_losses(key):
    rows = {name: [mean for mean, _, _ in cells] for name, cells in TABLES[key].items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=CLASSIFIERS)


def printed_ranks(key):
    rows = {name: [rank for _, _, rank in cells] for name, cells in TABLES[key].items()}
    return pd.DataFrame.from_dict(rows, orient="index", columns=CLASSIFIERS)


def of_pairs(square):
    return np.array([square.loc[pair] for pair in PAIRS])


def random_losses(seed, n_sets=9, n_methods=5):
    # few different values, so that there are ties
    return np.random.default_rng(seed).integers(0, 6, (n_sets, n_methods)) / 10


# ---------------------------------------------------------------- the paper's tables


@pytest.mark.parametrize("key", TABLES)
def test_average_ranks_of_the_paper(key):
    expected = (1.73, 2.85, 2.28, 3.15) if key == MISRANKED else AVERAGE_RANKS[key]
    np.testing.assert_allclose(average_ranks(paper_losses(key)), expected, atol=0.0051)


@pytest.mark.parametrize("key", TABLES)
def test_friedman_p_values_of_the_paper(key):
    p_value = friedman(paper_losses(key)).p_value
    if key == MISRANKED:
        assert p_value == pytest.approx(1.93e-3, rel=5e-3)
        # the printed value belongs to the misprinted ranks of Pain
        p_value = friedman(printed_ranks(key)).p_value
    assert p_value == pytest.approx(FRIEDMAN_P_VALUES[key], rel=0.05)


@pytest.mark.parametrize("key", TABLES)
def test_nemenyi_values_of_the_paper_are_cut_at_both_ends(key):
    computed = of_pairs(nemenyi(printed_ranks(key)))
    printed = np.array(NEMENYI_P_VALUES[key])
    np.testing.assert_allclose(np.clip(computed, 0.001, 0.9), printed, atol=0.027)
    assert (computed[printed == 0.001] < 0.0016).all()
    assert (computed[printed == 0.9] > 0.89).all()


def test_nemenyi_value_far_below_the_cut():
    assert nemenyi(paper_losses(("logistic", "hamming"))).loc["GBNC", "CP"] == pytest.approx(1.7e-9, rel=0.02)


@pytest.mark.parametrize("key", TABLES)
def test_conover_values_of_the_paper_lack_a_square(key):
    ranked = printed_ranks(key)
    printed = np.array(CONOVER_P_VALUES[key])
    faulty = of_pairs(conover_without_the_square(ranked))
    half_a_digit = np.where(printed < 1e-3, 0.05 * 10 ** np.floor(np.log10(printed)), 5e-4) * 1.01
    agrees = abs(faulty - printed) <= half_a_digit
    if key == ("logistic", "hamming"):
        assert agrees.sum() == 5  # the exception is a misprint of BR = CP
        assert not agrees[PAIRS.index(("BR", "CP"))]
    else:
        assert agrees.all()
    # the right values are smaller wherever ranks differ, so the paper claims too little
    right = of_pairs(conover(ranked))
    differ = np.array([ranked[a].mean() != ranked[b].mean() for a, b in PAIRS])
    assert (right[differ] < faulty[differ]).all()
    assert not (abs(right - printed) <= half_a_digit)[:4].any()


def test_conover_values_recomputed():
    p_values = of_pairs(conover(paper_losses(("logistic", "hamming"))))
    np.testing.assert_allclose(p_values, [0.011, 6.7e-7, 1.3e-17, 1.4e-13, 1.2e-8, 0.0043], rtol=0.05)


# ---------------------------------------------------------------- against formulas


def conover_without_the_square(ranked):
    """The formula of scikit-posthocs up to 0.8.0 (its issue 63)."""
    n, k = ranked.shape
    sums = ranked.sum().to_numpy()
    s2 = ((ranked.to_numpy() ** 2).sum() - n * k * (k + 1) ** 2 / 4) / (k - 1)
    t2 = (sums.sum() - n * ((k + 1) / 2) ** 2) / s2
    freedom = (n - 1) * (k - 1)
    error = math.sqrt(s2 * 2 * n * (k - 1) / freedom * (1 - t2 / (n * (k - 1))))
    p_values = 2 * stats.t.sf(abs(sums[:, None] - sums) / error, freedom)
    return pd.DataFrame(p_values, ranked.columns, ranked.columns)


def plain_ranks(row):
    """One more than the number of smaller losses, and half a rank for each other equal one."""
    return [1 + sum(other < own for other in row) + (sum(other == own for other in row) - 1) / 2 for own in row]


@pytest.mark.parametrize("seed", range(4))
def test_ranks_against_counting(seed):
    losses = random_losses(seed)
    np.testing.assert_array_equal(ranks(losses), [plain_ranks(row) for row in losses])


def test_ranks_keep_names_and_accept_infinite_losses():
    losses = pd.DataFrame({"a": [np.inf, 1.0], "b": [np.inf, 2.0], "c": [0.5, 3.0]}, index=["edm", "jura"])
    ranked = ranks(losses)
    assert list(ranked.index) == ["edm", "jura"]
    assert ranked.loc["edm"].to_dict() == {"a": 2.5, "b": 2.5, "c": 1.0}


def test_the_last_bits_of_a_sum_are_a_tie():
    assert 0.1 + 0.2 != 0.3
    assert ranks([[0.1 + 0.2, 0.3]]).iloc[0].tolist() == [1.5, 1.5]
    assert ranks([[0.302, 0.301]], decimals=2).iloc[0].tolist() == [1.5, 1.5]
    assert ranks([[0.302, 0.301]]).iloc[0].tolist() == [2, 1]


@pytest.mark.parametrize("seed", range(4))
def test_friedman_against_the_formula(seed):
    losses = random_losses(seed)
    ranked = np.array([plain_ranks(row) for row in losses])
    n, k = ranked.shape
    # Conover (1999), 5.8: with ties, in terms of the sum of all squared ranks
    sums, squares = ranked.sum(axis=0), (ranked**2).sum()
    chi_square = (k - 1) * ((sums - n * (k + 1) / 2) ** 2).sum() / (squares - n * k * (k + 1) ** 2 / 4)
    f = (n - 1) * chi_square / (n * (k - 1) - chi_square)
    result = friedman(losses)
    expected = (chi_square, stats.chi2.sf(chi_square, k - 1), f, stats.f.sf(f, k - 1, (k - 1) * (n - 1)))
    np.testing.assert_allclose(result, expected, rtol=1e-9)


def test_friedman_where_all_sets_agree():
    # of the 6^3 ways to order three methods on four sets like the first, one agrees throughout
    assert friedman([[1, 2, 3]] * 4)[2:] == (math.inf, pytest.approx(1 / 6**3))
    # with two tied there are three orders
    assert friedman([[1, 1, 3]] * 4).f_p_value == pytest.approx(1 / 3**3)


@pytest.mark.parametrize("seed", range(4))
def test_nemenyi_against_the_formula(seed):
    losses = random_losses(seed)
    n, k = losses.shape
    means = np.mean([plain_ranks(row) for row in losses], axis=0)
    p_values = nemenyi(losses)
    for a, b in itertools.combinations(range(k), 2):
        q = abs(means[a] - means[b]) / math.sqrt(k * (k + 1) / (12 * n))
        assert p_values.loc[a, b] == p_values.loc[b, a] == pytest.approx(stats.studentized_range.sf(q, k, np.inf))
    assert (np.diag(p_values) == 1).all()


@pytest.mark.parametrize("seed", range(4))
def test_conover_against_the_formula(seed):
    losses = random_losses(seed)
    ranked = np.array([plain_ranks(row) for row in losses])
    n, k = ranked.shape
    sums, freedom = ranked.sum(axis=0), (n - 1) * (k - 1)
    # Conover (1999), 5.8: the least significant difference of two rank sums
    error = math.sqrt(2 * (n * (ranked**2).sum() - (sums**2).sum()) / freedom)
    p_values = conover(losses)
    for a, b in itertools.combinations(range(k), 2):
        expected = 2 * stats.t.sf(abs(sums[a] - sums[b]) / error, freedom)
        assert p_values.loc[a, b] == p_values.loc[b, a] == pytest.approx(expected, rel=1e-9)
    assert (np.diag(p_values) == 1).all()


@pytest.mark.parametrize("test", [nemenyi, conover])
def test_names_of_methods_are_kept_whatever_they_are(test):
    names = ["groups", "blocks", 3, "y", "block_ids"]
    named = test(pd.DataFrame(random_losses(1), columns=names))
    assert list(named.index) == list(named.columns) == names
    np.testing.assert_array_equal(named, test(random_losses(1)))


def test_critical_differences():
    # Demšar (2006), Table 5a: the quantiles for 2 to 10 methods at 0.05, and his example at both levels
    table = [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]
    for k, quantile in enumerate(table, start=2):
        assert critical_difference(k, 7) == pytest.approx(quantile * math.sqrt(k * (k + 1) / 42), abs=1e-3)
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(4, 14, alpha=0.1) == pytest.approx(1.12, abs=0.005)


def test_critical_difference_is_where_nemenyi_reaches_alpha():
    # two methods that always take the ranks 1 and 2, and m - 1 others behind: the difference of average ranks is 1
    losses = np.tile([1, 2, 3, 4], (22, 1))
    p_value = nemenyi(losses).loc[0, 1]
    assert critical_difference(4, 22, alpha=p_value) == pytest.approx(1, abs=1e-6)


def test_holm_against_the_definition():
    p_values = np.random.default_rng(0).uniform(0, 0.2, 7)
    p_values[3] = p_values[5]
    expected = [min(1, max((7 - i) * q for i, q in enumerate(sorted(p_values)) if q <= p)) for p in p_values]
    np.testing.assert_allclose(holm(p_values), expected)
    named = holm(pd.Series(p_values, index=list("abcdefg")))
    np.testing.assert_allclose(named[list("gfedcba")], expected[::-1])


def test_holm_against_statsmodels():
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(1).beta(0.5, 3, 12)
    np.testing.assert_allclose(holm(p_values), multitest.multipletests(p_values, method="holm")[1])


def test_corrected_t_test_against_the_formula():
    differences = np.random.default_rng(2).normal(0.02, 0.03, 10)
    plain = stats.ttest_1samp(differences, 0)
    # the paired t-test with its statistic shrunk by sqrt(1/J / (1/J + 1/9))
    statistic = plain.statistic * math.sqrt((1 / 10) / (1 / 10 + 1 / 9))
    result = corrected_t_test(differences, test_share=0.1)
    assert result.statistic == pytest.approx(statistic)
    assert result.p_value == pytest.approx(2 * stats.t.cdf(-abs(statistic), 9))
    assert corrected_t_test(-differences, test_share=0.1) == pytest.approx((-statistic, result.p_value))


def test_type_one_error_of_the_corrected_t_test():
    """Two methods of equal expected loss, 15 random splits of 60 rows, one fifth for testing."""
    rng = np.random.default_rng(3)
    n_rows, n_test, n_splits, n_repeats = 60, 12, 15, 1000
    corrected, plain = 0, 0
    for _ in range(n_repeats):
        # each method predicts its own column by the mean of the training rows, with squared loss
        columns = rng.normal(size=(n_rows, 2))
        testing = rng.permuted(np.tile(np.arange(n_rows), (n_splits, 1)), axis=1) < n_test
        training_means = ~testing @ columns / (n_rows - n_test)
        loss = np.stack(
            [((columns[rows] - mean) ** 2).mean(axis=0) for rows, mean in zip(testing, training_means, strict=True)]
        )
        differences = loss[:, 0] - loss[:, 1]
        corrected += corrected_t_test(differences, test_share=n_test / n_rows).p_value < 0.05
        plain += stats.ttest_1samp(differences, 0).pvalue < 0.05
    assert 0.02 < corrected / n_repeats < 0.08
    assert plain / n_repeats > 0.25


# ---------------------------------------------------------------- one method against the others


def losses_by_fold(n_sets=6, n_folds=5, seed=4):
    rng = np.random.default_rng(seed)
    index = pd.MultiIndex.from_product([[f"set {i}" for i in range(n_sets)], range(n_folds)], names=["set", "fold"])
    frame = pd.DataFrame(rng.normal(0.3, 0.02, (len(index), 3)), index, ["GBNC", "BR", "CC"])
    frame["CC"] += 0.05
    return frame


def test_compare_on_each_set():
    losses = losses_by_fold()
    by_set = compare(losses, "GBNC").by_set
    assert len(by_set) == 6 * 2
    for name, part in losses.groupby(level="set"):
        tests = [corrected_t_test(part[method] - part["GBNC"], test_share=1 / 5) for method in ("BR", "CC")]
        rows = by_set.loc[name]
        np.testing.assert_allclose(rows["statistic"], [test.statistic for test in tests], rtol=1e-6)
        np.testing.assert_allclose(rows["p_value"], [test.p_value for test in tests], rtol=1e-6)
        np.testing.assert_allclose(rows["p_holm"], holm(rows["p_value"]))
        np.testing.assert_allclose(rows["difference"], part[["BR", "CC"]].mean() - part["GBNC"].mean())
    assert (by_set["note"] == "").all()
    wider = compare(losses, "GBNC", test_share=0.5).by_set
    assert (wider["p_value"] > by_set["p_value"]).all()


def test_compare_over_sets():
    losses = losses_by_fold()
    overall = compare(losses, "GBNC").overall
    means = losses.groupby(level="set").mean()
    for method in ("BR", "CC"):
        differences = (means[method] - means["GBNC"]).to_numpy()
        # exact: how many of the 2^6 assignments of signs have a smaller sum of ranks at least as extreme
        ranked = stats.rankdata(abs(differences))
        centre = ranked.sum() / 2
        sums = np.array([ranked[np.array(signs)].sum() for signs in itertools.product([False, True], repeat=6)])
        observed = ranked[differences > 0].sum()
        expected = np.mean(abs(sums - centre) >= abs(observed - centre))
        assert overall.loc[method, "p_value"] == pytest.approx(expected)
        assert overall.loc[method, "better"] == (differences > 0).sum()
        assert overall.loc[method, "worse"] == (differences < 0).sum()
    assert overall.loc["CC", "p_value"] == 2 ** (1 - 6)
    np.testing.assert_allclose(overall["p_holm"], holm(overall["p_value"]))


def test_compare_with_methods_that_are_equal():
    losses = losses_by_fold()
    losses["BR"] = losses["GBNC"] + 1e-16
    result = compare(losses, "GBNC")
    rows = result.by_set.xs("BR", level="method")
    assert (rows["p_value"] == 1).all()
    assert (rows["statistic"] == 0).all()
    assert (rows["note"] == "equal in every fold").all()
    assert result.overall.loc["BR", ["equal", "p_value"]].tolist() == [6, 1]


def test_compare_where_nothing_varies():
    losses = losses_by_fold()
    losses.loc["set 2", "BR"] = (losses.loc["set 2", "GBNC"] + 0.1).to_numpy()
    result = compare(losses, "GBNC")
    row = result.by_set.loc["set 2", "BR"]
    assert row["difference"] == pytest.approx(0.1)
    assert (row["p_value"], row["note"]) == (1, "not tested: the same difference in every fold")
    assert not result.by_set.isna().any(axis=None)


# ---------------------------------------------------------------- bad input


GOOD = [[1.0, 2.0, 3.0], [2.0, 1.0, 3.0]]


@pytest.mark.parametrize("test", [friedman, nemenyi, conover])
@pytest.mark.parametrize(
    ("losses", "words"),
    [
        ([1.0, 2.0, 3.0], "shape (3,)"),
        (np.ones((2, 3, 4)), "shape (2, 3, 4)"),
        (np.ones((0, 3)), "0 rows and 3 columns"),
        ([[1, 2], [2, 1]], "2 methods"),
        ([[1, 2, 3]], "one data set"),
        (np.ones((4, 3)), "tie on every data set"),
        ([[1, 2, 3], [1, np.nan, 3]], "no value of method 1 in row 1 (1 missing in all)"),
        ([[1, 2, 3], [1, "much", 3]], "are not all numbers"),
        (pd.DataFrame(GOOD, columns=["a", "b", "a"]), "more than one method 'a'"),
        (pd.DataFrame(GOOD, index=["x", "x"]), "more than one row 'x'"),
    ],
)
def test_bad_losses(test, losses, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        test(losses)


def test_a_set_on_which_all_tie_is_no_error():
    losses = [*GOOD, [0, 0, 0], [1, 3, 2]]
    for result in (friedman(losses), nemenyi(losses), conover(losses)):
        assert np.isfinite(np.asarray(result)).all()


def test_conover_refuses_unanimous_sets():
    with pytest.raises(ValueError, match="Use nemenyi"):
        conover([[1, 2, 3]] * 5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ranks(GOOD, decimals=-1), "decimals=-1"),
        (lambda: critical_difference(1, 5), "n_methods=1"),
        (lambda: critical_difference(3, 0), "n_sets=0"),
        (lambda: critical_difference(3, 5, alpha=1.5), "alpha=1.5"),
        (lambda: holm([0.1, np.nan]), "nan at position 1"),
        (lambda: holm([0.1, 1.2]), "1.2 at position 1"),
        (lambda: holm([[0.1]]), "shape (1, 1)"),
        (lambda: corrected_t_test([0.1], 0.1), "at least two"),
        (lambda: corrected_t_test([0.1, np.nan], 0.1), "nan at position 1"),
        (lambda: corrected_t_test([0.1, 0.2], 0), "test_share=0"),
        (lambda: corrected_t_test([0.1, 0.1, 0.3 - 0.2], 0.1), "All differences are 0.1"),
        (lambda: compare(losses_by_fold(), "GBNc"), "did you mean 'GBNC'"),
        (lambda: compare(losses_by_fold()[["GBNC"]], "GBNC"), "no method beside"),
        (lambda: compare(losses_by_fold(), "GBNC", test_share=10), "test_share=10"),
        (lambda: compare(losses_by_fold().drop(index=[("set 1", fold) for fold in range(1, 5)]), "GBNC"), "'set 1'"),
        (lambda: compare(losses_by_fold().replace(losses_by_fold().iloc[7, 1], np.nan), "GBNC"), "('set 1', 2)"),
        (lambda: compare(losses_by_fold().replace(losses_by_fold().iloc[7, 1], np.inf), "GBNC"), "is infinite"),
    ],
)
def test_bad_values(call, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        call()


@pytest.mark.parametrize("losses", [GOOD, pd.DataFrame(GOOD)])
def test_compare_needs_folds(losses):
    with pytest.raises(TypeError, match="two levels"):
        compare(losses, 0)


def test_a_missing_extra_is_named():
    program = """
import sys
sys.modules["scikit_posthocs"] = None
from pmdc.evaluation import nemenyi
try:
    nemenyi([[1, 2, 3], [2, 1, 3]])
except ImportError as error:
    assert "scikit-posthocs" in str(error) and 'pip install "pmdc[benchmark]"' in str(error), error
else:
    raise SystemExit("no error")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------- the page


def test_the_examples_of_the_page_run():
    text = PAGE.read_text(encoding="utf-8").replace("```python\n", "\n").replace("```\n", "\n")
    page = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
    assert len(page.examples) > 10
    runner = doctest.DocTestRunner()
    runner.run(page)
    assert runner.failures == 0
