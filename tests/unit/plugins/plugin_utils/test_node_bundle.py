# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node tool's archive: the same sources give the same bytes, and it holds all that its commands import."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile

import pytest
from tooling import ROOT

from ansible_collections.colocation.testbed.plugins.plugin_utils import node_bundle


def test_time_and_order_of_files_do_not_matter(tmp_path):
    for name in ("a", "b"):
        for part in ("plugins/module_utils", "files/node"):
            shutil.copytree(ROOT / part, tmp_path / name / part)
    for number, path in enumerate(sorted((tmp_path / "b").rglob("*.py"))):
        os.utime(path, (number * 1e6, number * 1e6))
        path.chmod(0o600)
    first, second = (node_bundle.build(tmp_path / name) for name in ("a", "b"))
    assert first == second
    (tmp_path / "b/plugins/module_utils/node/spec.py").write_bytes(b"# changed\n")
    assert node_bundle.build(tmp_path / "b").sha256 != first.sha256


def test_it_runs_alone_and_holds_every_command(tmp_path):
    path = tmp_path / "node.pyz"
    path.write_bytes(node_bundle.build(ROOT).content)
    argv = [sys.executable, "-I", "-S", str(path)]
    done = subprocess.run([*argv, "check"], capture_output=True, text=True, check=False, cwd="/", timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    usage = subprocess.run(argv, capture_output=True, text=True, check=False, cwd="/", timeout=60)
    assert usage.returncode == 2
    assert "supervise|sample|hold-pm-qos|load|bandwidth-apply" in usage.stderr


def test_the_commands_are_those_of_the_entry_point():
    namespace: dict[str, object] = {"__name__": "node"}
    exec(compile((ROOT / "files/node/__main__.py").read_text(), "__main__.py", "exec"), namespace)
    assert set(namespace["COMMANDS"].values()) == set(node_bundle.COMMANDS)


def test_only_what_is_imported_is_packed(tmp_path):
    path = tmp_path / "node.pyz"
    path.write_bytes(node_bundle.build(ROOT).content)
    names = zipfile.ZipFile(path).namelist()
    assert f"{node_bundle.PREFIX.replace('.', '/')}plugins/module_utils/kernel/procfs.py" in names
    assert not [name for name in names if "/policy/" in name or "/measure/" in name or name.endswith("entries.py")]


def test_imports_are_found_in_functions_too():
    source = b"import a.b\ndef f():\n    from c.d import e\nfrom . import g\n"
    assert list(node_bundle.imports(source)) == ["a.b", "c.d", "c.d.e"]


def test_a_missing_file_is_one_sentence(tmp_path):
    with pytest.raises(node_bundle.BundleError, match="install the collection again"):
        node_bundle.build(tmp_path)
