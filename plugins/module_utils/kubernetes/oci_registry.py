# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Talk to a registry of images (OCI distribution specification 1.1): what is there, and how an image is put there."""

from __future__ import annotations

import http.client
import json
import os
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
_BYTES = "application/octet-stream"
_TIMEOUT_S = 120.0


class RegistryError(Exception):
    """The registry does not answer, or not as the specification says; the text says what was asked."""


@dataclass(frozen=True)
class Registry:
    """A registry by `host:port`, over plain HTTP: one of our own on this machine or in the lab."""

    address: str

    def _ask(
        self, method: str, path: str, body: bytes | BinaryIO | None = None, headers: Mapping[str, str] | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = http.client.HTTPConnection(self.address, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            content = answer.read()
            return answer.status, {name.lower(): value for name, value in answer.getheaders()}, content
        except (OSError, http.client.HTTPException) as exc:
            raise RegistryError(
                f"registry {self.address}: does not answer {method} {path} ({exc}); is it running, at this address?"
            ) from exc
        finally:
            connection.close()

    def answers(self) -> bool:
        """Tell whether a registry is there."""
        try:
            return self._ask("GET", "/v2/")[0] == 200
        except RegistryError:
            return False

    def manifest(self, repository: str, tag: str) -> dict[str, Any] | None:
        """Return the manifest of an image, None where there is none. Raises RegistryError."""
        status, _headers, content = self._ask("GET", f"/v2/{repository}/manifests/{tag}", headers={"Accept": MANIFEST})
        if status == 404:
            return None
        self._require(status, (200,), f"manifest of {repository}:{tag}", content)
        try:
            return dict(json.loads(content))
        except ValueError as exc:
            raise RegistryError(f"registry {self.address}: manifest of {repository}:{tag} is not JSON") from exc

    def has_blob(self, repository: str, digest: str) -> bool:
        """Tell whether the registry has a layer or configuration. Raises RegistryError."""
        return self._ask("HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200

    def put_blob(self, repository: str, digest: str, content: bytes | BinaryIO) -> None:
        """Send a layer or configuration. Raises RegistryError."""
        status, headers, text = self._ask("POST", f"/v2/{repository}/blobs/uploads/", headers={"Content-Length": "0"})
        self._require(status, (202,), f"upload to {repository}", text)
        place = urllib.parse.urlsplit(headers.get("location", ""))
        query = "&".join(part for part in (place.query, f"digest={digest}") if part)
        size = len(content) if isinstance(content, bytes) else os.fstat(content.fileno()).st_size
        sent = {"Content-Type": _BYTES, "Content-Length": str(size)}
        status, _headers, text = self._ask("PUT", f"{place.path}?{query}", content, sent)
        self._require(status, (201,), f"blob {digest} of {repository}", text)

    def put_manifest(self, repository: str, tag: str, manifest: bytes) -> None:
        """Send an image's manifest, after all that it names. Raises RegistryError."""
        status, _headers, text = self._ask(
            "PUT", f"/v2/{repository}/manifests/{tag}", manifest, {"Content-Type": MANIFEST}
        )
        self._require(status, (201,), f"manifest of {repository}:{tag}", text)

    def _require(self, status: int, expected: tuple[int, ...], what: str, content: bytes) -> None:
        if status not in expected:
            text = content.decode("utf-8", "replace").strip()[:200]
            raise RegistryError(
                f"registry {self.address}: answered {status} about the {what}: {text}; look at the registry's log"
            )
