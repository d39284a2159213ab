# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The `bandwidth-apply` command of the node tool: make a bandwidth instance again from its state file.

After a start of the host pins, filters and queueing disciplines are gone; devices and groups have other numbers.
What is gone is left out with a warning. Where all is in place nothing changes.
"""

from __future__ import annotations

import sys

from ansible_collections.colocation.testbed.plugins.module_utils import files, journal
from ansible_collections.colocation.testbed.plugins.module_utils.bandwidth import instance, plan, reconcile

_BY = "bandwidth_apply"


def apply(place: instance.Place, host: plan.Host) -> reconcile.Outcome:
    """Bring about what the state file of an instance says. Raises what reconcile.ERRORS lists."""
    book = journal.Journal(f"{place.state_dir}/journal.json")
    return reconcile.reconcile(place, lambda wanted: wanted, frozenset(), book, _BY, False, host)


def run(spec_path: str) -> int:
    """Carry out a specification with instance, bpffs and state_dir; returns 0, or 1 after a failure."""
    try:
        raw = files.read_json(spec_path)
        place = instance.Place(raw["instance"], raw["bpffs"], raw["state_dir"])
        done = apply(place, plan.Host())
    except (KeyError, TypeError) as exc:
        sys.stderr.write(f"{spec_path}: lacks instance, bpffs or state_dir ({exc!r}); apply role bandwidth again\n")
        return 1
    except reconcile.ERRORS as exc:
        sys.stderr.write(f"{exc}\n")
        return 1
    for text in done.warnings:
        sys.stderr.write(f"warning: {text}\n")
    return 0
