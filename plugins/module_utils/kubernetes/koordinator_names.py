# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names that Koordinator's programs expect in a cluster, whichever way they were installed."""

from __future__ import annotations

NAMESPACE = "koordinator-system"
CONFIG_MAP = "slo-controller-config"
MUTATING = "koordinator-mutating-webhook-configuration"
VALIDATING = "koordinator-validating-webhook-configuration"
WEBHOOK_SERVICE = "koordinator-webhook-service"
WEBHOOK_SECRET = "koordinator-webhook-certs"  # noqa: S105 - the name of an object
MANAGER, AGENT, SCHEDULER, DESCHEDULER = "koord-manager", "koordlet", "koord-scheduler", "koord-descheduler"
PRIORITY_CLASSES = ("koord-prod", "koord-mid", "koord-batch", "koord-free")
DOMAIN = "koordinator.sh"
PART = "koordinator"
QOS_LABEL = "koordinator.sh/qosClass"
EXTENDED_SPEC = "node.koordinator.sh/extended-resource-spec"
DUMMY_CA = "Cg=="
"""What stands for a certificate until the manager has made its own."""
CRD_GROUPS = (
    "analysis.koordinator.sh",
    "config.koordinator.sh",
    "quota.koordinator.sh",
    "scheduling.koordinator.sh",
    "slo.koordinator.sh",
)
# Groups of others that Koordinator brings definitions of.
SHARED_CRDS = (
    "elasticquotas.scheduling.sigs.k8s.io",
    "podgroups.scheduling.sigs.k8s.io",
    "noderesourcetopologies.topology.node.k8s.io",
)
CONFIG_FAILURES = ("SLOCfgUnmarshalFailed", "ColocationCfgUnmarshalFailed")
# Kinds, namespaces and names by which a platform's own Koordinator shows (ACK installs it as an add-on).
PLATFORM_NAMES = ("ack-koordlet", "ack-koord-manager", "ack-slo-manager", "ack-slo-agent", "ack-koordinator")
