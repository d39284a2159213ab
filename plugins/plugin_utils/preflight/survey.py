# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Look at everything, the controller first, then each host, and return all rows: one pass, no stop at the first."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from ansible_collections.colocation.testbed.plugins.module_utils import quantity
from ansible_collections.colocation.testbed.plugins.module_utils.measure import limits
from ansible_collections.colocation.testbed.plugins.module_utils.policy.validation import PolicyError
from ansible_collections.colocation.testbed.plugins.plugin_utils import definitions, lab_inventory
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import scenarios
from ansible_collections.colocation.testbed.plugins.plugin_utils.bandwidth_experiment import (
    settings as bandwidth_settings,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import orders, preparation, settings
from ansible_collections.colocation.testbed.plugins.plugin_utils.host_executor import HostExecutorError
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight import (
    access,
    controller,
    demands,
    hosts,
    variables,
)
from ansible_collections.colocation.testbed.plugins.plugin_utils.preflight.rows import Row
from ansible_collections.colocation.testbed.plugins.plugin_utils.rundir import RunDirectory, RunDirectoryError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment.deployed import Host

#: program → argv that prints its version, variable that lets the collection install it, that variable's default.
PROGRAMS = {
    "tested": {
        "nginx": (["nginx", "-v"], "latency_service_install"),
        "ffmpeg": (["ffmpeg", "-version"], "batch_workload_install"),
    },
    "load": {
        "gcc": (["gcc", "--version"], "load_generator_install"),
        "make": (["make", "--version"], "load_generator_install"),
        "wrk": (["wrk", "-v"], "load_generator_install"),
    },
}


def role_names() -> frozenset[str]:
    """Return the names of the collection's roles, which their variables begin with."""
    return frozenset(path.name for path in (preparation.COLLECTION_ROOT / "roles").iterdir())


class Survey:
    """Collects rows; ``reach`` returns a host that modules can be run on, or raises HostExecutorError."""

    def __init__(
        self,
        groups: Mapping[str, Sequence[str]],
        options: variables.Options,
        reach: Callable[[str], Host],
        min_free_mib: int,
    ) -> None:
        """Remember what is to be looked at."""
        self._groups = groups
        self._options = options
        self._reach = reach
        self._min_free_mib = min_free_mib
        self._shapes = False
        self._answers: dict[str, tuple[Mapping[str, Any], float]] = {}
        self._roles = role_names()
        self._told: set[str] = set()
        self._definitions: definitions.Definitions | None = None
        self._modes: tuple[str, ...] = ()
        self._substrate = demands.PROCESS

    def of_controller(self, user_variables: Mapping[str, Any]) -> list[Row]:
        """Return the rows of controller, inventory groups, variables and definitions."""
        found = [*controller.programs(), *controller.groups(self._groups)]
        stopped = any(row.level == "missing" for row in found)
        found += self._of_variables(user_variables, controller.WHERE)
        if stopped:
            return found
        bad = {row.what for row in found if row.level == "missing"}
        good = {name: value for name, value in user_variables.items() if name not in bad}
        return [*found, *self._matrix(good), *self._bandwidth(good)]

    def of_inventory(self) -> Iterator[Row]:
        """Yield the rows of the variables that the inventory gives each host, without asking it."""
        for name in dict.fromkeys(item for group in ("tested", "load") for item in self._groups.get(group, ())):
            try:
                host = self._reach(name)
                found = host.variables(lambda variable: variables.concerns(variable, self._options, self._roles))
            except HostExecutorError as exc:
                yield Row("variables", name, "readable", "not readable", "missing", str(exc))
                continue
            # A host has variables of many people; on it only what is a slip of one of ours is told.
            yield from (row for row in self._of_variables(found, name) if row.level == "missing")

    def _of_variables(self, given: Mapping[str, Any], where: str) -> Iterator[Row]:
        """Yield the rows of variables, each problem once, although several hosts share most of them."""
        for row in variables.check(given, self._options, self._roles, where):
            if row.consequence not in self._told:
                self._told.add(row.consequence)
                yield row

    def of_host(self, name: str, role: str) -> Iterator[Row]:
        """Yield the rows of one host."""
        try:
            host = self._reach(name)
            if access.is_wanted(host):
                row, is_there = access.look(host, self._reach(access.MACHINE), self._options)
                yield row
                if not is_there:
                    return
            facts, offset_s = self._answer(host, role)
        except HostExecutorError as exc:
            if name in self._groups.get("lab", ()):
                # A guest that isn't made yet, or doesn't run, can't be asked; role lab makes it and starts it.
                yield Row("connection", name, "reachable", "to be made")
            else:
                yield Row("connection", name, "reachable", "no answer", "missing", str(exc))
            return
        yield from hosts.check(facts, self._needs(host, role), offset_s)
        yield from demands.packages(host, role)
        if role == "tested" and self._definitions is not None:
            in_pods = self._substrate != demands.PROCESS
            yield from demands.substrate(host, self._substrate, self._modes, self._definitions)
            yield from demands.fit(host, facts, self._options, self._modes, self._definitions, in_pods)
            if not in_pods:
                yield demands.crowding(host, facts, self._options)

    def of_lab(self, hostvars: Mapping[str, Any]) -> Iterator[Row]:
        """Yield the row of the lab, if there is one: its module says, in check mode, whether it can be made here."""
        names = self._groups.get("lab", ())
        if not names:
            return
        needed = quantity.counted(len(names), "host")
        try:
            self._try_lab(self._reach("localhost"), lab_inventory.hosts(names, hostvars))
        except (HostExecutorError, lab_inventory.LabInventoryError) as exc:
            yield Row("lab", controller.WHERE, needed, "can't be made", "missing", str(exc))
        else:
            yield Row("lab", controller.WHERE, needed, "can be made")

    def _try_lab(self, machine: Host, lab_hosts: list[dict[str, Any]]) -> None:
        def chosen(*names: str) -> dict[str, Any]:
            defaults = {name: self._options[f"lab_{name}"]["default"] for name in names}
            return {name: machine.variable(f"lab_{name}", default) for name, default in defaults.items()}

        given = chosen(
            "subnet", "namespace_prefix", "link_prefix", "mtu_bytes", "link_rate", "link_buffer_kib", "state_dir"
        )
        driver = chosen("driver")
        if driver["driver"] == "netns":
            machine.run("lab_netns", {**given, "hosts": lab_hosts}, check_mode=True)
            return
        recipe = chosen("image_suite", "image_packages", "image_size_mib", "image_cache_dir")
        asked = {name.removeprefix("image_"): value for name, value in recipe.items()}
        image = machine.run("lab_image", {**asked, **driver}, check_mode=True)["path"]
        given |= {**driver, **chosen("memory_mib", "cpu_count", "boot_timeout_s"), "image": image}
        machine.run("lab_guests", {**given, "hosts": lab_hosts}, check_mode=True)

    def _matrix(self, given: Mapping[str, Any]) -> Iterator[Row]:
        arguments = self._arguments(given, "matrix_")
        problems: list[str] = []
        try:
            wanted = settings.from_arguments(arguments)
            yield controller.free(wanted.tested)
            yield controller.results(wanted.results_dir)
            preparation.check_run_id(wanted, RunDirectory)
            limits.check(wanted.limits)
            self._modes, self._substrate = wanted.modes, wanted.substrate
            self._definitions = definitions.load_definitions(
                preparation.COLLECTION_ROOT,
                wanted.modes,
                arguments["mode_definitions"],
                arguments["policy_definitions"],
                arguments["aggressor_definitions"],
                wanted.aggressors,
            )
            self._shapes = orders.divides_link(wanted.modes, self._definitions)
        except definitions.DefinitionsError as exc:
            problems = list(exc.problems)
        except settings.SettingsError as exc:
            problems = list(exc.problems)
        except (limits.LimitsError, PolicyError, preparation.PreparationError, RunDirectoryError) as exc:
            problems = [str(exc)]
        yield from controller.sentences("matrix", "valid", problems)

    def _bandwidth(self, given: Mapping[str, Any]) -> Iterator[Row]:
        prefix = bandwidth_settings.PREFIX
        if not any(name.startswith(prefix) for name in given):
            return
        arguments = self._arguments(given, prefix)
        problems: list[str] = []
        try:
            wanted = bandwidth_settings.from_arguments(arguments)
            limits.check(wanted.limits, limits.TRAFFIC)
            root = preparation.COLLECTION_ROOT
            scenarios.load(root, arguments["scenarios"], arguments["select"], wanted.shapers)
        except (scenarios.ScenariosError, settings.SettingsError) as exc:
            problems = list(exc.problems)
        except limits.LimitsError as exc:
            problems = [str(exc)]
        yield from controller.sentences("bandwidth", "valid", problems)

    def _arguments(self, given: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        """Return the arguments of an experiment's module, which its role's variables set."""
        names = [name for name in self._options if name.startswith(prefix)]
        groups = {name: self._groups[name] for name in ("tested", "load")}
        return {name.removeprefix(prefix): self._value(given, name) for name in names} | groups

    def _value(self, given: Mapping[str, Any], name: str) -> Any:
        return given.get(name, self._options[name].get("default"))

    def _answer(self, host: Host, role: str) -> tuple[Mapping[str, Any], float]:
        """Return what a host says of itself and its clock's offset; a machine that carries several is asked once."""
        question = self._question(host, role)
        machine = "localhost" if self._shares_machine(host) else host.name
        key = json.dumps([machine, question], sort_keys=True)
        if key not in self._answers:
            asked_s = time.time()
            facts = host.run("node_facts", question)
            self._answers[key] = facts, preparation.clock_offset_s(asked_s, float(facts["wall_s"]), time.time())
        return self._answers[key]

    def _question(self, host: Host, role: str) -> dict[str, Any]:
        roles = PROGRAMS if self._shares_machine(host) else {role: PROGRAMS[role]}
        return {
            "state_dir": host.variable("node_state_dir", self._options["node_state_dir"]["default"]),
            "node_python": host.variable("node_python", self._options["node_python"]["default"]),
            "programs": {name: argv for asked in roles.values() for name, (argv, _variable) in asked.items()},
            **({"shaping": True} if self._shapes and "tested" in roles else {}),
        }

    def _unused(self, host: Host) -> set[str]:
        """Return the programs that a host can do without: a pod brings its own, and a wrk of a package isn't built."""
        packaged = host.variable("load_generator_source", "auto") == "package"
        of_image = set() if self._substrate == demands.PROCESS else {"nginx"}
        return of_image | ({"gcc", "make"} if packaged else {"wrk"})

    def _shares_machine(self, host: Host) -> bool:
        """Return whether a host is a namespace of the machine that was asked; a guest is a machine of its own."""
        return self._in_lab(host) and host.variable("lab_driver", "netns") == "netns"

    def _in_lab(self, host: Host) -> bool:
        """Return whether a host has ports of its own, apart from those of the machine that was asked."""
        return host.name in self._groups.get("lab", ())

    def _needs(self, host: Host, role: str) -> hosts.Needs:
        port = int(host.variable("latency_service_port", self._options["latency_service_port"]["default"]))
        return hosts.Needs(
            name=host.name,
            cpus=str(host.variable("node_cpus", "")),
            housekeeping_cpus=str(host.variable("node_housekeeping_cpus", "")),
            min_free_mib=self._min_free_mib,
            ports={port: "latency_service_port"} if role == "tested" and not self._in_lab(host) else {},
            programs={
                name: (variable, bool(host.variable(variable, True)))
                for name, (_argv, variable) in PROGRAMS[role].items()
                if name not in self._unused(host)
            },
            shaping=self._shapes and role == "tested",
            python=str(host.variable("node_python", self._options["node_python"]["default"])),
        )
