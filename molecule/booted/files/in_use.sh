#!/bin/sh
# Makes the guest a host that is in use: units of somebody else, swap, and GRUB, though no guest boots by it.
set -eu

unit() {
    cat > "/etc/systemd/system/$1"
}

# As kubelet makes them: with a weight, for which systemd passes the controller on to them.
unit besteffort.slice <<'END'
[Slice]
CPUWeight=1
END
unit besteffort-pod1.slice <<'END'
[Slice]
CPUWeight=10
IOAccounting=yes
END
unit guaranteed.slice <<'END'
[Slice]
CPUWeight=200
END
unit molecule-besteffort.service <<'END'
[Service]
Slice=besteffort-pod1.slice
CPUWeight=10
ExecStart=sleep infinity
[Install]
WantedBy=multi-user.target
END
unit molecule-guaranteed.service <<'END'
[Service]
Slice=guaranteed.slice
ExecStart=sleep infinity
[Install]
WantedBy=multi-user.target
END
unit molecule-moved.service <<'END'
[Service]
ExecStart=tail -f /dev/null
[Install]
WantedBy=multi-user.target
END
unit swap.swap <<'END'
[Swap]
What=/swap
[Install]
WantedBy=swap.target
END

(umask 077 && dd if=/dev/zero of=/swap bs=1M count=16 status=none)
mkswap /swap
systemctl enable --now molecule-besteffort.service molecule-guaranteed.service molecule-moved.service swap.swap

# An entry is made for every file of that name that isn't empty.
echo "no kernel" > /boot/vmlinuz-6.1.0-molecule
mkdir /boot/grub
update-grub
