# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turn matplotlib figures into inline SVG that follows the page's theme and is the same every time.

Figures are drawn in token colours that no palette has; afterwards each token becomes a CSS variable,
so one drawing serves the light and the dark theme. Text stays text and takes the page's font.
"""

from __future__ import annotations

import hashlib
import html
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Html
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.series import CLASSES

MODE_COLOURS = 8

INK = "#b00001"
MUTED = "#b00002"
LINE = "#b00003"
SURFACE = "#b00004"
ACCENT = "#b00005"

_TOKENS = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    LINE: "var(--line)",
    SURFACE: "var(--surface)",
    ACCENT: "var(--accent)",
    **{f"#a0000{i}": f"var(--mode-{i})" for i in range(MODE_COLOURS)},
    **{f"#c0000{i}": f"var(--cpu-{name})" for i, name in enumerate(CLASSES)},
}
_DASHES: tuple[Any, ...] = ("solid", (0, (5, 2)), (0, (1.5, 1.5)), (0, (7, 2, 1.5, 2)))
_TOKEN = re.compile("|".join(_TOKENS))
_FONT_FAMILY = re.compile(r"font-family:[^;\"]*;?\s*")
_SHORTHAND_FONT = re.compile(r"font:\s*(?:(\d+)\s+)?([\d.]+px)[^;\"]*")
_NUMBER = re.compile(r"-?\d+\.\d{2,}")

_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "colocation.testbed",
    "font.size": 12,
    "axes.edgecolor": LINE,
    "axes.labelcolor": MUTED,
    "axes.linewidth": 1.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "xtick.color": LINE,
    "ytick.color": LINE,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": MUTED,
    "xtick.major.size": 4,
    "ytick.major.size": 0,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "grid.color": LINE,
    "grid.linewidth": 1.0,
    "text.color": INK,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "path.simplify": True,
}


def mode_colour(place: int) -> str:
    """Token colour of the mode at this place in the order."""
    return f"#a0000{place % MODE_COLOURS}"


def mode_dash(place: int) -> Any:
    """Line style of a mode: what tells modes apart when colours don't."""
    return _DASHES[place % len(_DASHES)]


def cpu_colour(name: str) -> str:
    """Token colour of a class of CPU time."""
    return f"#c0000{CLASSES.index(name)}"


@contextmanager
def drawing() -> Iterator[None]:
    """Draw with the report's settings, whatever the user's matplotlibrc says."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_SETTINGS)
        yield


def new_figure(width_px: float, height_px: float) -> Figure:
    """Make a figure of so many CSS pixels, which are SVG user units here."""
    return Figure(figsize=(width_px / 72.0, height_px / 72.0))


def set_margins(figure: Figure, left_px: float, right_px: float, top_px: float, bottom_px: float) -> None:
    """Keep so many CSS pixels free around the axes.

    Fixed margins instead of matplotlib's layout engines: three times as quick, and a wide
    label cannot move the axes of one card against those of the next.
    """
    width_px, height_px = (float(size) * 72.0 for size in figure.get_size_inches())
    figure.subplots_adjust(
        left=left_px / width_px,
        right=1.0 - right_px / width_px,
        top=1.0 - top_px / height_px,
        bottom=bottom_px / height_px,
    )


def quiet_axes(axes: Axes, grid: str = "y") -> None:
    """Leave only what helps reading: a faint grid in one direction and no vertical spine."""
    axes.grid(visible=True, axis="both" if grid == "both" else ("x" if grid == "x" else "y"))
    axes.spines["left"].set_visible(False)


def render(figure: Figure, title: str, name: str, class_: str = "plot") -> Html:
    """Write a figure as an inline SVG element; call it inside ``drawing``.

    ``name`` makes the ids unique on the page. The bytes depend on the figure, title and name alone.
    """
    buffer = io.StringIO()
    FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.S)
    text = _FONT_FAMILY.sub("", text)
    text = _SHORTHAND_FONT.sub(r"font-size: \2", text)
    text = _NUMBER.sub(lambda match: f"{float(match.group()):.2f}".rstrip("0").rstrip("."), text)
    text = _TOKEN.sub(lambda match: _TOKENS[match.group()], text)
    text = _own_ids(text, "g" + hashlib.sha256(name.encode()).hexdigest()[:8])
    text = re.sub(r">\s+<", "><", text)
    return Html(_opening(text, title, class_))


def _own_ids(text: str, prefix: str) -> str:
    """Rename ids that are referred to, and drop the others."""
    used = set(re.findall(r'(?:href="#|url\(#)([^")]+)', text))
    text = re.sub(r' id="([^"]+)"', lambda m: f' id="{prefix}-{m.group(1)}"' if m.group(1) in used else "", text)
    text = re.sub(r'xlink:href="#', f'href="#{prefix}-', text)
    return re.sub(r"url\(#", f"url(#{prefix}-", text)


def _opening(text: str, title: str, class_: str) -> str:
    box = re.search(r'viewBox="([^"]+)"', text)
    view_box = box.group(1) if box else "0 0 100 100"
    label = html.escape(title)
    start = f'<svg class="{class_}" viewBox="{view_box}" role="img" aria-label="{label}"><title>{label}</title>'
    return start + text[text.index(">") + 1 :].strip()
