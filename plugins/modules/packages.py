#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: packages
short_description: Install Debian packages so that reset can take exactly them away
version_added: 0.1.0
description:
  - Installs those of the named packages that are missing, without recommended ones, and writes into the journal which
    packages are new on the host, dependencies included, so that reset removes these and no others.
  - No service is started by being installed, and on hosts with systemd units that came with the packages are disabled,
    because the collection starts its workloads itself.
  - Fetches the package lists only when there are none, or when an installation fails with those that are there.
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: Where the host has no package lists yet, dependencies are not part of the prediction.
  diff_mode:
    support: full
options:
  names:
    description: Packages that must be installed.
    type: list
    elements: str
    required: true
  state_dir:
    description: State directory of the host; its journal records the new packages.
    type: path
    default: /var/lib/colocation-testbed
  lock_timeout_s:
    description: Seconds to wait for another program that holds the package lock.
    type: int
    default: 300
  advice:
    description:
      - What the user can do instead of letting this module install packages. It ends every error message, for example
        V(install wrk yourself and set load_generator_install to false).
    type: str
    default: install them yourself
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Install what the load generator is built with
  colocation.testbed.packages:
    names: [gcc, make, libc6-dev]
    advice: install wrk yourself and set load_generator_install to false
"""

RETURN = r"""
installed:
  description: Packages that are new on the host, dependencies included; in check mode those that would be.
  returned: always
  type: list
  elements: str
  sample: [nginx, nginx-common]
upgraded:
  description: Packages that were there before and now have another version; reset does not bring the old one back.
  returned: always
  type: list
  elements: str
  sample: []
disabled_units:
  description: Units of new packages that were kept from starting at boot (hosts with systemd only).
  returned: always
  type: list
  elements: str
  sample: [nginx.service]
updated_lists:
  description: Whether the package lists were fetched.
  returned: always
  type: bool
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import apt, commands, files, journal

_BY = "packages"


def plan_with_lists(tool: apt.Apt, missing: list[str], check_mode: bool) -> tuple[apt.Plan, bool]:
    """Return what is to be done, and whether the package lists had to be fetched for it."""
    if check_mode and tool.lists_missing():
        return apt.Plan(tuple(missing), ()), False
    if not tool.lists_missing():
        try:
            return tool.simulate(missing), False
        except apt.AptError:
            if check_mode:
                raise
    tool.update()
    return tool.simulate(missing), True


def install(tool: apt.Apt, book: journal.Journal, missing: list[str], plan: apt.Plan) -> bool:
    """Install, and fetch the lists and try once more where that fails (a mirror drops old versions).

    Returns whether the lists were fetched. The journal holds afterwards what the host really got.
    """
    before = tool.installed()
    record(book, plan)
    try:
        with apt.nothing_started(book, _BY, tool.policy_file):
            try:
                tool.install(missing)
            except apt.AptError:
                tool.update()
                record(book, tool.simulate(missing))
                tool.install(missing)
                return True
    finally:
        after = tool.installed()
        recorded = [entry.target for entry in book.entries() if entry.kind == "package" and entry.by == _BY]
        book.forget_many(("package", name) for name in recorded if name not in after and name not in before)
    return False


def record(book: journal.Journal, plan: apt.Plan) -> None:
    """Write down the packages that are about to be new."""
    book.record_many([journal.Change("package", name, None) for name in plan.new], _BY)


def run(module: AnsibleModule) -> dict[str, Any]:
    """Compare, install what is missing, read back."""
    book = journal.of(module.params["state_dir"])
    tool = apt.Apt(module.params["lock_timeout_s"], module.params["advice"])
    apt.check_names(module.params["names"])
    present = tool.installed()
    missing = sorted({name for name in module.params["names"] if name not in present})
    result: dict[str, Any] = {"changed": bool(missing), "installed": [], "upgraded": [], "disabled_units": []}
    result["updated_lists"] = False
    if not missing:
        return result
    plan, result["updated_lists"] = plan_with_lists(tool, missing, module.check_mode)
    result["installed"], result["upgraded"] = list(plan.new), list(plan.upgraded)
    if module.check_mode:
        return result
    result["updated_lists"] = install(tool, book, missing, plan) or result["updated_lists"]
    after = tool.installed()
    result["installed"] = sorted(name for name in plan.new if name in after)
    virtual = [name for name in missing if name not in after]
    if virtual:
        raise apt.AptError(
            f"packages: {', '.join(virtual)}: apt installed other packages that provide it; "
            "name the package itself, so that the next run can see that it is there"
        )
    result["disabled_units"] = apt.disable_units(result["installed"])
    return result


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "names": {"type": "list", "elements": "str", "required": True},
            "state_dir": {"type": "path", "default": "/var/lib/colocation-testbed"},
            "lock_timeout_s": {"type": "int", "default": 300},
            "advice": {"type": "str", "default": "install them yourself"},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (apt.AptError, commands.CommandError, files.FilesError, journal.JournalError) as exc:
        module.fail_json(msg=str(exc))
    for name in result["upgraded"]:
        module.warn(f"package {name} was there before and gets another version; reset does not bring the old one back")
    lines = "".join(f"{name}\n" for name in result["installed"])
    module.exit_json(diff={"before": "", "after": lines, "after_header": "new packages"}, **result)


if __name__ == "__main__":
    main()
