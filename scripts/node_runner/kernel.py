# SPDX-License-Identifier: GPL-2.0-only
"""A test kernel in the cache: what of it QEMU boots and what of it a node mounts."""

import os
from dataclasses import dataclass
from pathlib import Path

# Unit tests run as modules are loaded, which takes its time: only where asked for.
# A busy host takes a node's processors away for many seconds: a soft lockup is one of a minute, as an RCU stall is.
# Without noxattr the writable layer over the guest asks for extended attributes at every name it looks up.
_COMMAND_LINE = (
    "root=guest rootfstype=9p rootflags=trans=virtio,version=9p2000.L,msize=262144,cache=loose,noxattr ro "
    "init=/sbin/node-init console=ttyS0,115200 loglevel=7 panic=-1 oops=panic nokaslr mitigations=off kunit.enable=0 "
    "no_timer_check random.trust_cpu=on net.ifnames=0 watchdog_thresh=30"
)


@dataclass(frozen=True)
class Kernel:
    """One of the kernels that scripts/kernel makes."""

    # Its name and version, as in fast-7.3.
    id: str
    cache: Path
    more_options: str = ""

    @property
    def name(self):
        """The name without the version: fast, debug or stock."""
        return self.id.partition("-")[0]

    @property
    def tree(self):
        """The directory with the image and its modules."""
        return self.cache / "kernel" / self.id

    @property
    def source(self):
        """The directory with the source it was built from."""
        return self.cache / f"source-{self.id.partition('-')[2]}"

    @property
    def build(self):
        """The directory with oxib's modules for it."""
        return self.cache / os.environ.get("OXIB_BUILD", "build") / self.id

    @property
    def modules(self):
        """The directory that becomes /lib/modules."""
        return self.tree / "modroot/lib/modules"

    def boot_options(self):
        """QEMU's options for the image: the ELF image where the kernel takes it, else the packed one."""
        if (self.tree / "initramfs").exists():
            return ["-kernel", str(self.tree / "vmlinuz"), "-initrd", str(self.tree / "initramfs")]
        return ["-kernel", str(self.tree / "vmlinux")]

    def command_line(self, node, nodes, clock):
        """The kernel's command line; the assignments in capitals reach the node's first process."""
        return f"{_COMMAND_LINE} {clock} {self.more_options} NODE={node} NODES={nodes} KERNEL={self.name}"
