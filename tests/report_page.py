"""Read a report: its elements, texts and pictures."""

import base64
from html.parser import HTMLParser
from xml.etree import ElementTree

from pmdc.report import write_report

HOSTILE = [
    "<script>alert('x')</script>",
    '"><img src=x onerror=alert(1)>',
    "x" * 300,
    "عدد الزيارات",
    "two\nlines & more",
    "\u202egnp.exe",
    "]]>--><!--",
    "javascript:alert(1)",
    "한국어",
]
"""Names that must be texts wherever they are shown."""

VOID = {"meta", "img", "br", "input", "link"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text; complains about what does not match."""

    def __init__(self, path):
        super().__init__()
        self.path = path
        self.source = path.read_text(encoding="utf-8")
        self.open, self.elements, self.texts, self.style = [], [], [], ""
        self.feed(self.source)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "style":
            self.style += data
        else:
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).split())

    @property
    def sections(self):
        return [attributes["id"] for tag, attributes in self.elements if tag == "section"]

    @property
    def pictures(self):
        """The pictures, as trees of elements."""
        start = "data:image/svg+xml;base64,"
        sources = [attributes["src"] for tag, attributes in self.elements if tag == "img"]
        assert all(source.startswith(start) for source in sources)
        return [ElementTree.fromstring(base64.b64decode(source.removeprefix(start))) for source in sources]


def local_name(element):
    return element.tag.rpartition("}")[2]


def report(model, X, Y, folder, **options):
    """Write a report to report.html in a folder and read it."""
    write_report(model, X, Y, folder / "report.html", **options)
    return Page(folder / "report.html")
