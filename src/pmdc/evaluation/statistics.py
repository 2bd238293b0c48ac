"""Statistical comparison of methods: ranks, tests over data sets, and comparisons with one method.

A table of losses has a row for each data set and a column for each method; smaller is better. `friedman` tests whether
the methods differ at all, `nemenyi` and `conover` which pairs differ, and `compare` compares one method with each other
one. Formulas are in ``docs/statistics.md``.

The ranks of ranks are the ranks themselves, so every test that takes losses also takes the result of `ranks`.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats

from pmdc._support.checks import check_count, suggest
from pmdc._support.extras import require

if TYPE_CHECKING:
    import pandas as pd

# Equal numbers of errors, summed in another order, give losses that differ in their last bits.
_DECIMALS = 12


class Friedman(NamedTuple):
    """Result of `friedman`: Friedman's chi-square and Iman and Davenport's F, each with its p-value."""

    statistic: float
    p_value: float
    f_statistic: float
    f_p_value: float


class TTest(NamedTuple):
    """Result of `corrected_t_test`."""

    statistic: float
    p_value: float


class Comparison(NamedTuple):
    """Result of `compare`: a table with a row for each data set and method, and one with a row for each method."""

    by_set: pd.DataFrame
    overall: pd.DataFrame


# Ranks -----------------------------------------------------------------------------------------------------


def ranks(losses: Any, *, decimals: int = _DECIMALS) -> pd.DataFrame:
    """Rank the methods on each data set: 1 for the smallest loss, mean ranks for ties.

    Parameters
    ----------
    losses : DataFrame or 2-D array
        Data sets in rows, methods in columns, smaller is better. Infinite losses rank last; missing
        values raise an error.
    decimals : int, default=12
        Losses are rounded to this number of decimals first. The default only removes rounding errors: equal numbers
        of errors, summed in another order, must tie. Use fewer decimals to rank losses as they are printed.

    Returns
    -------
    DataFrame
        With the shape and names of `losses`.

    Examples
    --------
    >>> import pandas as pd
    >>> from pmdc.evaluation import ranks
    >>> losses = pd.DataFrame({"GBNC": [0.20, 0.3], "BR": [0.25, 0.3], "CC": [0.21, 0.1]}, index=["edm", "jura"])
    >>> ranks(losses)
          GBNC   BR   CC
    edm    1.0  3.0  2.0
    jura   2.5  2.5  1.0
    """
    check_count("decimals", decimals, 0)
    table = _read(losses)
    ranked = stats.rankdata(np.round(table.to_numpy(), decimals), axis=1)
    return require("pandas").DataFrame(ranked, index=table.index, columns=table.columns)


def average_ranks(losses: Any) -> pd.Series:
    """Compute the mean rank of each method over data sets.

    Parameters
    ----------
    losses : as in `ranks`

    Returns
    -------
    Series
        One number for each method, in the order of the columns; their mean is (k + 1) / 2 for k methods.

    Examples
    --------
    >>> from pmdc.evaluation import average_ranks
    >>> average_ranks([[0.2, 0.25, 0.21], [0.3, 0.3, 0.1]]).tolist()
    [1.75, 2.75, 1.5]
    """
    return ranks(losses).mean(axis=0)


# Tests over data sets --------------------------------------------------------------------------------------


def friedman(losses: Any) -> Friedman:
    """Test whether methods differ, by their ranks over data sets.

    Parameters
    ----------
    losses : as in `ranks`
        At least two data sets and three methods.

    Returns
    -------
    Friedman
        ``statistic`` and ``p_value`` are Friedman's, corrected for ties and referred to the chi-square distribution
        with k - 1 degrees of freedom, as in `scipy.stats.friedmanchisquare` and the paper. ``f_statistic`` and
        ``f_p_value`` are Iman and Davenport's, less conservative with few data sets: F with k - 1 and (k - 1)(n - 1)
        degrees of freedom. Where all data sets order the methods alike, F is infinite and its p-value the
        probability that this happens by chance.

    Examples
    --------
    >>> from pmdc.evaluation import friedman
    >>> result = friedman([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]])
    >>> print(f"{result.statistic:.2f} {result.p_value:.3f} {result.f_statistic:.2f} {result.f_p_value:.3f}")
    4.50 0.105 3.86 0.084
    """
    ranked = _ranks_to_test(losses).to_numpy()
    n_sets, n_methods = ranked.shape
    statistic, p_value = stats.friedmanchisquare(*ranked.T)
    if _all_alike(ranked):
        tied = np.unique(ranked[0], return_counts=True)[1]
        orders = math.factorial(n_methods) / math.prod(math.factorial(size) for size in tied)
        f_statistic, f_p_value = math.inf, orders ** (1 - n_sets)
    else:
        f_statistic = (n_sets - 1) * statistic / (n_sets * (n_methods - 1) - statistic)
        f_p_value = stats.f.sf(f_statistic, n_methods - 1, (n_methods - 1) * (n_sets - 1))
    return Friedman(float(statistic), float(p_value), float(f_statistic), float(f_p_value))


def nemenyi(losses: Any) -> pd.DataFrame:
    """Compute p-values of Nemenyi's post-hoc test for each pair of methods.

    They are corrected for the number of pairs. Uses scikit-posthocs.

    Parameters
    ----------
    losses : as in `friedman`

    Returns
    -------
    DataFrame
        Square and symmetric, methods by methods, with ones on the diagonal.

    Examples
    --------
    >>> from pmdc.evaluation import nemenyi
    >>> nemenyi([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]]).round(3)
           0      1      2
    0  1.000  0.539  0.086
    1  0.539  1.000  0.539
    2  0.086  0.539  1.000
    """
    ranked = _ranks_to_test(losses)
    return _square(require("scikit_posthocs").posthoc_nemenyi_friedman(ranked.to_numpy()), ranked)


def conover(losses: Any) -> pd.DataFrame:
    """Compute p-values of Conover's post-hoc test for each pair of methods.

    It is more powerful than Nemenyi's and not corrected for the number of pairs: see `holm`. Uses scikit-posthocs.

    Parameters
    ----------
    losses : as in `friedman`
        Two data sets must order the methods differently; otherwise the variance of the test is zero.

    Returns
    -------
    DataFrame
        Square and symmetric, methods by methods, with ones on the diagonal.

    Examples
    --------
    >>> from pmdc.evaluation import conover
    >>> conover([[1, 2, 3], [1, 3, 2], [1, 2, 3], [2, 1, 3]]).round(3)
           0      1      2
    0  1.000  0.214  0.032
    1  0.214  1.000  0.214
    2  0.032  0.214  1.000
    """
    ranked = _ranks_to_test(losses)
    if _all_alike(ranked.to_numpy()):
        raise ValueError(
            "All data sets order the methods identically, so the variance of Conover's test is zero. Use nemenyi."
        )
    return _square(require("scikit_posthocs").posthoc_conover_friedman(ranked.to_numpy()), ranked)


def critical_difference(n_methods: int, n_sets: int, alpha: float = 0.05) -> float:
    """Compute the smallest difference of average ranks that is significant in Nemenyi's test.

    Parameters
    ----------
    n_methods, n_sets : int
        At least 2 and 1.
    alpha : float, default=0.05
        Level of the test, between 0 and 1.

    Returns
    -------
    float

    Examples
    --------
    >>> from pmdc.evaluation import critical_difference
    >>> print(f"{critical_difference(4, 20):.3f}")
    1.049
    """
    check_count("n_methods", n_methods, 2)
    check_count("n_sets", n_sets, 1)
    if not 0 < alpha < 1:
        raise ValueError(f"alpha={alpha!r} must be between 0 and 1.")
    quantile = stats.studentized_range.isf(alpha, n_methods, np.inf)
    return float(quantile * math.sqrt(n_methods * (n_methods + 1) / (12 * n_sets)))


# Paired comparisons ----------------------------------------------------------------------------------------


def holm(p_values: Any) -> Any:
    """Correct p-values for multiple testing by Holm's step-down method.

    Rejecting where the corrected value is at most alpha keeps the probability of any false rejection at alpha,
    however the tests depend on each other.

    Parameters
    ----------
    p_values : 1-D array-like or Series

    Returns
    -------
    ndarray, or Series with the same index
        In the order given.

    Examples
    --------
    >>> from pmdc.evaluation import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, dtype=float)
    if values.ndim != 1:
        raise ValueError(f"p_values has shape {values.shape}: it must be one-dimensional.")
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        raise ValueError(f"p_values has {values[wrong][0]} at position {np.flatnonzero(wrong)[0]}: not a p-value.")
    order = np.argsort(values, kind="stable")
    corrected = np.empty_like(values)
    corrected[order] = np.minimum(np.maximum.accumulate(values[order] * np.arange(len(values), 0, -1)), 1)
    pandas = require("pandas")
    return pandas.Series(corrected, p_values.index) if isinstance(p_values, pandas.Series) else corrected


def corrected_t_test(differences: Any, test_share: float) -> TTest:
    """Test whether two methods have equal loss on one data set, by Nadeau and Bengio's corrected resampled t-test.

    Folds share training rows, so their differences are correlated and the usual paired t-test rejects too often.
    Here the variance of the mean is estimated with ``1/J + test rows / training rows`` in place of ``1/J``.

    Parameters
    ----------
    differences : 1-D array-like
        Loss of one method minus loss of the other on each of J folds or random splits, J at least 2.
    test_share : float
        The fraction of the rows in a test fold, between 0 and 1: 0.1 for ten-fold cross-validation,
        repeated or not.

    Returns
    -------
    TTest
        The statistic, which has the sign of the mean difference, and the two-sided p-value, with J - 1 degrees of
        freedom. If all differences are zero, these are 0 and 1; if all are equal to another number, the
        variance is zero, which raises an error.

    References
    ----------
    C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52 (2003).

    Examples
    --------
    >>> from pmdc.evaluation import corrected_t_test
    >>> result = corrected_t_test([0.02, 0.01, 0.03, 0.00, 0.02], test_share=0.2)
    >>> print(f"{result.statistic:.2f} {result.p_value:.3f}")
    2.09 0.105
    """
    values = np.asarray(differences, dtype=float)
    if values.ndim != 1 or len(values) < 2:
        raise ValueError(f"differences has shape {values.shape}: it must have one dimension and at least two values.")
    if not np.isfinite(values).all():
        fold = np.flatnonzero(~np.isfinite(values))[0]
        raise ValueError(f"differences has {values[fold]} at position {fold}: the t-test needs finite numbers.")
    _check_share(test_share)
    if _constant(values):
        if values[0] == 0:
            return TTest(0.0, 1.0)
        raise ValueError(f"All differences are {values[0]:.6g}: there is no variance for a t-test.")
    variance = values.var(ddof=1) * (1 / len(values) + test_share / (1 - test_share))
    statistic = values.mean() / math.sqrt(variance)
    return TTest(float(statistic), float(2 * stats.t.sf(abs(statistic), len(values) - 1)))


def compare(losses_by_fold: pd.DataFrame, control: Any, *, test_share: float | None = None) -> Comparison:
    """Compare one method with each other one, on each data set and over all data sets, with Holm's correction.

    Parameters
    ----------
    losses_by_fold : DataFrame
        A column for each method, smaller is better; the index has two levels, data set and fold. From records:
        ``records.pivot(index=["set", "fold"], columns="method", values="value")``.
    control : column name
        The method to compare the others with.
    test_share : float, optional
        See `corrected_t_test`; by default one divided by the number of folds of the data set, which suits
        cross-validation without repetitions.

    Returns
    -------
    Comparison
        ``by_set``, indexed by set and method: ``difference`` (mean loss of the method minus that of the control:
        positive where the control is better), ``statistic`` and ``p_value`` of `corrected_t_test`, ``p_holm``
        (corrected for the other methods of the same data set) and ``note``. Where all folds have the same
        nonzero difference, no test is possible: the p-value is 1 and the note says so.

        ``overall``, indexed by method: mean ``difference``, the numbers of data sets on which the control is
        ``better``, ``equal`` or ``worse``, ``statistic`` and ``p_value`` of the two-sided Wilcoxon signed-rank test
        on the differences of the data sets (ranks of zeros split evenly), and ``p_holm`` (corrected for the other
        methods). With n data sets no p-value is below 2^(1 - n).

    Examples
    --------
    >>> import pandas as pd
    >>> from pmdc.evaluation import compare
    >>> losses = pd.DataFrame(
    ...     {"GBNC": [0.20, 0.22, 0.18, 0.31, 0.33, 0.30], "BR": [0.25, 0.28, 0.24, 0.32, 0.32, 0.31]},
    ...     index=pd.MultiIndex.from_product([["edm", "jura"], [0, 1, 2]], names=["set", "fold"]),
    ... )
    >>> compare(losses, "GBNC").by_set[["difference", "p_value", "p_holm"]].reset_index().round(3)
        set method  difference  p_value  p_holm
    0   edm     BR       0.057    0.009   0.009
    1  jura     BR       0.003    0.782   0.782
    """
    pandas = require("pandas")
    table = _read_folds(losses_by_fold, control)
    if test_share is not None:
        _check_share(test_share)
    others = [method for method in table.columns if method != control]
    gaps = table[others].sub(table[control], axis=0)
    by_set = []
    for name, folds in gaps.groupby(level=0, sort=False):
        if len(folds) < 2:
            raise ValueError(f"Data set {name!r} has one fold: a t-test needs at least two.")
        tests = [_test_folds(folds[method].to_numpy(), test_share or 1 / len(folds)) for method in others]
        rows = pandas.DataFrame(tests, columns=["difference", "statistic", "p_value", "note"])
        rows.insert(3, "p_holm", holm(rows["p_value"]))
        rows.index = pandas.MultiIndex.from_product([[name], others], names=["set", "method"])
        by_set.append(rows)
    # Rounded, so that means compare equal despite rounding errors.
    means = gaps.groupby(level=0, sort=False).mean().round(_DECIMALS)
    overall = pandas.DataFrame(
        {
            "difference": means.mean(),
            "better": (means > 0).sum(),
            "equal": (means == 0).sum(),
            "worse": (means < 0).sum(),
        },
        index=pandas.Index(others, name="method"),
    )
    overall[["statistic", "p_value"]] = [_wilcoxon(means[method]) for method in others]
    overall["p_holm"] = holm(overall["p_value"])
    return Comparison(pandas.concat(by_set), overall)


def _test_folds(differences: npt.NDArray[np.float64], test_share: float) -> tuple[float, float, float, str]:
    mean = float(differences.mean())
    if _constant(differences) and differences[0] != 0:
        # A p-value of 1 is always valid; 0, the limit of the test, would claim certainty.
        return mean, math.copysign(math.inf, mean), 1.0, "not tested: the same difference in every fold"
    note = "" if differences.any() else "equal in every fold"
    return mean, *corrected_t_test(differences, test_share), note


def _wilcoxon(differences: pd.Series) -> tuple[float, float]:
    if not differences.any():
        return 0.0, 1.0
    result = stats.wilcoxon(differences.to_numpy(), zero_method="zsplit")
    return float(result.statistic), float(result.pvalue)


def _constant(values: npt.NDArray[np.float64]) -> bool:
    return bool(np.ptp(values) <= 1e-9 * np.abs(values).max())


# Reading ---------------------------------------------------------------------------------------------------


def _read(losses: Any, name: str = "losses") -> pd.DataFrame:
    """Return the table as numbers; missing values are refused."""
    pandas = require("pandas")
    if not isinstance(losses, pandas.DataFrame):
        losses = np.asarray(losses)
        if losses.ndim != 2:
            raise ValueError(
                f"{name} has shape {losses.shape}: it must have two dimensions, data sets in rows, methods in columns."
            )
    table = pandas.DataFrame(losses)
    if 0 in table.shape:
        raise ValueError(f"{name} has {table.shape[0]} rows and {table.shape[1]} columns: there is nothing to rank.")
    for kind, names in (("row", table.index), ("method", table.columns)):
        if names.has_duplicates:
            raise ValueError(f"{name} has more than one {kind} {names[names.duplicated()][0]!r}.")
    for method in table.columns:
        try:
            table = table.astype({method: float})
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} of method {method!r} are not all numbers: {error}.") from error
    missing = np.argwhere(table.isna().to_numpy())
    if len(missing):
        row, column = missing[0]
        raise ValueError(
            f"{name} has no value of method {table.columns[column]!r} in row {table.index[row]!r} ({len(missing)} "
            "missing in all). Every method needs a value in every row: compute the missing ones, or leave out the "
            "data set or the method."
        )
    return table


def _read_folds(losses_by_fold: Any, control: Any) -> pd.DataFrame:
    pandas = require("pandas")
    if not isinstance(losses_by_fold, pandas.DataFrame) or losses_by_fold.index.nlevels != 2:
        raise TypeError(
            "losses_by_fold must be a DataFrame whose index has two levels, data set and fold; from records: "
            'records.pivot(index=["set", "fold"], columns="method", values="value").'
        )
    table = _read(losses_by_fold, "losses_by_fold")
    if control not in table.columns:
        raise ValueError(f"control={control!r} is not a method{suggest(control, list(map(str, table.columns)))}")
    if table.shape[1] < 2:
        raise ValueError(f"losses_by_fold has no method beside the control {control!r}.")
    infinite = np.argwhere(np.isinf(table.to_numpy()))
    if len(infinite):
        row, column = infinite[0]
        raise ValueError(
            f"losses_by_fold of method {table.columns[column]!r} is infinite in row {table.index[row]!r}: differences "
            "need finite losses. Ranks do not (friedman, nemenyi, conover)."
        )
    return table.round(_DECIMALS)


def _ranks_to_test(losses: Any) -> pd.DataFrame:
    ranked = ranks(losses)
    n_sets, n_methods = ranked.shape
    if n_methods < 3:
        raise ValueError(f"losses has {n_methods} methods; Friedman's test needs at least 3. For two, use compare.")
    if n_sets < 2:
        raise ValueError("losses has one data set; tests over data sets need at least 2.")
    if (ranked == ranked.iloc[0, 0]).all(axis=None):
        raise ValueError("All methods tie on every data set: there is nothing to test.")
    return ranked


def _all_alike(ranked: npt.NDArray[np.float64]) -> bool:
    return bool((ranked == ranked[0]).all())


def _square(p_values: pd.DataFrame, ranked: pd.DataFrame) -> pd.DataFrame:
    # Names are added here because scikit-posthocs uses some, such as "groups", itself.
    return require("pandas").DataFrame(p_values.to_numpy(), index=ranked.columns, columns=ranked.columns)


def _check_share(test_share: float) -> None:
    if not 0 < test_share < 1:
        raise ValueError(f"test_share={test_share!r} must be between 0 and 1: the fraction of rows in a test fold.")
