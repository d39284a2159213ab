# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The made-up host, with a journal of its own."""

from __future__ import annotations

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import journal
from ansible_collections.colocation.testbed.plugins.module_utils.tuning import apply
from tests.support.fake_host import FakeHost


@pytest.fixture
def host(tmp_path):
    return FakeHost(tmp_path)


@pytest.fixture
def tools(host, tmp_path):
    return apply.Tools(host.roots, journal.Journal(str(tmp_path / "state/journal.json")))
