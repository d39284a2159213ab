# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a cluster's nodes are read from on the controller: kubectl, or the Python client where there is no kubectl."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes.kubectl import Kubectl, KubectlError
from ansible_collections.colocation.testbed.plugins.plugin_utils.kubernetes.node_inventory import NodeInventoryError

_CONFIGZ = "/api/v1/nodes/{}/proxy/configz"


@dataclass(frozen=True)
class Source:
    """Two questions to a cluster: its nodes, and what a node's kubelet is configured to."""

    nodes: Callable[[], list[dict[str, Any]]]
    kubelet: Callable[[str], dict[str, Any]]


def _configuration(text: str) -> dict[str, Any]:
    try:
        return dict(json.loads(text)["kubeletconfig"])
    except (ValueError, KeyError, TypeError) as exc:
        raise NodeInventoryError(f"kubelet's configuration is not readable: {exc}; leave it out") from exc


def by_kubectl(
    kubectl: Sequence[str],
    kubeconfig: str,
    context: str,
    timeout_s: float,
    run: Callable[..., commands.Result] = commands.run,
) -> Source:
    """Return a source that asks kubectl. Its questions raise KubectlError.

    ``kubeconfig`` may be several files; kubectl's option takes one only, its variable takes them all.
    """
    place = ["--context", context] if context else []
    environment = {"KUBECONFIG": kubeconfig} if kubeconfig else {}

    def in_time(argv: Sequence[str], **more: Any) -> commands.Result:
        return run(argv, **{**more, "timeout_s": timeout_s, "environment": environment})

    cluster = Kubectl((*kubectl, *place), in_time)
    return Source(
        lambda: cluster.items("nodes"),
        lambda name: _configuration(cluster.raw(_CONFIGZ.format(name))),
    )


def by_python(kubeconfig: str, context: str, timeout_s: float) -> Source:
    """Return a source that asks through the package ``kubernetes``. Raises NodeInventoryError where it isn't there."""
    try:
        client, config = importlib.import_module("kubernetes.client"), importlib.import_module("kubernetes.config")
    except ImportError as exc:
        raise NodeInventoryError(
            "neither kubectl nor the Python package kubernetes is on the controller; install one of them"
        ) from exc
    try:
        api = config.new_client_from_config(config_file=kubeconfig or None, context=context or None)
    except Exception as exc:
        raise NodeInventoryError(f"kubeconfig {kubeconfig or 'of the environment'}: {exc}; look at it") from exc

    def get(path: str) -> str:
        try:
            answer = api.call_api(
                path,
                "GET",
                auth_settings=["BearerToken"],
                _preload_content=False,
                _request_timeout=timeout_s,
                _return_http_data_only=True,
            )
        except client.ApiException as exc:
            raise KubectlError(f"GET {path}: {exc.status} {exc.reason}; grant the right, or renew credentials") from exc
        except Exception as exc:
            raise KubectlError(f"GET {path}: {exc}; look whether the API server answers") from exc
        return str(answer.data.decode())

    return Source(
        lambda: list(json.loads(get("/api/v1/nodes"))["items"]),
        lambda name: _configuration(get(_CONFIGZ.format(name))),
    )
