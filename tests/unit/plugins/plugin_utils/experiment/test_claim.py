"""One matrix at a time on a node."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ansible_collections.colocation.testbed.plugins.plugin_utils.experiment import claim


def test_a_second_claim_names_the_holder(tmp_path):
    with claim.claimed("node1", tmp_path):
        said = rf"node1: .*process {os.getpid()} .*end that playbook"
        with pytest.raises(claim.ClaimError, match=said), claim.claimed("node1", tmp_path, wait_s=0):
            pytest.fail("both hold it")
        with claim.claimed("node2", tmp_path, wait_s=0):
            pass


def test_it_is_free_again_afterwards_and_after_a_kill(tmp_path):
    with claim.claimed("node1", tmp_path):
        pass
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.flock(f, 2); print('held', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "node1.lock")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(claim.ClaimError), claim.claimed("node1", tmp_path, wait_s=0):
            pytest.fail("both hold it")
        holder.kill()
    with claim.claimed("node1", tmp_path, wait_s=5):
        pass
