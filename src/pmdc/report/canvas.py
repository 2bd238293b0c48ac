"""Shared parts of the pictures: colours, text, legends, and axes whose unit is a point.

Text is drawn as a path, so it keeps its size relative to the boxes if the figure is resized, and it is never parsed as
mathematics. The font is matplotlib's own; characters missing from it, such as Chinese ones, are taken from
``rcParams["font.family"]``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from pmdc._support.extras import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path

FONT = "DejaVu Sans"
FONT_SIZE = 10.0
LINE_HEIGHT = 1.25
"""Distance between lines of text, in font sizes."""

# The palette of Okabe and Ito, which colour-blind readers can distinguish.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
INK, GREY, LIGHT_GREY = "#1a1a1a", "#7f7f7f", "#d9d9d9"

_MARGIN = 12.0
_TITLE_SIZE, _TITLE_HEIGHT = 12.0, 26.0
_LARGEST_SCALE = 1.4
_LEGEND_SIZE, _LEGEND_ROW, _LEGEND_GAP = 8.5, 17.0, 12.0
_SAMPLE_WIDTH, _SAMPLE_GAP, _ENTRY_GAP = 22.0, 5.0, 15.0
_NOTE_LENGTH = 52
_SEPARATORS = "_-./,;:"


# Text ------------------------------------------------------------------------------------------------------------


def lines_of(name: Any, length: int = 16) -> list[str]:
    """Break a long name into lines between its words; nothing is cut off, and no word is broken.

    Words end at spaces, underscores, hyphens and other separators; a longer one also where its case changes
    (camelCase). Numbers such as 1.5 and dates stay whole.
    """
    lines = []
    for part in str(name).splitlines() or [""]:
        lines.append("")
        for word in _pieces(printable(part), _ends_word):
            for piece in _pieces(word, _changes_case) if len(word.rstrip()) > length else [word]:
                if lines[-1] and len(lines[-1]) + len(piece.rstrip()) > length:
                    lines.append("")
                lines[-1] += piece
    return [line.strip() for line in lines]


def _pieces(text: str, is_break: Callable[[str, int], bool]) -> list[str]:
    """Split a text before each index at which `is_break` is true."""
    cuts = [0, *(i for i in range(1, len(text)) if is_break(text, i)), len(text)]
    return [text[start:stop] for start, stop in pairwise(cuts)]


def _ends_word(text: str, i: int) -> bool:
    """Return whether a word, with the separators that follow it, ends before index i."""
    last, following = text[i - 1], text[i]
    if following.isspace() or following in _SEPARATORS:
        return False
    if last.isspace():
        return True
    before = text[i - 2] if i > 1 else " "  # the hyphen of " -5" belongs to the number
    return last in _SEPARATORS and not before.isspace() and not (before.isdigit() and following.isdigit())


def _changes_case(text: str, i: int) -> bool:
    """Return whether a word of camelCase starts at index i: R in HTTPRequest, C in bodyCount."""
    last, first, second = text[i - 1], text[i], text[i + 1 : i + 2]
    return first.isupper() and (last.islower() or last.isdigit() or (last.isupper() and second.islower()))


def printable(text: str) -> str:
    """Replace characters that cannot be displayed or written to XML by a placeholder."""
    return "".join(c if c.isprintable() else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text)


def gid(kind: str, *names: Any) -> str:
    """Return the id of a shape in SVG files."""
    return printable(":".join([kind, *map(str, names)]))


def families() -> list[str]:
    """Return the fonts of all text: the default one, then those of the user's settings for missing characters."""
    return [FONT, *require("matplotlib").rcParams["font.family"]]


def _font(size: float, bold: bool) -> Any:
    return require("matplotlib.font_manager").FontProperties(
        family=families(), size=size, weight="bold" if bold else "normal"
    )


def text_width(text: str, size: float = FONT_SIZE, bold: bool = False) -> float:
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(text, _font(size, bold), ismath=False)
    return float(width)


def text_shape(
    lines: Sequence[str], x: float, y: float, size: float = FONT_SIZE, align: float = 0.5, bold: bool = False
) -> Path:
    """Return lines of text as a path, centred at y; x is their left end (align=0), middle (0.5) or right end (1)."""
    from matplotlib.path import Path
    from matplotlib.textpath import text_to_path
    from matplotlib.transforms import Affine2D

    height = LINE_HEIGHT * size
    first = y + height * (len(lines) - 1) / 2 - 0.36 * size  # about half the height of a capital
    shapes = []
    for i, line in enumerate(lines):
        if line:
            vertices, codes = text_to_path.get_text_path(_font(size, bold), line, ismath=False)
            path = Path(vertices, codes)
            place = x - align * text_width(line, size, bold), first - i * height
            unit = size / text_to_path.FONT_SCALE
            shapes.append(Affine2D().scale(unit).translate(*place).transform_path(path))
    return Path.make_compound_path(*shapes)


class Words(NamedTuple):
    """A text drawn as a path: the arguments of `text_shape`."""

    lines: Sequence[str]
    x: float
    y: float
    size: float = FONT_SIZE
    align: float = 0.5
    bold: bool = False


def add_text(ax: Axes, gid: str, *arguments: Any, colour: str = INK, **options: Any) -> None:
    """Draw a `text_shape`."""
    words = Words(*arguments, **options)
    add_shape(ax, gid, text_shape(*words), fc=colour, linewidth=0, zorder=4).words = words


def add_shape(ax: Axes, gid: str, path: Path, **style: Any) -> Any:
    from matplotlib.patches import PathPatch

    # add_patch would also update the limits of the axes, which are known.
    return ax.add_artist(PathPatch(path, gid=gid, **style))


def rectangle(left: float, bottom: float, width: float, height: float) -> Path:
    from matplotlib.path import Path

    right, top = left + width, bottom + height
    return Path([(left, bottom), (right, bottom), (right, top), (left, top), (left, bottom)], closed=True)


def set_title(ax: Axes, title: str, **options: Any) -> None:
    shown = "\n".join(map(printable, title.splitlines()))
    ax.set_title(shown, fontsize=_TITLE_SIZE, fontfamily=families(), parse_math=False, **options)


# Legend ----------------------------------------------------------------------------------------------------------

Sampler = Callable[["Axes", float, float, float], None]
"""Draws a legend sample, given the axes, its left end, its vertical middle and the scale."""


class Entry(NamedTuple):
    """An entry of the legend: a label and a sample; without a sample, a note."""

    label: str
    draw: Sampler | None = None

    @property
    def width(self) -> float:
        return text_width(self.label, _LEGEND_SIZE) + (_SAMPLE_WIDTH + _SAMPLE_GAP if self.draw else 0.0)


class Legend:
    """A legend below a drawing of the given width, with its entries in rows."""

    def __init__(self, entries: Sequence[Entry], width: float):
        self.rows: list[list[Entry]] = []
        room = max(width, 270.0)
        for entry in entries:
            if entry.draw is None:
                note = textwrap.wrap(printable(entry.label), _NOTE_LENGTH, break_long_words=False)
                self.rows.extend([Entry(line)] for line in note)
            elif self.rows and self.rows[-1][-1].draw and self._width([*self.rows[-1], entry]) <= room:
                self.rows[-1].append(entry)
            else:
                self.rows.append([entry])
        self.width = max(map(self._width, self.rows), default=0.0)
        self.height = _LEGEND_GAP + _LEGEND_ROW * len(self.rows) if self.rows else 0.0

    @staticmethod
    def _width(row: Sequence[Entry]) -> float:
        return sum(entry.width for entry in row) + _ENTRY_GAP * (len(row) - 1)

    def draw(self, ax: Axes, middle: float, top: float, scale: float) -> None:
        for i, row in enumerate(self.rows):
            x, y = middle - self._width(row) / 2, top - _LEGEND_GAP - _LEGEND_ROW * (i + 0.5)
            for entry in row:
                if entry.draw:
                    entry.draw(ax, x, y, scale)
                    x += _SAMPLE_WIDTH + _SAMPLE_GAP
                add_text(ax, gid("legend", entry.label), [entry.label], x, y, _LEGEND_SIZE, 0.0)
                x += text_width(entry.label, _LEGEND_SIZE) + _ENTRY_GAP


def line_sample(width: float = 1.4, **style: Any) -> Sampler:
    """Return a sampler that draws a line, in the style of a PathPatch."""

    def draw(ax: Axes, x: float, y: float, scale: float) -> None:
        from matplotlib.path import Path

        path = Path([(x, y), (x + _SAMPLE_WIDTH, y)])
        add_shape(ax, "sample", path, **style, linewidth=width * scale, fc="none", capstyle="butt", zorder=2)

    return draw


def shape_sample(make: Callable[[float, float, float], Path], **style: Any) -> Sampler:
    """Return a sampler that draws a shape; `make` gets its left end, its vertical middle and its width."""

    def draw(ax: Axes, x: float, y: float, scale: float) -> None:
        add_shape(ax, "sample", make(x, y, _SAMPLE_WIDTH), zorder=2, **({"linewidth": scale} | style))

    return draw


# Axes ------------------------------------------------------------------------------------------------------------


def prepare(
    ax: Axes | None, width: float, height: float, legend: Legend, title: str | None, figure: Any
) -> tuple[Axes, float]:
    """Return axes for a drawing in [0, width] x [0, height] with a legend below, and the scale (points per unit).

    If `ax` is None, new axes are made in a figure from `figure`, a function like `matplotlib.pyplot.figure`.
    """
    full_width = max(width, legend.width) + 2 * _MARGIN
    full_height = height + legend.height + 2 * _MARGIN
    if ax is None:
        lines = (title or "").splitlines()
        above = _TITLE_HEIGHT + LINE_HEIGHT * _TITLE_SIZE * (len(lines) - 1) if lines else 0.0
        widest = max((text_width(printable(line), _TITLE_SIZE) for line in lines), default=0.0)
        figure_width = max(full_width, widest + 2 * _MARGIN)
        new = figure(figsize=(figure_width / 72, (full_height + above) / 72), layout="none")
        ax = new.add_axes((0.0, 0.0, 1.0, full_height / (full_height + above)))
    space = ax.get_window_extent().transformed(figure_of(ax).dpi_scale_trans.inverted())
    scale = min(72 * space.width / full_width, 72 * space.height / full_height, _LARGEST_SCALE)
    half_width, half_height = 36 * space.width / scale, 36 * space.height / scale
    middle_x, middle_y = width / 2, (height - legend.height) / 2
    ax.set_xlim(middle_x - half_width, middle_x + half_width)
    ax.set_ylim(middle_y - half_height, middle_y + half_height)
    ax.set_aspect("equal", adjustable="box")
    ax.set_axis_off()
    if _luminance(figure_of(ax).get_facecolor()) < 0.5:
        sheet = rectangle(middle_x - half_width, middle_y - half_height, 2 * half_width, 2 * half_height)
        add_shape(ax, "paper", sheet, fc=paper(ax), linewidth=0, zorder=0)
    if title:
        set_title(ax, title)
    return ax, scale


def paper(ax: Axes) -> Any:
    """Return the background colour of a drawing: that of the figure, or white if the figure is dark."""
    background = figure_of(ax).get_facecolor()
    return background if _luminance(background) >= 0.5 else "white"


def contrast(colour: Any) -> str:
    """Return black or white, whichever has the greater contrast to a colour."""
    return "black" if (_luminance(colour) + 0.05) ** 2 > 0.05 * 1.05 else "white"


def _luminance(colour: Any) -> float:
    """Return the relative luminance (WCAG), from 0 (black) to 1 (white)."""
    channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour[:3]]
    return float(0.2126 * channels[0] + 0.7152 * channels[1] + 0.0722 * channels[2])


def figure_of(ax: Axes) -> Any:
    """Return the whole figure of the axes."""
    return ax.get_figure(root=True)


def pyplot_figure(**options: Any) -> Any:
    """Return a figure managed by pyplot, for pictures that users ask for."""
    return require("matplotlib.pyplot").figure(**options)


def plain_figure(**options: Any) -> Any:
    """Return a figure not managed by pyplot, for files and HTML."""
    return require("matplotlib.figure").Figure(**options)
