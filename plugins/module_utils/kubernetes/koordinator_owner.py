# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose an object of Koordinator's is: ours by our label, our Helm release's by its annotations, or another's.

Names alone say nothing: every installation of Koordinator uses the same ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import koordinator_names as names
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import kubectl

MANIFESTS, HELM, PLATFORM = "manifests", "helm", "platform"
_RELEASE, _RELEASE_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


@dataclass(frozen=True)
class Installation:
    """An installation of ours: how it was made, and under which Helm release where Helm made it."""

    method: str
    release: str = ""
    release_namespace: str = ""

    def made(self, item: Mapping[str, Any]) -> bool:
        """Tell whether this installation made an object, so that its method may change it."""
        if self.method == HELM:
            return release_of(item) == (self.release, self.release_namespace)
        return kubectl.is_ours(item)

    def owns(self, item: Mapping[str, Any]) -> bool:
        """Tell whether an object may be taken away with the installation: what it made, and what has our label."""
        return self.made(item) or kubectl.is_ours(item)


def release_of(item: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return name and namespace of the Helm release that an object belongs to."""
    notes = item["metadata"].get("annotations") or {}
    return (notes[_RELEASE], notes.get(_RELEASE_NAMESPACE, "")) if _RELEASE in notes else None


def whose(item: Mapping[str, Any]) -> str:
    """Return the owner of an object as a sentence shows it."""
    release = release_of(item)
    if release:
        return f"Helm release {release[1]}/{release[0]}"
    return "an installation by manifests" if kubectl.is_ours(item) else "somebody else"


def is_definition(name: str) -> bool:
    """Tell whether a definition of a kind is one of those that Koordinator brings, by its full name."""
    return name.partition(".")[2] in names.CRD_GROUPS or name in names.SHARED_CRDS
