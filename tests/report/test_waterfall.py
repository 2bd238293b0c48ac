"""The waterfall shows the contributions, from the base rate to the log-odds."""

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import pytest

from pmdc.explain import Contribution, Explanation


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def explanation(n=4, name="$a$ <script>"):
    parts = [Contribution("feature", f"{name}{i}", 0.5 * i, (-1) ** i * (2.0 - 0.1 * i), 0.01 * i) for i in range(n)]
    total = sum(part.contribution for part in parts)
    return Explanation("vote", "yes", -0.5, -0.5 + total, parts, {}, "base rate (average row)")


def bars(ax):
    return [patch for patch in ax.patches if str(patch.get_gid()).startswith("contribution")]


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_bars_run_from_the_base_rate_to_the_log_odds():
    found = explanation()
    ax = found.plot()
    at = found.base
    for bar, part in zip(bars(ax), found.contributions, strict=True):
        assert bar.get_x() + min(bar.get_width(), 0) == pytest.approx(min(at, at + part.contribution))
        assert abs(bar.get_width()) == pytest.approx(abs(part.contribution))
        at += part.contribution
    assert at == pytest.approx(found.log_odds)
    assert f"{found.log_odds:+.2f} ({100 * found.prob:.3g} %)" in words(ax)
    assert ax.get_yticklabels()[0].get_text() == "base rate (average row)"
    assert not any(text.get_parse_math() for text in [*ax.texts, *ax.get_yticklabels()])
    ax.figure.canvas.draw()


def test_small_contributions_are_one_bar():
    found = explanation(10)
    ax = found.plot(max_bars=4)
    assert len(bars(ax)) == 5
    rest = sum(part.contribution for part in found.contributions[4:])
    assert bars(ax)[-1].get_width() == pytest.approx(rest)
    assert "6 others" in [tick.get_text() for tick in ax.get_yticklabels()]


def test_own_axes_and_title():
    _, own = plt.subplots()
    ax = explanation(2).plot(own, title="why")
    assert ax is own
    assert own.get_title(loc="left") == "why"
    with pytest.raises(ValueError, match="max_bars=0"):
        explanation().plot(max_bars=0)
