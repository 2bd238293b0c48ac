"""The American National Election Study of 1996, a real mixed table that is included in statsmodels."""

from __future__ import annotations

from sklearn.utils import Bunch

from pmdc._support.extras import require

_EDUCATION = (
    "8 grades or less",
    "some high school",
    "high school",
    "some college",
    "associate degree",
    "bachelor degree",
    "advanced degree",
)
_VOTE = ("Clinton", "Dole")
_PARTY = (
    "strong Democrat",
    "weak Democrat",
    "leaning Democrat",
    "independent",
    "leaning Republican",
    "weak Republican",
    "strong Republican",
)
_LEANING = (
    "extremely liberal",
    "liberal",
    "slightly liberal",
    "moderate",
    "slightly conservative",
    "conservative",
    "extremely conservative",
)
# Column in the survey, code of the first state, states in their natural order.
_CLASS_VARIABLES = {
    "vote": ("vote", 0, _VOTE),
    "party": ("PID", 0, _PARTY),
    "self": ("selfLR", 1, _LEANING),
    "clinton": ("ClinLR", 1, _LEANING),
    "dole": ("DoleLR", 1, _LEANING),
}

# The seven states merged to three, for networks that are easier to read.
_THREE = {
    _VOTE: _VOTE,
    _PARTY: ("Democrat",) * 2 + ("independent",) * 3 + ("Republican",) * 2,
    _LEANING: ("liberal",) * 3 + ("moderate",) + ("conservative",) * 3,
}

_DESCRIPTION = """\
American National Election Study 1996: 944 respondents

Features
  age             years
  education       7 states, from 8 grades or less to an advanced degree
  income          bracket of the household's income: 1 (less than $3,000) to 24 ($105,000 and over)
  log_population  log(population of the census place in thousands + 0.1)
  tv_news         times a week that the respondent watches the news on television

Class variables
  vote            expected vote: Clinton or Dole
  party           party identification, 7 states from strong Democrat to strong Republican
  self            where respondents place themselves, 7 states from extremely liberal to extremely
                  conservative
  clinton, dole   where they place Bill Clinton and Bob Dole, the same 7 states
With levels=3 the states of the last four are merged: Democrat, independent (including those leaning to a
party), Republican; liberal, moderate, conservative.

Source: The American National Election Studies, https://electionstudies.org, as "anes96" in statsmodels.
Licence: public domain.

The states of education have the names of the survey's own scale; the notes in statsmodels call the last three
college, master's and PhD, which would be more than a third of the respondents."""


def load_election(levels: int = 7) -> Bunch:
    """Load the 1996 US election survey: vote, party and political placements of 944 respondents.

    No download is needed: the table is included in statsmodels (``pip install "pmdc[data]"``).

    Parameters
    ----------
    levels : {7, 3}, default=7
        The number of states of party and of the placements: 7 as in the survey, or merged to 3.

    Returns
    -------
    Bunch
        With ``X`` (age, education, income, log_population, tv_news; education is discrete), ``Y`` (vote,
        party, self, clinton, dole; ordered categories that declare all states) and ``DESCR``.

    Examples
    --------
    >>> from pmdc.datasets import load_election
    >>> survey = load_election()
    >>> survey.X.shape, list(survey.Y.columns)
    ((944, 5), ['vote', 'party', 'self', 'clinton', 'dole'])
    >>> survey.Y.iloc[0].to_list()[:3]
    ['Dole', 'strong Republican', 'extremely conservative']
    """
    if levels not in (7, 3):
        raise ValueError(f"levels={levels!r} must be 7 (the states of the survey) or 3.")
    pd = require("pandas")
    raw = require("statsmodels.datasets").anes96.load_pandas().data

    def ordered(column: str, first: int, states: tuple[str, ...]) -> object:
        codes = raw[column].astype(int) - first
        if levels == 3 and states in _THREE:
            names = [_THREE[states][code] for code in codes]
            return pd.Categorical(names, categories=list(dict.fromkeys(_THREE[states])), ordered=True)
        return pd.Categorical.from_codes(codes, categories=states, ordered=True)

    X = pd.DataFrame(
        {
            "age": raw["age"].astype(float),
            "education": ordered("educ", 1, _EDUCATION),
            "income": raw["income"].astype(float),
            "log_population": raw["logpopul"].astype(float),
            "tv_news": raw["TVnews"].astype(float),
        }
    )
    Y = pd.DataFrame({name: ordered(*source) for name, source in _CLASS_VARIABLES.items()})
    return Bunch(X=X, Y=Y, DESCR=_DESCRIPTION)
