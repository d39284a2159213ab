# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations


class ModuleDocFragment:
    """How a module reaches the cluster."""

    DOCUMENTATION = r"""
options:
  kubectl:
    description:
      - The program and its first arguments, by which the cluster is reached from the host that the module runs on,
        such as V(kubectl), V(--kubeconfig), V(/etc/kubernetes/admin.conf), V(--context), V(lab).
      - What comes before kubectl may enter the namespaces in which a cluster lives.
    type: list
    elements: str
    default: [kubectl]
"""
