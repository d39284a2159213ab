# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that stay open between samples."""

from __future__ import annotations

import os

from ansible_collections.colocation.testbed.plugins.module_utils.kernel.kept_file import KeptFile


def test_reads_the_current_content_without_opening_again(tmp_path, monkeypatch):
    path = tmp_path / "value"
    path.write_text("1\n")
    kept = KeptFile(str(path))
    assert kept.read_int() == 1
    monkeypatch.setattr(os, "open", None)
    path.write_text("22\n")
    assert (kept.read_int(), kept.read_text()) == (22, "22\n")
    kept.close()


def test_a_file_that_appears_later(tmp_path):
    kept = KeptFile(str(tmp_path / "late"))
    assert (kept.read(), kept.read_text(), kept.read_int()) == (None, None, None)
    (tmp_path / "late").write_text("x")
    assert kept.read() == b"x"
    assert kept.read_int() is None
    kept.close()


def test_long_content_is_whole(tmp_path):
    content = os.urandom(200_000)
    (tmp_path / "long").write_bytes(content)
    kept = KeptFile(str(tmp_path / "long"))
    assert kept.read() == content
    kept.close()


def test_a_failed_read_opens_the_path_again_only_when_told(tmp_path, monkeypatch):
    path = tmp_path / "value"
    path.write_text("1")
    again, once = KeptFile(str(path)), KeptFile(str(path), reopen=False)
    assert (again.read(), once.read()) == (b"1", b"1")
    real, failures = os.pread, []

    def failing(fd, length, offset):
        if failures:
            raise failures.pop()
        return real(fd, length, offset)

    monkeypatch.setattr(os, "pread", failing)
    failures.append(OSError(3, "No such process"))
    assert again.read() == b"1"
    failures.append(OSError(3, "No such process"))
    assert (once.read(), once.read()) == (None, None)
    again.close()
