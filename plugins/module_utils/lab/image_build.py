# Copyright (c) 2026, colocation.testbed contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the image of a recipe once, in a cache directory that several labs and runs share."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Callable

from ansible_collections.colocation.testbed.plugins.module_utils import apt_sources, cache_directory, commands, files
from ansible_collections.colocation.testbed.plugins.module_utils.kernel import mounts, procfs
from ansible_collections.colocation.testbed.plugins.module_utils.lab import drivers, image, image_kernel
from ansible_collections.colocation.testbed.plugins.module_utils.lab.image import ImageError, Recipe

_BUILD_PREFIX = ".build-"
_BUILD_TIMEOUT_S = 1800.0
_MKFS_TIMEOUT_S = 600.0
_MIN_FREE_BYTES = 3 * 1024**3
_SETTING = "lab_image_cache_dir"

Run = Callable[..., commands.Result]


@dataclass(frozen=True)
class Store:
    """The cache directory, and how long to wait for another run that makes an image there."""

    directory: str
    lock_timeout_s: float = _BUILD_TIMEOUT_S

    def path(self, recipe: Recipe) -> str:
        """Return where the image of a recipe is, or will be."""
        return os.path.join(self.directory, f"{recipe.key}.img")

    def has(self, recipe: Recipe) -> bool:
        """Tell whether it is there. An image gets its name when it is whole."""
        return os.path.isfile(self.path(recipe))

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep others from making images here at the same time. Raises ImageError after ``lock_timeout_s``."""
        try:
            with cache_directory.locked(self.directory, "an image", _SETTING, self.lock_timeout_s):
                yield
        except cache_directory.CacheError as exc:
            raise ImageError(str(exc)) from exc


def make(
    recipe: Recipe, store: Store, run: Run = commands.run, modules_root: str = image_kernel.UML_MODULES_ROOT
) -> bool:
    """Make the image where it is missing; tells whether it was made now. Raises ImageError, CommandError, FilesError.

    What a killed run left unfinished is removed first.
    """
    if store.has(recipe):
        return False
    with store.locked():
        if store.has(recipe):
            return False
        _remove_unfinished(store)
        _require_space(store)
        folder = tempfile.mkdtemp(prefix=_BUILD_PREFIX, dir=store.directory)
        try:
            root = os.path.join(folder, "root")
            _bootstrap(recipe, folder, root, run)
            fill(root, recipe)
            if drivers.DRIVERS[recipe.driver].kernel_package:
                release = image_kernel.take_out(root, folder, run)
            else:
                release = image_kernel.install_modules(root, modules_root, run)
            size = f"{recipe.size_mib}M"
            disk = os.path.join(folder, "img")
            run(["mkfs.ext4", "-q", "-F", "-L", "lab", "-d", root, disk, size], timeout_s=_MKFS_TIMEOUT_S)
            facts = {**asdict(recipe), "included": recipe.included, "kernel_release": release}
            _publish(folder, store.path(recipe), facts)
        finally:
            _remove(folder)
    return True


def _publish(folder: str, path: str, facts: Mapping[str, object]) -> None:
    """Give the files their names in the cache; the disk comes last, as it tells that all are there."""
    files.write_json(image.beside(path, "json"), facts)
    for name in image.KERNEL_FILES:
        if os.path.exists(os.path.join(folder, name)):
            os.replace(os.path.join(folder, name), image.beside(path, name))
    os.replace(os.path.join(folder, "img"), path)
    files.sync_directory(os.path.dirname(path))


def _bootstrap(recipe: Recipe, folder: str, root: str, run: Run) -> None:
    try:
        archives = apt_sources.read()
    except apt_sources.AptSourcesError as exc:
        raise ImageError(f"{exc}; the image is made from this machine's own package sources, add one") from exc
    sources = os.path.join(folder, "lab.sources")
    files.write_atomic(sources, "\n".join(archive.render("deb") for archive in archives))
    acquire = image.parse_acquire(run(["apt-config", "dump"]).stdout)
    try:
        run(image.debootstrap_argv(recipe, root, sources, acquire), timeout_s=_BUILD_TIMEOUT_S)
    except commands.CommandError as exc:
        raise ImageError(
            f"lab image: {str(exc).rpartition('lab.sources: ')[2]}; do the sources in /etc/apt have release "
            f"{recipe.suite} and the packages {', '.join(recipe.packages) or 'of the base'}?"
        ) from exc


def fill(root: str, recipe: Recipe) -> None:
    """Put our own files into the image's root, mask and enable units, and drop the package's host keys."""
    for path, text in image.contents().items():
        place = root + path
        os.makedirs(os.path.dirname(place), exist_ok=True)
        files.write_atomic(place, text)
    units = os.path.join(root, "etc/systemd/system")
    _enable_no_workload(units)
    links = [(name, "/dev/null") for name in image.MASKED] + list(image.ENABLED)
    for name, target in links:
        place = os.path.join(units, name)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        if os.path.lexists(place):
            os.unlink(place)
        os.symlink(target, place)
    keys = os.path.join(root, "etc/ssh")
    for name in sorted(os.listdir(keys)):
        if name.startswith("ssh_host_"):
            os.unlink(os.path.join(keys, name))


def _enable_no_workload(units: str) -> None:
    for folder in sorted(os.listdir(units)):
        place = os.path.join(units, folder)
        for name in os.listdir(place) if folder.endswith((".wants", ".requires")) else ():
            if name not in image.STARTING and not name.startswith(image.STARTING_PREFIX):
                os.unlink(os.path.join(place, name))


def _require_space(store: Store) -> None:
    try:
        cache_directory.require_space(store.directory, "an image", _SETTING, _MIN_FREE_BYTES)
    except cache_directory.CacheError as exc:
        raise ImageError(str(exc)) from exc


def _remove_unfinished(store: Store) -> None:
    for name in os.listdir(store.directory):
        if name.startswith(_BUILD_PREFIX):
            _remove(os.path.join(store.directory, name))


def _remove(folder: str, proc_root: str = procfs.PROC_ROOT) -> None:
    """Remove a build directory, unless something is mounted in it: that would be the machine's own devices."""
    try:
        inside = [item.point for item in mounts.read(proc_root) if item.point.startswith(f"{folder}/")]
    except mounts.MountsError as exc:
        raise ImageError(str(exc)) from exc
    if inside:
        raise ImageError(f"{inside[0]}: is still mounted; unmount it, then remove {folder}")
    shutil.rmtree(folder)
