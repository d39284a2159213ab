# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page around a report's sections: one file, whatever the experiment."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ansible_collections.colocation.testbed.plugins.plugin_utils.report import evidence, hero, setup_facts, words
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.markup import Child, Html, join, tag
from ansible_collections.colocation.testbed.plugins.plugin_utils.report.outcome import Outcome, ReportError

TEMPLATES = Path(__file__).resolve().parents[3] / "files" / "report"
_PLACE = re.compile(r"\{\{ (\w+) \}\}")


@dataclass(frozen=True)
class Section:
    """A part of the page: id, name in the navigation, heading, introduction, content."""

    id: str
    short: str
    title: str
    lead: str
    content: Child


def assemble(view: Outcome, sections: Sequence[Section], tiles: Html | None, chooser: Html | None = None) -> str:
    """Make the self-contained page; sections without content are left out.

    Raises ReportError when a template is missing.
    """
    shown = [part for part in sections if part.content]
    parts = {
        "title": join(f"{words.RESULT_TITLES[view.result]}: run {view.run_id}"),
        "result": join(view.result),
        "state": join("invalid" if view.result == "invalid" else "valid"),
        "run": join(view.run_id),
        "navigation": join([tag("a", part.short, href=f"#{part.id}") for part in shown]),
        "chooser": chooser or Html(""),
        "verdict": hero.verdict(view),
        "tiles": tiles or Html(""),
        "sections": join([_section(part) for part in shown]),
        "footer": _footer(view),
        "style": Html(_template("style.css")),
        "script": Html(_template("script.js")),
    }
    return _PLACE.sub(lambda match: parts[match.group(1)], _template("template.html"))


def _template(name: str) -> str:
    path = TEMPLATES / name
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"{path}: the report's template cannot be read ({error.strerror}); install the collection again"
        ) from error


def _section(part: Section) -> Html:
    lead = tag("p", part.lead, class_="lead") if part.lead else None
    return tag("section", tag("h2", part.title), lead, part.content, id=part.id)


def _footer(view: Outcome) -> Html:
    version = (view.manifest.get("versions") or {}).get("collection")
    made = f"colocation.testbed {version}" if version else "colocation.testbed"
    return join(f"{made} · run {view.run_id} · {view.created}")


def guards_section(view: Outcome) -> Section:
    """Make the section of guards."""
    return Section(
        "guards",
        "Guards",
        "May the figures be believed?",
        "Each guard protects from one way in which such experiments deceive. A guard without data counts as "
        "tripped. The figure is the worst of the measurements that count.",
        evidence.guards(view),
    )


def origin_sections(view: Outcome, load: Section) -> list[Section]:
    """Make the last sections: hosts, what was set (``load``), versions, how to repeat the run."""
    return [
        Section("hosts", "Hosts", "Hosts", "", setup_facts.hosts(view)),
        load,
        Section("versions", "Versions", "Versions", "", setup_facts.versions(view)),
        Section("repeat", "Repeat", "How to repeat this run", "", setup_facts.repeat(view)),
    ]
