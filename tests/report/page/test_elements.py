"""Elements escape all text, names are shortened, and tables keep their meaning."""

from html.parser import HTMLParser

import pytest

from pmdc.report.page.elements import E, clean, named, sentence, shorten, table, write

HOSTILE = ["<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "a & b", "]]>--><!--", "'"]


class Reader(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.data = [], [], ""
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append(dict(attributes))

    def handle_data(self, data):
        self.data += data


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_texts_are_texts_in_content_and_in_attributes(text):
    read = Reader(write(E("p", text, E("b", text), text, title=text)))
    assert read.tags == ["p", "b"]
    assert read.data == 3 * text
    assert read.attributes[0] == {"title": text}


def test_attributes_with_underscores():
    assert write(E("p", class_="note", aria_label="x", hidden="")) == '<p class="note" aria-label="x"></p>'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\0b", "a\N{REPLACEMENT CHARACTER}b"),
        ("\u202egnp.exe", "\N{REPLACEMENT CHARACTER}gnp.exe"),  # would turn around what follows
        ("\ud800", "\N{REPLACEMENT CHARACTER}"),  # cannot be written to a file
        ("a\r\u00a0b", "a  b"),
        ("می\u200cخواهم", "می\u200cخواهم"),  # keeps the letters apart
        ("two\nlines", "two\nlines"),
    ],
)
def test_characters_that_a_page_cannot_hold_are_replaced(text, expected):
    assert clean(text) == expected
    clean(text).encode()


def test_long_and_broken_names_are_shortened_to_one_line():
    assert shorten("two\n  lines") == "two lines"
    assert shorten("") == shorten(" \n") == "(empty)"
    assert len(shorten("x" * 500)) == 60
    assert shorten("x" * 500).endswith("…")
    assert shorten("x" * 60) == "x" * 60


def test_long_names_in_a_sentence_are_shortened():
    name, arabic = "x" * 100, "عدد"
    parts = sentence(f"{name} depends on y and {arabic}.", [name, "y", arabic])
    assert [part if isinstance(part, str) else part.text for part in parts] == [
        "",
        shorten(name),
        " depends on y and ",
        arabic,
        ".",
    ]
    assert sentence("y depends on z.", ["y", "z"]) == ["y depends on z."]


def test_only_long_words_may_be_broken_anywhere():
    assert "class" not in named("a name of many short words that is long").attrib
    assert named("x" * 40).get("class") == "long"


def test_cells_have_headings():
    read = Reader(write(table("what", ["name", "number"], [[named("a"), "1"], ["b", ["2", E("b", "!")]]], ["number"])))
    cells = [a for tag, a in zip(read.tags, read.attributes, strict=True) if tag in ("th", "td")]
    assert [a.get("scope") for a in cells] == ["col", "col", "row", None, "row", None]
    assert [a.get("data-label") for a in cells if "data-label" in a] == ["number", "number"]
    assert [a.get("class", "") for a in cells] == ["", "number", "", "number", "", "number"]
