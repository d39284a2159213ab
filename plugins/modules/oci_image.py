#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: oci_image
short_description: Make small images from programs and files of the host, and put them into a registry
version_added: 0.1.0
description:
  - Makes images without any tool and without any other registry. A layer holds programs of the host with the libraries
    that they load, files, directories and links.
  - What decides an image's content is noted in its manifest as a checksum, so that an image that is there and as it is
    wanted is neither packed nor sent again. Layers that images share are sent once.
  - Times and owners are left out, so that equal content gives equal layers.
  - Programs that load libraries by name while they run need these among O(images[].layers[].files).
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: A registry that does not answer counts as one without images, as an earlier task may have predicted it.
  diff_mode:
    support: full
options:
  registry:
    description: Address of the registry, C(host:port), reached by plain HTTP.
    type: str
    required: true
  images:
    description: The images.
    type: list
    elements: dict
    required: true
    suboptions:
      repository:
        description: Name of the image, without the registry.
        type: str
        required: true
      tag:
        description: Its tag.
        type: str
        default: latest
      config:
        description: What the runtime gets, by keys of the image specification such as C(Entrypoint), C(Cmd), C(Env).
        type: dict
        default: {}
      layers:
        description: The layers, the lowest first. Later ones lie over earlier ones.
        type: list
        elements: dict
        required: true
        suboptions:
          programs:
            description: Programs by path, or by names that are looked up in PATH.
            type: list
            elements: str
            default: []
          interpreters:
            description: Pythons, as C(programs), with their standard libraries.
            type: list
            elements: str
            default: []
          files:
            description: Files.
            type: list
            elements: dict
            default: []
            suboptions:
              path:
                description: Path in the image.
                type: str
                required: true
              content:
                description: Its text.
                type: str
              source:
                description: A file or directory of the host.
                type: path
              mode:
                description: Permissions, in octal; by default the source's, or V(0644).
                type: str
          directories:
            description: Directories by path, with their permissions in octal.
            type: dict
            default: {}
          links:
            description: Symbolic links by path, with their targets.
            type: dict
            default: {}
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Put an image of the host's nginx into the registry
  colocation.testbed.oci_image:
    registry: 127.0.0.1:15000
    images:
      - repository: nginx
        tag: host
        layers:
          - programs: [nginx]
            directories: {/tmp: "1777", /var/log/nginx: "0755"}
            files:
              - path: /etc/passwd
                content: "root:x:0:0::/:/bin/sh\n"
        config:
          Entrypoint: [nginx, -g, daemon off;]
"""

RETURN = r"""
images:
  description: The images in their order, each with its C(reference) and whether it was C(pushed) now.
  returned: always
  type: list
  elements: dict
  sample: [{"reference": "127.0.0.1:15000/nginx:host", "pushed": true}]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.kubernetes import (
    oci_image,
    oci_layer,
    oci_registry,
)

FILE: dict[str, Any] = {
    "path": {"type": "str", "required": True},
    "content": {"type": "str"},
    "source": {"type": "path"},
    "mode": {"type": "str"},
}
LAYER: dict[str, Any] = {
    "programs": {"type": "list", "elements": "str", "default": []},
    "interpreters": {"type": "list", "elements": "str", "default": []},
    "files": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": FILE,
        "mutually_exclusive": [("content", "source")],
        "required_one_of": [("content", "source")],
    },
    "directories": {"type": "dict", "default": {}},
    "links": {"type": "dict", "default": {}},
}
IMAGE: dict[str, Any] = {
    "repository": {"type": "str", "required": True},
    "tag": {"type": "str", "default": "latest"},
    "config": {"type": "dict", "default": {}},
    "layers": {"type": "list", "elements": "dict", "required": True, "options": LAYER},
}


def octal(text: object, what: str) -> int:
    """Return permissions. Raises ImageError for what is not octal."""
    try:
        return int(str(text), 8)
    except ValueError as exc:
        raise oci_image.ImageError(f"{what}: mode {text!r} is not octal; write it quoted, like '0644'") from exc


def layer_of(raw: dict[str, Any]) -> oci_layer.Wanted:
    """Return one layer as asked for."""
    files = tuple(
        oci_layer.File(
            item["path"],
            item["content"],
            item["source"] or "",
            None if item["mode"] is None else octal(item["mode"], item["path"]),
        )
        for item in raw["files"]
    )
    directories = {path: octal(mode, path) for path, mode in raw["directories"].items()}
    return oci_layer.Wanted(
        tuple(raw["programs"]), files, directories, raw["links"], interpreters=tuple(raw["interpreters"])
    )


def image_of(raw: dict[str, Any]) -> oci_image.Image:
    """Return one image as asked for."""
    layers = tuple(layer_of(item) for item in raw["layers"])
    return oci_image.Image(raw["repository"], raw["tag"], layers, raw["config"])


def handle(module: AnsibleModule, image: oci_image.Image, registry: oci_registry.Registry) -> bool:
    """Put one image into the registry where it is missing; tells whether it was, or would be."""
    if module.check_mode and not registry.answers():
        return True
    layers = [oci_layer.collect(wanted) for wanted in image.layers]
    digest = oci_image.recipe(image, layers)
    if oci_image.is_there(image, digest, registry):
        return False
    if not module.check_mode:
        oci_image.push(image, layers, digest, registry)
    return True


def run(module: AnsibleModule) -> dict[str, Any]:
    """Handle all images."""
    images = [image_of(item) for item in module.params["images"]]
    oci_image.check(images)
    registry = oci_registry.Registry(module.params["registry"])
    pushed = [handle(module, image, registry) for image in images]
    results = [
        {"reference": f"{registry.address}/{image.reference}", "pushed": new} for image, new in zip(images, pushed)
    ]
    after = "".join(f"{item['reference']}\n" for item in results)
    before = "".join(f"{item['reference']}\n" for item in results if not item["pushed"])
    return {"changed": any(pushed), "images": results, "diff": {"before": before, "after": after}}


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "registry": {"type": "str", "required": True},
            "images": {"type": "list", "elements": "dict", "required": True, "options": IMAGE},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (
        commands.CommandError,
        oci_image.ImageError,
        oci_layer.LayerError,
        oci_registry.RegistryError,
    ) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"image: {exc.filename}: {exc.strerror}; check the file, and the free space in /tmp")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
