"""Read a report: its elements, texts and pictures."""

import base64
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "img", "br", "input", "link"}
IN_HEAD = {"style", "title"}


class Page(HTMLParser):
    """The elements of a page with their attributes, and its text; complains about what does not match."""

    def __init__(self, path):
        super().__init__()
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
