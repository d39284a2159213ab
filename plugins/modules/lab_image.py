#!/usr/bin/python
# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_image
short_description: Make the disk image that guests of the lab boot from
version_added: 0.1.0
description:
  - Makes a Debian system with systemd and ssh in a disk image, from the package sources of this machine, with
    C(mmdebstrap). Guests read from it and write into files of their own, so one image serves all of them.
  - An image is made once. Its name comes from what it is made of, and one that is there is never made again; labs and
    runs share it. An interrupted run leaves no image, and two runs never make one at the same time.
  - Images are a cache like that of a package manager. They are not in the journal, and nothing removes them but you.
  - Guests have no way out of the lab's network. What they shall have beyond the base is said with O(packages).
extends_documentation_fragment:
  - colocation.testbed.attributes
attributes:
  check_mode:
    support: full
    details: >-
      With O(driver=uml), where the package C(user-mode-linux) is not installed yet, the image will have another name
      than predicted.
  diff_mode:
    support: full
options:
  driver:
    description:
      - What is to run the guests. Images for V(uml) hold the modules of the installed kernel package.
      - Images for V(qemu) have the release's C(linux-image-cloud-amd64). Beside them lie that kernel and what it needs
        to find the disk, as C(.vmlinuz) and C(.initrd).
    type: str
    choices: [uml, qemu]
    default: uml
  suite:
    description: Release to install, such as V(bookworm). Where it is empty, the release of this machine.
    type: str
    default: ""
  packages:
    description: Packages to install beside the base.
    type: list
    elements: str
    default: []
  size_mib:
    description: Size of a guest's disk in MiB. Only what is used takes space.
    type: int
    default: 8192
  cache_dir:
    description: Where images are kept.
    type: path
    default: ~/.cache/colocation-testbed/images
author:
  - colocation.testbed contributors (@colocation-testbed)
"""

EXAMPLES = r"""
- name: Make an image with the packages of the latency service in it
  colocation.testbed.lab_image:
    packages: [nginx]
  register: image

- name: Make a guest that boots from it
  colocation.testbed.lab_guests:
    image: "{{ image.path }}"
    hosts:
      - {name: tested, address: 198.18.0.1}
"""

RETURN = r"""
path:
  description: Where the image is.
  returned: always
  type: str
  sample: /root/.cache/colocation-testbed/images/0123456789abcdef.img
key:
  description: What the image is called after; equal pins give an equal key.
  returned: always
  type: str
  sample: 0123456789abcdef
suite:
  description: Release of the image.
  returned: always
  type: str
  sample: bookworm
packages:
  description: All packages that are installed by name.
  returned: always
  type: list
  elements: str
  sample: [dbus, kmod, nginx]
"""

from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.colocation.testbed.plugins.module_utils import apt_sources, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.lab import drivers, image, image_build


def installed_version(package: str) -> str:
    """Return the version of an installed package, empty where there is none."""
    done = commands.run(["dpkg-query", "-W", "-f", "${db:Status-Status} ${Version}", package], check=False)
    status, _blank, version = done.stdout.partition(" ")
    return version if done.status == 0 and status == "installed" else ""


def own_suite() -> str:
    """Return this machine's release."""
    return apt_sources.parse_codename(files.read_text_or_none("/etc/os-release") or "")


def run(module: AnsibleModule) -> dict[str, Any]:
    """Look whether the image is there, make it where it isn't."""
    params = module.params
    driver = drivers.DRIVERS[params["driver"]]
    recipe = image.Recipe(
        suite=params["suite"] or own_suite(),
        packages=tuple(sorted(set(params["packages"]))),
        driver=driver.name,
        kernel_version="" if driver.kernel_package else installed_version(driver.package),
        size_mib=params["size_mib"],
    )
    image.check(recipe)
    if not (driver.kernel_package or recipe.kernel_version or module.check_mode):
        raise image.ImageError(f"package {driver.package}: is not installed; install it, or set lab_install to true")
    store = image_build.Store(params["cache_dir"])
    changed = not store.has(recipe)
    if changed and not module.check_mode:
        changed = image_build.make(recipe, store)
    after = f"{recipe.suite}: {' '.join(recipe.included)}\n"
    return {
        "changed": changed,
        "path": store.path(recipe),
        "key": recipe.key,
        "suite": recipe.suite,
        "packages": list(recipe.included),
        "diff": {"before": "" if changed else after, "after": after, "before_header": "image", "after_header": "image"},
    }


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "driver": {"type": "str", "choices": sorted(drivers.DRIVERS, reverse=True), "default": drivers.UML.name},
            "suite": {"type": "str", "default": ""},
            "packages": {"type": "list", "elements": "str", "default": []},
            "size_mib": {"type": "int", "default": 8192},
            "cache_dir": {"type": "path", "default": "~/.cache/colocation-testbed/images"},
        },
        supports_check_mode=True,
    )
    try:
        result = run(module)
    except (commands.CommandError, files.FilesError, image.ImageError) as exc:
        module.fail_json(msg=str(exc))
    except OSError as exc:
        module.fail_json(msg=f"lab image: {exc.filename}: {exc.strerror}; check its mode and the free space")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
