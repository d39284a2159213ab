# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The host's package sources, read to ask the same archives for more than apt would. Formats: sources.list(5)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from ansible_collections.colocation.testbed.plugins.module_utils import files

_ONE_LINE = re.compile(r"\s*(deb|deb-src)\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)((?:\s+[^\s#]+)*)\s*(?:#.*)?\Z")
# Names under which archives offer a release beside its code name.
_ALIASES = ("stable", "testing", "unstable", "sid", "oldstable")


class AptSourcesError(Exception):
    """No archive of this host can be asked; the text says where none is named."""


@dataclass(frozen=True)
class Archive:
    """One entry: where binary packages come from. `signed_by` as written, a path, fingerprint or key block."""

    uris: tuple[str, ...]
    suites: tuple[str, ...]
    components: tuple[str, ...]
    signed_by: str = ""

    def render(self, kind: str = "deb-src") -> str:
        """Return the entry in deb822 form: for source packages, or for binary ones where `kind` is ``deb``."""
        lines = [
            f"Types: {kind}",
            f"URIs: {' '.join(self.uris)}",
            f"Suites: {' '.join(self.suites)}",
            *([f"Components: {' '.join(self.components)}"] if self.components else []),
            *([f"Signed-By: {self.signed_by}"] if self.signed_by else []),
        ]
        return "\n".join(lines) + "\n"


def parse_list(text: str) -> list[Archive]:
    """Parse one-line entries (`deb [options] uri suite component…`); lines that are none are skipped, as apt warns."""
    found = []
    for line in text.split("\n"):
        match = _ONE_LINE.match(line)
        if match and match[1] == "deb":
            options = dict(word.partition("=")[::2] for word in (match[2] or "").split())
            found.append(Archive((match[3],), (match[4],), tuple(match[5].split()), options.get("signed-by", "")))
    return found


def parse_deb822(text: str) -> list[Archive]:
    """Parse stanzas of `Field: value` lines with indented continuations; incomplete or disabled ones are skipped."""
    found = []
    for stanza in re.split(r"\n[ \t]*\n", text.replace("\r\n", "\n")):
        values: dict[str, str] = {}
        name = ""
        for line in stanza.split("\n"):
            if line.startswith("#"):
                continue
            if line[:1] in (" ", "\t") and name:
                values[name] += "\n" + line
            elif ":" in line:
                name, _unused, value = line.partition(":")
                name = name.strip().lower()
                values[name] = value.strip()
        uris, suites = tuple(values.get("uris", "").split()), tuple(values.get("suites", "").split())
        disabled = values.get("enabled", "yes").strip().lower() in ("no", "false", "0", "off", "without", "disable")
        if "deb" in values.get("types", "").split() and uris and suites and not disabled:
            components = tuple(values.get("components", "").split())
            found.append(Archive(uris, suites, components, values.get("signed-by", "")))
    return found


def parse_codename(text: str) -> str:
    """Return VERSION_CODENAME of an os-release(5), or an empty text."""
    match = re.search(r"^VERSION_CODENAME=\"?([A-Za-z0-9._-]*)\"?\s*$", text, re.MULTILINE)
    return match[1] if match else ""


def of_release(archives: Iterable[Archive], codename: str) -> list[Archive]:
    """Return the archives of the distribution's release: others rarely have source packages, and none has wrk's."""
    listed = list(archives)
    wanted = (codename, *_ALIASES) if codename else _ALIASES
    own = [
        archive
        for archive in listed
        if all(re.split(r"[-/]", suite)[0] in wanted and not suite.startswith("/") for suite in archive.suites)
    ]
    return own or listed


def read(root: str = "/") -> list[Archive]:
    """Return the archives of a host's release. Raises AptSourcesError when there is none."""
    folder = os.path.join(root, "etc/apt")
    texts = [(parse_list, os.path.join(folder, "sources.list"))]
    parts = os.path.join(folder, "sources.list.d")
    for name in sorted(os.listdir(parts)) if os.path.isdir(parts) else []:
        if name.endswith((".list", ".sources")):
            texts.append((parse_list if name.endswith(".list") else parse_deb822, os.path.join(parts, name)))
    archives = [archive for parse, path in texts for archive in parse(files.read_text_or_none(path) or "")]
    if not archives:
        raise AptSourcesError(f"{folder}: names no archive to fetch packages from")
    return of_release(archives, parse_codename(files.read_text_or_none(os.path.join(root, "etc/os-release")) or ""))
