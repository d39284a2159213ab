# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Control groups, a process and the bandwidth programs for the tests of this folder."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.kernel import bpf_object
from tests.support.cgroup_host import Host
from tools.bandwidth import single_packets


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.clear()


@pytest.fixture
def sleeper() -> Iterator[int]:
    # The kernel renames a process after it has closed what a parent waits for; what it prints comes after both.
    code = "import time; print('up', flush=True); time.sleep(3600)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"up\n"
        yield child.pid
        child.send_signal(signal.SIGKILL)


@pytest.fixture(scope="session", params=single_packets.VARIANTS)
def bandwidth_object(request: pytest.FixtureRequest) -> Iterator[bpf_object.Loaded]:
    """The bandwidth programs of one variant, loaded."""
    loaded = single_packets.load(request.param)
    yield loaded
    loaded.close()


@pytest.fixture
def bench(bandwidth_object: bpf_object.Loaded) -> single_packets.Bench:
    """The bandwidth programs with empty maps."""
    return single_packets.prepare(bandwidth_object)
