# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image of layers: what decides its content, its manifest, and its way into a registry (OCI image format 1.1)."""

from __future__ import annotations

import hashlib
import json
import platform
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import oci_layer, oci_registry

RECIPE = "colocation.testbed.recipe"
_ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
_REPOSITORY = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)*\Z")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}\Z")


class ImageError(Exception):
    """An image is not described as it must be; the text names it and the key."""


@dataclass(frozen=True)
class Image:
    """An image that is asked for. `config` is what the runtime gets: Entrypoint, Cmd, Env, WorkingDir, Labels, User."""

    repository: str
    tag: str
    layers: tuple[oci_layer.Wanted, ...]
    config: Mapping[str, Any] = field(default_factory=dict)

    @property
    def reference(self) -> str:
        """Return repository and tag."""
        return f"{self.repository}:{self.tag}"


def check(images: Sequence[Image]) -> None:
    """Raise ImageError for a name that is none, or one that is twice there."""
    for image in images:
        if not _REPOSITORY.match(image.repository) or not _TAG.match(image.tag):
            raise ImageError(f"image {image.reference}: is no name such as library/nginx:1.22; correct it")
        if not image.layers:
            raise ImageError(f"image {image.reference}: has no layers; give one")
    names = [image.reference for image in images]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ImageError(f"image {twice[0]}: is there twice; leave one out")


def architecture(machine: str = "") -> str:
    """Return the processor's kind as images name it."""
    found = machine or platform.machine()
    return _ARCHITECTURES.get(found, found)


def recipe(image: Image, layers: Sequence[oci_layer.Layer]) -> str:
    """Return the SHA-256 of all that decides an image's content; it is noted in the manifest."""
    content = [architecture(), dict(image.config), [oci_layer.recipe(layer) for layer in layers]]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def is_there(image: Image, digest: str, registry: oci_registry.Registry) -> bool:
    """Tell whether the registry has the image as it is wanted. Raises RegistryError."""
    found = registry.manifest(image.repository, image.tag)
    return found is not None and (found.get("annotations") or {}).get(RECIPE) == digest


def push(image: Image, layers: Sequence[oci_layer.Layer], digest: str, registry: oci_registry.Registry) -> None:
    """Pack the layers and send what the registry lacks, the manifest last. Raises RegistryError, OSError."""
    blobs = [_push_layer(image.repository, layer, registry) for layer in layers]
    config = _dump(
        {
            "architecture": architecture(),
            "os": "linux",
            "config": dict(image.config),
            "rootfs": {"type": "layers", "diff_ids": [blob.content_digest for blob in blobs]},
            "history": [],
        }
    )
    config_digest = f"sha256:{hashlib.sha256(config).hexdigest()}"
    if not registry.has_blob(image.repository, config_digest):
        registry.put_blob(image.repository, config_digest, config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": oci_registry.MANIFEST,
        "config": {"mediaType": oci_registry.CONFIG, "digest": config_digest, "size": len(config)},
        "layers": [{"mediaType": oci_registry.LAYER, "digest": blob.digest, "size": blob.size_bytes} for blob in blobs],
        "annotations": {RECIPE: digest},
    }
    registry.put_manifest(image.repository, image.tag, _dump(manifest))


def _push_layer(repository: str, layer: oci_layer.Layer, registry: oci_registry.Registry) -> oci_layer.Blob:
    with tempfile.TemporaryFile() as packed:
        blob = oci_layer.pack(layer, packed)
        packed.seek(0)
        if not registry.has_blob(repository, blob.digest):
            registry.put_blob(repository, blob.digest, packed)
    return blob


def _dump(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
