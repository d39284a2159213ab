# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apply a policy to the groups of a host: what is wanted, what is put back, what is written; and what came of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import (
    cgroup_apply,
    cgroup_foreign,
    cgroup_options,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup import Layout
from ansible_collections.colocation.testbed.plugins.module_utils.kernel.cgroup_steps import KEEP, Group, Plan
from ansible_collections.colocation.testbed.plugins.module_utils.node_policy import groups, restore
from ansible_collections.colocation.testbed.plugins.module_utils.policy import kernel_values, validation
from ansible_collections.colocation.testbed.plugins.module_utils.policy.node import (
    UNSUPPORTED,
    NodeFacts,
    Wanted,
    Workload,
)

# A policy may hold what only later engines act on; the states say so.
_ENGINE = "agent"
_WHERE = "policy"
_MEMBERS: Mapping[str, Any] = {"state": "present", "pids": (), "units": (), "process_names": ()}


class ApplyError(Exception):
    """A policy cannot be applied or taken back; the text says what stands in the way, and what to do."""


@dataclass(frozen=True)
class Task:
    """What is to be done: the policy's wishes, the groups that have them, and what matched nothing."""

    wanted: Wanted
    workloads: tuple[Workload, ...]
    groups: tuple[Group, ...]
    unmatched: tuple[str, ...]


@dataclass(frozen=True)
class Done:
    """What was done (in check mode: would be): the steps, and a sentence for each value that was put back."""

    plan: Plan
    restored: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Tell whether anything was or would be changed."""
        return bool(self.restored) or any(step.kind != KEEP for step in self.plan.steps)


def check(policy: Any) -> Mapping[str, Any]:
    """Return a policy that is good. Raises PolicyError with all problems."""
    validation.check(policy, _WHERE, _ENGINE)
    found: Mapping[str, Any] = policy
    return found


def prepare(layout: Layout, policy: Mapping[str, Any], node: NodeFacts, found: groups.Found) -> Task:
    """Return what a good policy comes to for the groups of this host."""
    wanted = kernel_values.wanted(policy, node, found.workloads)
    there = groups.existing(layout, (item["group"] for item in wanted.cgroups))
    missing = [item["group"] for item in wanted.cgroups if item["group"] not in there]
    return Task(
        wanted,
        found.workloads,
        tuple(_group(item) for item in wanted.cgroups if item["group"] in there),
        (*found.unmatched, *missing),
    )


def _group(item: Mapping[str, Any]) -> Group:
    return cgroup_options.group({**_MEMBERS, **item["options"], "name": item["group"]})


def refuse_idle(task: Task, entries: Sequence[groups.Entry]) -> None:
    """Raise ApplyError for a call that could not do anything on any host: no groups, and nothing for the host."""
    wanted = task.wanted
    if not entries and not (wanted.cgroups or wanted.resctrl or wanted.host):
        raise ApplyError(
            "groups is empty, and the policy has neither host applications nor settings of the host, so it would do "
            "nothing; name the groups that it is applied to, each with path and qos"
        )


def refuse_unsupported(task: Task) -> None:
    """Raise ApplyError when this host cannot honour a key, naming all of them."""
    found = [f"{key}: {reason}" for key, state, reason in task.wanted.states if state == UNSUPPORTED]
    if found:
        raise ApplyError(
            f"not supported on this host: {'; '.join(found)}; leave these out, or set on_unsupported to report"
        )


def carry_out(layout: Layout, task: Task, book: journal.Journal, is_check: bool) -> Done:
    """Put back what an earlier policy set and this one does not want, then set what it wants; all or none of that.

    Raises CgroupError, JournalError, and ApplyError for values that cannot be put back.
    """
    old = restore.stale(book, cgroup_foreign.targets(layout, task.groups))
    # What is put back may be in the way of what is wanted (a burst above a lower quota), so it goes first; where there
    # is nothing, bad values are found before anything changes.
    restored = _restore(book, old, is_check)
    plan = cgroup_foreign.plan(layout, task.groups)
    if plan.steps and not is_check:
        # Nothing counts as ours: even in groups of this collection, values are put back one by one.
        cgroup_apply.apply(plan.steps, book, restore.BY, frozenset())
    return Done(plan, restored)


def take_back(book: journal.Journal, is_check: bool) -> tuple[str, ...]:
    """Put back all values that policies have set; a sentence for each. Raises ApplyError where one cannot be."""
    return _restore(book, restore.stale(book, ()), is_check)


def _restore(book: journal.Journal, entries: Sequence[journal.Entry], is_check: bool) -> tuple[str, ...]:
    found = restore.restore(book, entries, is_check)
    if found.failed:
        raise ApplyError(f"values could not be put back and stay in {book.path}: {'; '.join(found.failed)}")
    return found.done


def shown(layout: Layout, task: Task, done: Done, is_check: bool) -> dict[str, Any]:
    """Return each group with its class, its level, the options that are wanted, and the values that it has."""
    about = {item.group: {"qos": item.qos, "level": item.level} for item in task.workloads}
    values = done.plan.after if is_check else done.plan.before
    if done.plan.steps and not is_check:
        # A new plan has what the kernel says now as its "before".
        values = cgroup_foreign.plan(layout, task.groups).before
    return {
        group.name: {
            **about.get(group.name, {"qos": None, "level": "application"}),
            "options": dict(group.values),
            "values": dict(values.get(group.name, {})),
        }
        for group in task.groups
    }


def diff(done: Done) -> dict[str, Any]:
    """Return the values before and after by group, and what was put back."""
    before: dict[str, Any] = {name: dict(values) for name, values in done.plan.before.items()}
    after: dict[str, Any] = {name: dict(values) for name, values in done.plan.after.items()}
    if done.restored:
        after["put back"] = list(done.restored)
    return {"before": before, "after": after}
