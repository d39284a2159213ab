# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Know processes again: with real ones of this test's own."""

from __future__ import annotations

import dataclasses
import os
import signal
import subprocess

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import processes


@pytest.fixture
def child():
    """A process in a session of its own, which has a child."""
    argv = ["sh", "-c", "sleep 60 & echo $!; wait"]
    process = subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True)
    grandchild = int(process.stdout.readline())
    yield process, grandchild
    process.stdout.close()
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait(10)


def test_identity_tells_a_process_from_a_later_one(child):
    process, _ = child
    identity = processes.identify(process.pid)
    assert processes.is_running(identity)
    assert not processes.is_running(dataclasses.replace(identity, start_ticks=identity.start_ticks + 1))
    assert not processes.is_running(dataclasses.replace(identity, boot_id="another"))


def test_a_signal_goes_only_to_the_process_that_is_meant(child):
    process, _ = child
    identity = processes.identify(process.pid)
    later = dataclasses.replace(identity, start_ticks=identity.start_ticks + 1)
    assert not processes.send(later, signal.SIGKILL)
    assert process.poll() is None
    assert processes.send(identity, signal.SIGKILL)
    assert processes.wait_end(identity, 10)
    assert process.wait(10) == -signal.SIGKILL
    assert not processes.send(identity, signal.SIGKILL)


def test_a_zombie_does_not_run(child):
    process, _ = child
    identity = processes.identify(process.pid)
    process.kill()
    assert processes.wait_end(identity, 10)
    assert processes.identify(process.pid) is None


def test_waiting_has_a_limit(child):
    identity = processes.identify(child[0].pid)
    assert not processes.wait_end(identity, 0.05)


def test_session_and_descendants(child):
    process, grandchild = child
    identity = processes.identify(process.pid)
    assert {item.pid for item in processes.session_members(identity)} == {process.pid, grandchild}
    assert [item.pid for item in processes.descendants(process.pid)] == [grandchild]
    process.kill()
    process.wait(10)
    assert [item.pid for item in processes.session_members(identity)] == [grandchild]


def test_a_session_number_that_was_used_again_is_left_alone(child):
    identity = processes.identify(child[0].pid)
    assert processes.session_members(dataclasses.replace(identity, start_ticks=identity.start_ticks - 1)) == []
    assert processes.session_members(dataclasses.replace(identity, boot_id="another")) == []
