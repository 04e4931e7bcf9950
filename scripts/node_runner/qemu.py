# SPDX-License-Identifier: GPL-2.0-only
"""QEMU's command line for one node."""

import os
from dataclasses import dataclass

from node_runner import tsc


@dataclass(frozen=True)
class Machine:
    """The shape of every node of a run."""

    smp: int = 2
    memory: int = 1024
    icount: bool = False
    # A TCG plugin with its arguments, as QEMU's option -plugin takes them.
    plugin: str = ""


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


def _processor(machine):
    if machine.icount:
        # The guest's clock is its instruction count: one processor, one thread.
        return ["-accel", "tcg,thread=single", "-icount", "shift=0,sleep=off", "-cpu", "max,la57=off", "-smp", "1"]
    if kvm_usable():
        return ["-accel", "kvm", "-cpu", "host", "-smp", str(machine.smp)]
    return ["-accel", "tcg,thread=multi", "-cpu", "max,la57=off", "-smp", str(machine.smp)]


def clock_options(machine):
    """What the node's kernel is told of its clock."""
    if machine.icount:
        return f"tsc=reliable tsc_early_khz={tsc.ICOUNT_KHZ}"
    if kvm_usable():
        return ""
    return f"tsc=reliable tsc_early_khz={tsc.host_khz()}"


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


def command(machine, kernel, clock, node, nodes, directories, plugs, console):
    """Return the command for node `node` of `nodes`.

    clock: the kernel's options from clock_options(); directories: (tag, path, read_only) for each 9p mount; plugs: the file descriptors of its cables, in the order
    eth0, eth1; console: QEMU's option for the serial port.
    """
    words = ["qemu-system-x86_64", "-machine", "q35,usb=off,vmport=off", "-m", str(machine.memory)]
    words += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    words += _processor(machine)
    words += ["-plugin", machine.plugin] if machine.plugin else []
    words += kernel.boot_options()
    words += ["-append", kernel.command_line(node, nodes, clock)]
    words += ["-serial", console]
    words += ["-device", "virtio-rng-pci"]
    for tag, path, read_only in directories:
        words += _directory(tag, path, read_only)
    for number, plug in enumerate(plugs):
        words += _nic(node, number, plug)
    return words
