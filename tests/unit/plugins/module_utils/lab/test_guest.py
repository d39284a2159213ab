"""What a guest is told, and when it counts as another one."""

from __future__ import annotations

import dataclasses
import io
import subprocess
import sys
import tarfile

import pytest

from ansible_collections.colocation.testbed.plugins.module_utils.lab import command_line, guest, ssh
from ansible_collections.colocation.testbed.plugins.module_utils.lab.guest import Guest, Keys, Machine, Paths

MACHINE = Machine("uml", "/usr/bin/linux.uml", "/cache/0123.img", 512, 2, "colocation-switch", 24, 1500)
EMULATED = dataclasses.replace(MACHINE, driver="qemu", program="/usr/bin/qemu-system-x86_64")
TESTED = Guest("tested", "198.18.0.1", "ct1", "0")
PATHS = Paths.of("/var/lib/colocation-testbed", "tested")
KEYS = Keys("ssh-ed25519 AAAA lab\n", "PRIVATE\n", "ssh-ed25519 BBBB host\n")


def test_the_command_line_of_a_guest():
    words = command_line.argv(TESTED, MACHINE, PATHS)
    assert words[:4] == ("nsenter", "--net=/run/netns/colocation-switch", PATHS.launcher, "mem=512M")
    assert f"ubd0={PATHS.disk},/cache/0123.img" in words
    assert "vec0:transport=tap,ifname=ct1,mac=02:00:c6:12:00:01,depth=128,gro=1,mtu=1500" in words


def test_the_command_line_of_a_guest_on_emulated_cpus():
    words = command_line.argv(TESTED, EMULATED, PATHS)
    assert words[:3] == ("nsenter", "--net=/run/netns/colocation-switch", PATHS.launcher)
    assert {name: words[words.index(name) + 1] for name in ("-accel", "-smp", "-m", "-kernel", "-initrd")} == {
        "-accel": "tcg,thread=multi,tb-size=128",
        "-smp": "2",
        "-m": "512M",
        "-kernel": "/cache/0123.img.vmlinuz",
        "-initrd": "/cache/0123.img.initrd",
    }
    assert f"if=virtio,format=qcow2,file={PATHS.disk}" in words
    assert f"if=virtio,format=raw,readonly=on,file={PATHS.seed}" in words
    assert "tap,id=lab,ifname=ct1,script=no,downscript=no" in words
    assert "virtio-net-pci,netdev=lab,mac=02:00:c6:12:00:01,host_mtu=1500,romfile=" in words
    assert "kvm" not in " ".join(words)


def test_only_an_emulated_guest_needs_its_disk_made():
    assert command_line.disk(MACHINE, PATHS) == ()
    words = command_line.disk(EMULATED, PATHS)
    assert words[0] == "qemu-img"
    assert words[-2:] == ("/cache/0123.img", PATHS.disk)


def test_the_second_disk_says_who_the_guest_is():
    with tarfile.open(fileobj=io.BytesIO(guest.seed(TESTED, MACHINE, KEYS))) as archive:
        entries = {entry.name: entry for entry in archive.getmembers()}
        content = {name: archive.extractfile(name).read().decode() for name in entries if entries[name].isfile()}
    assert entries["root/.ssh"].isdir()
    assert entries["root/.ssh"].mode == 0o700
    assert entries["etc/ssh/ssh_host_ed25519_key"].mode == 0o600
    assert content["etc/hostname"] == "tested\n"
    assert "Address=198.18.0.1/24\n" in content["etc/systemd/network/10-lab.network"]
    assert content["root/.ssh/authorized_keys"] == KEYS.authorized


def test_the_same_guest_gives_the_same_bytes_whole_sectors_of_them():
    first, second = (guest.seed(TESTED, MACHINE, KEYS) for _turn in range(2))
    assert first == second
    assert len(first) % 512 == 0


@pytest.mark.parametrize(
    ("machine", "who", "keys"),
    [
        ({"memory_mib": 256}, {}, KEYS),
        ({"image": "/cache/4567.img"}, {}, KEYS),
        ({"program": "/opt/linux"}, {}, KEYS),
        ({"driver": "qemu"}, {}, KEYS),
        ({"driver": "qemu", "cpu_count": 4}, {}, KEYS),
        ({"mtu_bytes": 9000}, {}, KEYS),
        ({}, {"address": "198.18.0.9"}, KEYS),
        ({}, {"cpus": "1"}, KEYS),
        ({}, {}, dataclasses.replace(KEYS, host_private="OTHER\n")),
    ],
)
def test_any_other_option_makes_it_another_guest(machine, who, keys):
    changed, other = dataclasses.replace(MACHINE, **machine), dataclasses.replace(TESTED, **who)
    base = EMULATED if machine.get("cpu_count") else MACHINE
    before = command_line.digest(TESTED, base, PATHS, guest.seed(TESTED, base, KEYS))
    assert command_line.digest(other, changed, PATHS, guest.seed(other, changed, keys)) != before


@pytest.mark.parametrize(
    ("machine", "state_dir", "message"),
    [
        ({}, "/var/lib/a,b", "lab_state_dir '/var/lib/a,b': must be an absolute path of letters"),
        ({"image": "/cache/my image.img"}, "/var/lib/x", "lab_image_cache_dir '/cache/my image.img'"),
        ({"cpu_count": 0}, "/var/lib/x", "lab_cpu_count 0: must be from 1 to 64"),
        ({"memory_mib": 16}, "/var/lib/x", "lab_memory_mib 16: must be from 128 to 65536"),
    ],
)
def test_what_the_kernels_command_line_cannot_say_is_refused(machine, state_dir, message):
    with pytest.raises(guest.GuestError, match=message):
        guest.check(dataclasses.replace(MACHINE, **machine), state_dir)


def test_the_launcher_closes_what_was_open_and_keeps_its_name(tmp_path):
    kernel = tmp_path / "kernel-program"
    kernel.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(sys.argv[1:], sorted(map(int, os.listdir('/proc/self/fd'))))\n"
    )
    kernel.chmod(0o755)
    launcher = tmp_path / "kernel"
    launcher.write_text(command_line.launcher(dataclasses.replace(MACHINE, program=str(kernel)), sys.executable))
    launcher.chmod(0o700)
    with (tmp_path / "tap").open("w") as left_open:
        done = subprocess.run(
            [launcher, "mem=512M"],
            pass_fds=[left_open.fileno()],
            capture_output=True,
            text=True,
            check=True,
            timeout=30,
        )
    shown = done.stdout.replace("'", "")
    assert shown.startswith("[mem=512M] [0, 1, 2, ")
    assert len(shown.split("] [")[1].split(",")) <= 4, "only standard files and the listing's own"


def test_the_way_in_checks_keys_and_leaves_no_process_in_the_namespace():
    text = ssh.config(ssh.Access.of("/var/lib/colocation-testbed"), [TESTED], "colocation-switch")
    assert "Host tested 198.18.0.1\n  HostName 198.18.0.1\n  HostKeyAlias tested\n" in text
    assert (
        "  ProxyCommand nsenter --net=/run/netns/colocation-switch nc.openbsd -F %h %p\n  ProxyUseFdpass yes\n" in text
    )
    assert "  StrictHostKeyChecking yes\n" in text
