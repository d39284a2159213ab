"""The same site over ssh, from the installed archive: only the inventory differs from the lab's."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import tooling
import yaml

from ansible_collections.colocation.testbed.plugins.plugin_utils import rundir
from tests.end_to_end.bench_lab import QUICK, Lab, wait_for

# Two machines share no directory and no control group, so neither do the hosts that stand in for them.
STATE_DIRS = {name: Path(f"/var/lib/colocation-testbed-ssh-{name}") for name in ("node1", "node2")}
PORT = 22022


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory that sshd accepts keys from: nobody else may write above it."""
    return tmp_path_factory.mktemp("ssh")


@pytest.fixture(scope="module")
def sshd(folder: Path) -> Iterator[None]:
    """Run an ssh server of the test's own on loopback, with keys of its own."""
    names = json.dumps({"names": ["openssh-server", "openssh-client"], "state_dir": str(folder / "journal")})
    tooling.run(["ansible", "localhost", "-m", "colocation.testbed.packages", "-a", names])
    for name in ("host", "user"):
        tooling.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
    Path("/run/sshd").mkdir(exist_ok=True)
    options = {
        "ListenAddress": f"127.0.0.1:{PORT}",
        "HostKey": folder / "host",
        "AuthorizedKeysFile": folder / "user.pub",
        "PidFile": "none",
        "UsePAM": "no",
        "StrictModes": "no",
        "PermitRootLogin": "prohibit-password",
    }
    argv = ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null"]
    argv += [word for key, value in options.items() for word in ("-o", f"{key}={value}")]
    with (folder / "sshd.log").open("wb") as log, subprocess.Popen(argv, stderr=log) as server:
        wait_for(lambda: b"listening" in (folder / "sshd.log").read_bytes(), 20)
        yield
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def cluster(folder: Path, sshd: None) -> Iterator[Lab]:
    """Return a lab that plays the installed collection on two hosts over ssh."""
    built = folder / "collections"
    tooling.run(["ansible-galaxy", "collection", "build", "--output-path", folder])
    archive = next(folder.glob("*.tar.gz"))
    # With the checkout's own settings ansible-galaxy would find the collection there and install nothing.
    plain = tooling.clean_environment()
    tooling.run(["ansible-galaxy", "collection", "install", archive, "-p", built, "--offline"], cwd=folder, env=plain)
    environment = tooling.clean_environment(
        ANSIBLE_COLLECTIONS_PATH=str(built), ANSIBLE_HOST_KEY_CHECKING="false", ANSIBLE_PIPELINING="true"
    )
    made = OverSsh(folder, environment)
    yield made
    made.good("colocation.testbed.reset")


class OverSsh(Lab):
    """Hosts that are reached over ssh; both happen to be this machine, with directories and groups of their own."""

    def command(self, playbook: str, *options: str, **variables: object) -> list[str]:
        def host(name: str, cpu: str) -> dict[str, str]:
            return {
                "node_state_dir": str(STATE_DIRS[name]),
                "node_cgroup_root": f"colocation-testbed-ssh-{name}",
                "node_cpus": cpu,
            }

        everywhere = {
            "ansible_host": "127.0.0.1",
            "ansible_port": PORT,
            "ansible_user": "root",
            "ansible_ssh_private_key_file": str(self.folder / "user"),
            "ansible_python_interpreter": "/usr/bin/python3",
            "node_housekeeping_cpus": "1",
            "latency_service_port": 18068,
            "batch_workload_clip_seconds": 1,
            **QUICK,
        }
        groups = {
            "tested": {"hosts": {"node1": host("node1", "0")}, "vars": everywhere},
            "load": {"hosts": {"node2": host("node2", "1")}, "vars": everywhere},
            "lab": {"hosts": {}},
        }
        inventory = self.folder / "hosts.yml"
        # A lab that is in use on this machine has its journal in the default place, and reset would take it down.
        nothing = {
            "lab_state_dir": "/var/lib/colocation-testbed-ssh-lab",
            "lab_cgroup_root": "colocation-testbed-ssh-lab",
        }
        inventory.write_text(yaml.safe_dump({"all": {"children": groups, "vars": nothing}}))
        given = {"matrix_results_dir": str(self.results), **QUICK, **variables}
        return ["ansible-playbook", "-i", str(inventory), playbook, "-e", json.dumps(given), *options]


@pytest.fixture(scope="module")
def run(cluster: Lab) -> rundir.RunDirectory:
    """Return a short run."""
    cluster.good("colocation.testbed.site", matrix_blocks=1)
    return rundir.RunDirectory.open(cluster.runs()[0])


def test_three_modes_were_measured_on_two_hosts(run):
    assert sorted(record.mode for record in run.measurements()) == ["baseline", "colocation", "slo_aware"]
    assert {name: host["role"] for name, host in run.manifest["hosts"].items()} == {"node1": "tested", "node2": "load"}
    assert run.validate() > 3 * 5


def test_one_block_concludes_nothing(run):
    verdict = json.loads((run.path / "summary.json").read_text())["verdict"]
    assert verdict["result"] in ("inconclusive", "invalid")


def test_again_nothing_changes(cluster, run):
    assert cluster.good("colocation.testbed.provision").recap("changed") == 0


def test_reset_leaves_no_file_group_or_process(cluster, run):
    cluster.good("colocation.testbed.reset")
    assert not any(path.exists() for path in STATE_DIRS.values())
    assert list(Path("/sys/fs/cgroup").glob("*/colocation-testbed-ssh-*")) == []
    running = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True, timeout=20).stdout
    assert "/colocation-testbed-ssh-" not in running
