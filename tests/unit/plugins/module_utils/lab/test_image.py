"""What is in an image, what it is called, and that an unfinished one never gets a name."""

from __future__ import annotations

import dataclasses
import json
import os
from pathlib import Path

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils import commands
from ansible_collections.colocation.testbed.plugins.module_utils.lab import image, image_build, image_kernel
from ansible_collections.colocation.testbed.plugins.module_utils.lab.image import ImageError, Recipe

RECIPE = Recipe("bookworm", ("nginx",), "uml", "6.1um4+b13", 2048)
EMULATED = dataclasses.replace(RECIPE, driver="qemu", kernel_version="")
KERNEL_MODULES = tuple(f"usr/lib/modules/6.1.0-57-cloud-amd64/{name}.ko" for name in ("virtio", "virtio_blk"))


class Programs:
    """Stands in for the programs that make an image: each leaves what the real one would, `broken` one fails."""

    def __init__(self, broken: str = "") -> None:
        self.seen: list[str] = []
        self.broken = broken

    def __call__(self, argv, **_options) -> commands.Result:
        words = list(argv)
        name = "mmdebstrap" if "mmdebstrap" in words else words[0]
        self.seen.append(name)
        if name == self.broken:
            raise commands.CommandError(f"{' '.join(words)}: ended with status 25: E: no such package")
        if name == "mmdebstrap":
            root = Path(words[-2])
            for folder in ("etc/ssh", "etc/systemd/system/multi-user.target.wants", "usr/lib/modules"):
                (root / folder).mkdir(parents=True)
            (root / "etc/ssh/ssh_host_rsa_key").write_text("secret")
            if any("linux-image-cloud-amd64" in word for word in words):
                for path in ("boot/vmlinuz-6.1.0-57-cloud-amd64", "bin/busybox", *KERNEL_MODULES):
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(path)
            for unit in ("ssh.service", "nginx.service"):
                (root / "etc/systemd/system/multi-user.target.wants" / unit).symlink_to(f"/lib/systemd/system/{unit}")
        if name == "mkfs.ext4":
            root = Path(words[words.index("-d") + 1])
            paths = {
                str(path.relative_to(root)): os.readlink(path) if path.is_symlink() else "" for path in root.rglob("*")
            }
            Path(words[-2]).write_text(json.dumps(paths))
        shown = "".join(f"insmod /{path} \n" for path in KERNEL_MODULES) if "--show-depends" in words else ""
        return commands.Result(tuple(words), 0, shown, "")


@pytest.fixture
def modules_root(tmp_path: Path) -> str:
    (tmp_path / "modules/6.1.176").mkdir(parents=True)
    (tmp_path / "modules/6.1.176/modules.order").write_text("")
    return str(tmp_path / "modules")


def make(tmp_path: Path, modules_root: str, programs: Programs, recipe: Recipe = RECIPE) -> dict[str, str]:
    store = image_build.Store(str(tmp_path / "cache"))
    assert image_build.make(recipe, store, programs, modules_root)
    return json.loads(Path(store.path(recipe)).read_text())


def test_equal_pins_give_equal_keys_and_others_do_not():
    same = dataclasses.replace(RECIPE, packages=("nginx", "dbus"))
    assert same.key == RECIPE.key, "dbus is in the base"
    changed = [
        {"suite": "trixie"},
        {"packages": ()},
        {"kernel_version": "6.12um"},
        {"size_mib": 4096},
        {"driver": "qemu"},
    ]
    assert len({RECIPE.key, *(dataclasses.replace(RECIPE, **change).key for change in changed)}) == 6


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"suite": "../etc"}, "lab_image_suite '../etc': is no release's name"),
        ({"packages": ("--purge",)}, "lab_image_packages: packages: '--purge' is not a package name"),
        ({"size_mib": 10}, "lab_image_size_mib 10: must be from 1024 to 65536"),
    ],
)
def test_bad_pins_are_refused(change, message):
    with pytest.raises(ImageError, match=message):
        image.check(dataclasses.replace(RECIPE, **change))


def test_only_ways_to_the_archives_are_taken_from_the_machines_apt():
    proxy = 'Acquire::http::Proxy "http://proxy.example:3142";'
    dump = f'Acquire "";\nAcquire::http "";\n{proxy}\nAcquire::Check-Date "false";\nDir "/";\n'
    assert image.parse_acquire(dump) == (proxy, 'Acquire::Check-Date "false";')


def test_an_image_is_made_once(tmp_path, modules_root):
    programs = Programs()
    make(tmp_path, modules_root, programs)
    assert programs.seen == ["apt-config", "mmdebstrap", "chroot", "mkfs.ext4"]
    assert image_build.make(RECIPE, image_build.Store(str(tmp_path / "cache")), programs, modules_root) is False
    assert programs.seen[4:] == []


def test_what_is_in_it(tmp_path, modules_root):
    paths = make(tmp_path, modules_root, Programs())
    units = "etc/systemd/system"
    assert paths[f"{units}/e2scrub_all.timer"] == "/dev/null"
    assert paths[f"{units}/sysinit.target.wants/{image.SEED_UNIT}"] == f"/etc/systemd/system/{image.SEED_UNIT}"
    assert f"{units}/multi-user.target.wants/ssh.service" in paths
    assert f"{units}/multi-user.target.wants/nginx.service" not in paths, "workloads don't start by themselves"
    assert "etc/ssh/ssh_host_rsa_key" not in paths, "guests must not share a key"
    assert "usr/lib/modules/6.1.176/modules.order" in paths


def unpacked(archive: bytes) -> dict[str, bytes]:
    """Read an archive as the kernel's init/initramfs.c does."""
    entries, place = {}, 0
    while True:
        assert archive[place : place + 6] == b"070701"
        fields = [int(archive[place + 6 + 8 * number :][:8], 16) for number in range(13)]
        name_at = place + 110
        name = archive[name_at : name_at + fields[11] - 1].decode()
        if name == "TRAILER!!!":
            return entries
        content_at = (name_at + fields[11] + 3) // 4 * 4
        entries[name] = archive[content_at : content_at + fields[6]]
        place = (content_at + fields[6] + 3) // 4 * 4


def test_the_image_of_an_emulated_guest_has_its_kernel_beside_it(tmp_path, modules_root):
    make(tmp_path, modules_root, Programs(), EMULATED)
    path = image_build.Store(str(tmp_path / "cache")).path(EMULATED)
    assert Path(f"{path}.vmlinuz").read_text() == "boot/vmlinuz-6.1.0-57-cloud-amd64"
    facts = json.loads(Path(f"{path}.json").read_text())
    assert facts["kernel_release"] == "6.1.0-57-cloud-amd64"
    assert {"busybox-static", "linux-image-cloud-amd64"} <= set(facts["included"])
    entries = unpacked(Path(f"{path}.initrd").read_bytes())
    assert entries["modules"] == b"m0.ko\nm1.ko\n"
    assert [entries[name].decode() for name in ("m0.ko", "m1.ko")] == list(KERNEL_MODULES)
    assert entries["bin/busybox"] == b"bin/busybox"
    assert list(entries)[:3] == ["bin", "dev", "root"], "directories come before what is in them"


def test_a_second_kernel_in_the_image_is_refused(tmp_path):
    for release in ("6.1.0-57-cloud-amd64", "6.1.0-57-amd64"):
        (tmp_path / image_kernel.MODULES / release).mkdir(parents=True)
    with pytest.raises(ImageError, match="holds 2 kernels instead of one; lab_image_packages must not name a kernel"):
        image_kernel.take_out(str(tmp_path), str(tmp_path), Programs())


def test_modules_are_loaded_once_and_in_order():
    first, second = "insmod /lib/modules/6/virtio.ko \n", "insmod /lib/modules/6/a.ko x=1\n"
    shown = f"{first}builtin ext4\n{second}{first}"
    assert image_kernel.parse_dependencies(shown) == ("lib/modules/6/virtio.ko", "lib/modules/6/a.ko")


@pytest.mark.parametrize("broken", ["mmdebstrap", "chroot", "mkfs.ext4"])
def test_a_failure_leaves_no_image_and_no_rubbish(tmp_path, modules_root, broken):
    store = image_build.Store(str(tmp_path / "cache"))
    with pytest.raises((ImageError, commands.CommandError), match="no such package"):
        image_build.make(RECIPE, store, Programs(broken), modules_root)
    assert os.listdir(store.directory) == ["lock"]


def test_what_a_killed_run_left_is_removed(tmp_path, modules_root):
    left = tmp_path / "cache/.build-killed/root/etc"
    left.mkdir(parents=True)
    make(tmp_path, modules_root, Programs())
    assert not left.exists()


def test_two_runs_never_make_one_at_the_same_time(tmp_path, modules_root):
    store = image_build.Store(str(tmp_path / "cache"))
    with store.locked(), pytest.raises(ImageError, match="another run has been making an image for 0 s"):
        image_build.make(RECIPE, dataclasses.replace(store, lock_timeout_s=0), Programs(), modules_root)


def test_without_the_kernels_modules_it_says_what_to_install(tmp_path):
    with pytest.raises(ImageError, match="holds 0 kernels instead of one; install package user-mode-linux again"):
        image_build.make(RECIPE, image_build.Store(str(tmp_path / "cache")), Programs(), str(tmp_path / "none"))
