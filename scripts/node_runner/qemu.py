# SPDX-License-Identifier: GPL-2.0-only
"""Nodes that QEMU emulates or, with hardware virtualisation, runs."""

import os
import socket

from node_runner import tsc
from node_runner.machine import Launch

# Without noxattr the writable layer over the guest asks for extended attributes at every name it looks up.
_COMMAND_LINE = (
    "root=guest rootfstype=9p rootflags=trans=virtio,version=9p2000.L,msize=262144,cache=loose,noxattr "
    "init=/sbin/node-init console=ttyS0,115200 nokaslr mitigations=off no_timer_check net.ifnames=0"
)


def kvm_usable():
    """Whether hardware virtualisation is really there: /dev/kvm alone may be an emulation that crawls."""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as cpuinfo:
        flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
    if not {"vmx", "svm"} & set(flags):
        return False
    try:
        os.close(os.open("/dev/kvm", os.O_RDWR))
    except OSError:
        return False
    return True


def _processor(shape):
    if shape.icount:
        # The guest's clock is its instruction count: one processor, one thread.
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,la57=off", "-smp", "1"]
    if kvm_usable():
        return ["-accel", "kvm", "-cpu", "host", "-smp", str(shape.smp)]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", str(shape.smp)]


def _clock(shape):
    """What the node's kernel is told of its clock, and its first process."""
    if shape.icount:
        return f"CLOCK=instructions tsc=reliable tsc_early_khz={tsc.ICOUNT_KHZ}"
    if kvm_usable():
        return ""
    return f"tsc=reliable tsc_early_khz={tsc.host_khz()}"


def _image(kernel):
    """The ELF image where the kernel takes it, else the packed one."""
    if (kernel.tree / "initramfs").exists():
        return ["-kernel", str(kernel.tree / "vmlinuz"), "-initrd", str(kernel.tree / "initramfs")]
    return ["-kernel", str(kernel.tree / "vmlinux")]


def _directory(tag, path, read_only):
    options = f"local,path={path},mount_tag={tag},security_model=passthrough,multidevs=remap"
    return ["-virtfs", options + (",readonly=on" if read_only else "")]


def _nic(node, number, plug):
    """One end of a cable. Offloads stay off by nature: the far end is another QEMU.

    Without mergeable buffers its driver has no page pool. Giving a page back to one lets softirqs run, and rxe frees
    packets under a lock that receiving takes (drain_req_pkts in 7.2 and 7.3): a queue pair that ends under traffic hangs the node.
    """
    mac = f"52:54:00:00:{node:02x}:{number:02x}"
    return [
        "-netdev", f"stream,id=eth{number},server=off,addr.type=fd,addr.str={plug}",
        "-device", f"virtio-net-pci,netdev=eth{number},mac={mac},romfile=,mrg_rxbuf=off,host_mtu=9000",
    ]  # fmt: skip


class Machine:
    """Launches the nodes of one run."""

    name = "qemu"
    cable_type = socket.SOCK_STREAM

    def __init__(self, shape, kernel):
        self._shape = shape
        self._kernel = kernel
        self._clock = _clock(shape)

    def launch(self, seat):
        """The process that is the node with that seat."""
        shape, kernel = self._shape, self._kernel
        words = ["qemu-system-x86_64", "-machine", "q35,usb=off,vmport=off", "-m", str(shape.memory)]
        words += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        words += _processor(shape)
        words += ["-plugin", shape.plugin] if shape.plugin else []
        words += _image(kernel)
        words += ["-append", f"{_COMMAND_LINE} {self._clock} {kernel.command_line(self.name, seat)}"]
        words += ["-serial", f"file:{seat.console}" if seat.console else "mon:stdio"]
        words += ["-device", "virtio-rng-pci"]
        for tag, path, read_only in seat.directories:
            words += _directory(tag, path, read_only)
        for number, plug in enumerate(seat.plugs):
            words += _nic(seat.node, number, plug)
        return Launch(words)
