# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installation of Koordinator is set to, in the words of its Helm chart: one set of values for both methods.

Helm ignores keys that a chart does not know, so a misspelled one would do nothing; here they are refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.policy import koordinator_gates as gates
from ansible_collections.colocation.testbed.plugins.module_utils.policy.overlay import merge
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation_values import suggest
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes import koordinator_chart

MANAGER, AGENT, SCHEDULER, DESCHEDULER = "manager", "koordlet", "scheduler", "descheduler"
COMPONENTS: Mapping[str, str] = {
    MANAGER: "Deployment/koord-manager",
    AGENT: "DaemonSet/koordlet",
    SCHEDULER: "Deployment/koord-scheduler",
    DESCHEDULER: "Deployment/koord-descheduler",
}
"""Component to kind and name of its workload, by either method."""
NEEDED = (MANAGER, AGENT)
NAMESPACE = "koordinator-system"
WEBHOOK_PORT = 9876
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
# A label that no node has: the chart has no switch for this component.
_NOWHERE = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": "colocation.testbed/nowhere", "operator": "Exists"}]}]
        }
    }
}
KEYS = koordinator_chart.KEYS
_VALIDATION = "ConfigMapValidatingWebhook"
_VERSION = re.compile(r"v?(\d+\.\d+)\.\d+\Z")


class ValuesError(Exception):
    """Settings of an installation cannot be used; ``problems`` has one sentence for each thing that is wrong."""

    def __init__(self, problems: Sequence[str]) -> None:
        """Keep the sentences."""
        self.problems = tuple(problems)
        super().__init__("; ".join(problems))


@dataclass(frozen=True)
class Settings:
    """What a user decides about an installation; ``extra`` are values of the chart, laid over all others.

    ``method`` is manifests or helm; "" judges no value by what the method can do. ``validated``: whether the manager is
    to check the policy too. ``source`` is a directory of Koordinator's sources, "" for those of the version.
    """

    version: str
    image_host: str
    image_tag: str = ""
    components: Sequence[str] = (MANAGER, AGENT, SCHEDULER)
    replicas: int = 1
    features: str = ""
    manager_gates: str = ""
    host_dirs: Mapping[str, str] = field(default_factory=dict)
    resources: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)
    method: str = ""
    validated: bool = False
    source: str = ""


def values(settings: Settings, where: str = "koordinator_") -> dict[str, Any]:
    """Return the chart's values. Raises ValuesError with all problems.

    Components that are not wanted have no pods: Deployments by replicas, the device daemon by a node label that no node
    has, since the chart has no switches.
    """
    problems = list(_problems(settings, where))
    if not problems:
        problems = list(_together(settings, where))
    if problems:
        raise ValuesError(problems)
    return _merged(settings)


def _merged(settings: Settings) -> dict[str, Any]:
    tag = settings.image_tag or f"v{settings.version}"
    found: dict[str, Any] = {
        "imageRepositoryHost": settings.image_host,
        "installation": {"namespace": NAMESPACE},
        "featureGates": settings.manager_gates,
        AGENT: {"features": settings.features, "hostDirs": dict(settings.host_dirs)},
        "deviceDaemon": {"nodeAffinity": _NOWHERE},
    }
    for name in (MANAGER, SCHEDULER, DESCHEDULER):
        found[name] = {"replicas": settings.replicas if name in settings.components else 0}
    for name, program in (
        (AGENT, "koordlet"),
        *((name, f"koord-{name}") for name in (MANAGER, SCHEDULER, DESCHEDULER)),
    ):
        found[name]["image"] = {"repository": f"koordinator-sh/{program}", "tag": tag}
        if name in settings.resources:
            found[name]["resources"] = settings.resources[name]
    return dict(merge(found, settings.extra))


def _problems(settings: Settings, where: str) -> Iterator[str]:
    if settings.version not in KEYS:
        yield f"{where}version: {settings.version!r} is not known; {suggest(settings.version, sorted(KEYS))}"
        return
    for name in settings.components:
        if name not in COMPONENTS:
            yield f"{where}components: {name!r} is not a component; {suggest(name, sorted(COMPONENTS))}"
    for name in NEEDED:
        if name not in settings.components:
            yield f"{where}components: lacks {name}, without which nothing is held back; add it"
    for name in settings.resources:
        if name not in COMPONENTS:
            yield f"{where}resources.{name}: is not a component; {suggest(name, sorted(COMPONENTS))}"
    if not 1 <= settings.replicas <= 10:
        yield f"{where}replicas: {settings.replicas} is out of range; write a number from 1 to 10"
    for name in settings.host_dirs:
        if name not in koordinator_chart.HOST_DIRS:
            yield f"{where}host_dirs.{name}: is not known; {suggest(name, sorted(koordinator_chart.HOST_DIRS))}"
    manifests = settings.method == "manifests"
    yield from koordinator_chart.problems(settings.extra, settings.version, f"{where}values", manifests)


def _together(settings: Settings, where: str) -> Iterator[str]:
    """Check the values as they are in the end, whichever of the user's variables gives them."""
    found = _merged(settings)

    def given(path: str, variable: str) -> str:
        return variable if koordinator_chart.lookup(settings.extra, path) is None else f"{where}values.{path}"

    host, place = found["imageRepositoryHost"], given("imageRepositoryHost", f"{where}image_host")
    if not host or "://" in host or host.endswith("/"):
        yield f"{place}: {host!r} is no registry; write host or host:port, without a scheme"
    if found["installation"]["namespace"] != NAMESPACE:
        yield (
            f"{where}values.installation.namespace: {found['installation']['namespace']!r} is not where this "
            f"collection looks for Koordinator; remove it, or write {NAMESPACE}"
        )
    if not found[MANAGER]["replicas"]:
        yield f"{where}values.manager.replicas: 0 leaves nobody who admits pods and offers resources; write 1 or more"
    for name, path in found[AGENT]["hostDirs"].items():
        if path and not path.startswith("/"):
            place = given(f"koordlet.hostDirs.{name}", f"{where}host_dirs.{name}")
            yield f"{place}: {path!r} is no absolute path; write one"
    for name in COMPONENTS:
        yield from _tag(found[name]["image"]["tag"], settings, given(f"{name}.image.tag", f"{where}image_tag"))
    agent = given("koordlet.features", f"{where}features")
    manager = given("featureGates", f"{where}manager_gates")
    yield from _gates(settings, found[AGENT]["features"], agent, "agent")
    yield from _gates(settings, found["featureGates"], manager, "manager")


def _gates(settings: Settings, text: str, where: str, program: str) -> Iterator[str]:
    try:
        found = gates.parse(text, where, settings.version, program)
    except gates.GatesError as exc:
        yield str(exc)
        return
    if settings.validated and found.get(_VALIDATION) is False:
        yield (
            f"koordinator_validate_on_server: nobody validates while the manager's feature gate {_VALIDATION} is off; "
            f"add {_VALIDATION}=true to {where}"
        )


def _tag(tag: str, settings: Settings, where: str) -> Iterator[str]:
    is_version = _VERSION.match(tag)
    if is_version and is_version[1] != settings.version.rpartition(".")[0]:
        yield (
            f"{where}: {tag!r} is another version than koordinator_version {settings.version}, whose arguments and "
            "definitions it does not know; remove it, or set koordinator_version"
        )


def workloads(settings: Settings) -> list[str]:
    """Return kind and name of what must be ready after an installation. Expects settings that have values."""
    found = _merged(settings)
    return [text for name, text in COMPONENTS.items() if name == AGENT or found[name]["replicas"]]
