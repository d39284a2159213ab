# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
name: node_pod
short_description: Run tasks on a Kubernetes node through a pod of the collection's
version_added: 0.1.0
description:
  - Runs each command by C(kubectl exec) in the pod that role C(colocation.testbed.node_access) has put on the node, for
    nodes that nobody can log in to.
  - That pod has the node's processes, network, devices and C(/sys), and one directory of the node. Everything else in
    it, Python and programs above all, is the image's.
  - The controller must have kubectl and credentials with the right to create C(pods/exec).
author:
  - colocation.testbed contributors (@colocation-testbed)
options:
  pipelining:
    description: Whether modules go in on standard input, in one call instead of five, each of which starts kubectl.
    type: bool
    default: true
    vars:
      - name: ansible_pipelining
  kubectl:
    description: The program that reaches the cluster, on the controller.
    type: str
    default: kubectl
    vars:
      - name: kubernetes_kubectl
  kubeconfig:
    description: The kubeconfig, on the controller.
    type: str
    default: ~/.kube/config
    vars:
      - name: kubernetes_kubeconfig
  context:
    description: Context of the kubeconfig. Where it is empty, its current one.
    type: str
    default: ""
    vars:
      - name: kubernetes_context
  node:
    description: Name of the node in the cluster. Where it is empty, the host's name in the inventory.
    type: str
    default: ""
    vars:
      - name: kubernetes_node_name
  inventory_name:
    description: The host's name in the inventory.
    type: str
    default: ""
    vars:
      - name: inventory_hostname
  namespace:
    description: Namespace of the pods.
    type: str
    default: colocation-testbed-access
    vars:
      - name: node_access_namespace
  optional:
    description:
      - Whether commands run on the controller where the node has no pod yet, instead of failing.
      - Meant for C({{ ansible_check_mode }}), as a pod that is only predicted can't be asked.
    type: bool
    default: false
    vars:
      - name: ansible_node_pod_optional
  remote_user:
    description: User that commands run as, which is the pod's.
    type: str
    default: root
"""

import shlex
import subprocess

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    access_manifests,
    attach,
    node_access,
)
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError

display = Display()
#: What kubectl adds to the errors of a command that ran and ended with another status than 0.
_ENDED = b"command terminated with exit code "
#: Seconds that kubectl waits for a pod that is starting.
_STARTING_S = 10


class Connection(ConnectionBase):
    """A connection through kubectl exec."""

    transport = "colocation.testbed.node_pod"
    has_pipelining = True

    def _connect(self) -> Connection:
        """Do nothing: each command is a call of its own, and one that can't be made says why."""
        self._connected = True
        return self

    def close(self) -> None:
        """Do nothing: nothing is kept open."""
        self._connected = False

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command on the node."""
        display.vvv(f"EXEC {cmd}", host=self._node())
        return self._run(cmd, in_data)

    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file to the node."""
        try:
            with open(in_path, "rb") as handle:
                content = handle.read()
        except OSError as exc:
            raise AnsibleFileNotFound(f"{in_path}: can't be read: {exc.strerror}") from exc
        path = shlex.quote(out_path)
        status, out, err = self._run(f"cat > {path} && wc -c < {path}", content)
        # A stream that was cut short ends with status 0.
        if status != 0 or out.strip() != str(len(content)).encode():
            said = err.decode(errors="replace").strip() or f"{out.decode().strip()} of {len(content)} bytes arrived"
            raise AnsibleConnectionFailure(f"node {self._node()}: {out_path} could not be written: {said}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file from the node."""
        path = shlex.quote(in_path)
        status, out, err = self._run(f"wc -c < {path} && cat {path}", None)
        size, _newline, content = out.partition(b"\n")
        if status != 0 or size.strip() != str(len(content)).encode():
            said = err.decode(errors="replace").strip() or f"{len(content)} of {size.decode()} bytes arrived"
            raise AnsibleConnectionFailure(f"node {self._node()}: {in_path} could not be read: {said}")
        with open(out_path, "wb") as handle:
            handle.write(content)

    def _run(self, cmd: str, in_data: bytes | None) -> tuple[int, bytes, bytes]:
        cluster = self._cluster()
        if self.get_option("optional") and not self._found(cluster).wanted:
            return self._call(["/bin/sh", "-c", cmd], in_data)
        target = f"daemonset/{access_manifests.name_of(self._node())}"
        place = ["--namespace", self.get_option("namespace"), target, "--container", access_manifests.CONTAINER]
        waiting = f"--pod-running-timeout={_STARTING_S}s"
        stdin = [] if in_data is None else ["--stdin"]
        words = ["exec", *place, waiting, *stdin, "--", "/bin/sh", "-c", cmd]
        status, out, err = self._call([*cluster.argv, *words], in_data)
        if status == 0:
            return status, out, err
        own, marked, _code = err.rpartition(_ENDED)
        if not marked:
            raise AnsibleConnectionFailure(self._why(cluster, err.decode(errors="replace")))
        return status, out, own

    def _call(self, argv: list[str], in_data: bytes | None) -> tuple[int, bytes, bytes]:
        try:
            # Without a limit, as with ssh: what a task may take is the task's business.
            done = subprocess.run(
                argv,
                input=in_data,
                stdin=subprocess.DEVNULL if in_data is None else None,
                capture_output=True,
                check=False,
            )
        except OSError as exc:
            raise AnsibleConnectionFailure(
                f"node {self._node()}: {argv[0]} could not be started: {exc.strerror}; install it on the "
                "controller, or correct kubernetes_kubectl"
            ) from exc
        return done.returncode, done.stdout, done.stderr

    def _why(self, cluster: Kubectl, printed: str) -> str:
        """Return why a command could not be run, asking the cluster about the pod."""
        try:
            found = self._found(cluster)
        except KubectlError as exc:
            return f"node {self._node()}: {exc}"
        return f"node {self._node()}: {found.why or cluster.error(('exec',), printed)}"

    def _found(self, cluster: Kubectl) -> node_access.Found:
        return node_access.look(cluster, self._node(), self.get_option("namespace"))

    def _cluster(self) -> Kubectl:
        try:
            options = (self.get_option(name) for name in ("kubectl", "kubeconfig", "context"))
            return Kubectl(attach.prefix(*options))
        except attach.AttachError as exc:
            raise AnsibleConnectionFailure(f"node {self._node()}: {exc}") from exc

    def _node(self) -> str:
        return str(self.get_option("node") or self.get_option("inventory_name"))
