# SPDX-License-Identifier: GPL-2.0-only
"""What a fabric is made with on this machine: ip, rdma, and softib's directory in configfs."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

SOFTIB = Path("/sys/kernel/config/softib")
_NAMESPACES = Path("/run/netns")


class Failure(Exception):
    """Something did not work: a text for the administrator."""


def run(*words, namespace=None, text=None):
    """Run a command, in a namespace if one is given; returns what it printed."""
    command = [*(["ip", "netns", "exec", namespace] if namespace else []), *words]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise Failure(f"there is no {command[0]} on this machine: install iproute2") from error
    if done.returncode != 0:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        raise Failure(f"`{' '.join(command)}`{_batch(text)}: {said}")
    return done.stdout


def _batch(text):
    return f" with `{text.strip().replace(chr(10), '; ')}`" if text and text.count("\n") < 4 else ""


def ip_batch(lines, namespace=None):
    """Run lines of `ip`, in one process."""
    lines = list(lines)
    if lines:
        where = ["-n", namespace] if namespace else []
        run("ip", *where, "-batch", "-", text="\n".join(lines) + "\n")


def namespace_exists(name):
    """Whether `ip netns` knows it."""
    return (_NAMESPACES / name).exists()


def net_device_exists(name, namespace=None):
    """Whether there is one of that name in a namespace, or in this one."""
    if namespace is None:
        return Path("/sys/class/net", name).exists()
    return namespace_exists(namespace) and f" {name}@" in run("ip", "-n", namespace, "-o", "link", "show")


def has_ipv6():
    """Whether the kernel has IPv6: with ipv6.disable=1 on its command line it has not, and refuses settings of it."""
    return Path("/proc/net/if_inet6").exists()


def take_interfaces_down(namespace):
    """Take the IP over InfiniBand interfaces of a namespace down."""
    links = json.loads(run("ip", "-n", namespace, "-j", "link", "show") or "[]")
    ip_batch((f"link set {link['ifname']} down" for link in links if link["link_type"] == "infiniband"), namespace)


def require_root():
    """Fail for anybody else."""
    if os.geteuid() != 0:
        raise Failure("this needs root")


def require_softib():
    """Fail unless softib is there, and whoever asks may use it."""
    require_root()
    if not SOFTIB.is_dir():
        raise Failure(f"there is no {SOFTIB}: load softib.ko, and mount configfs on /sys/kernel/config")


def require_exclusive_namespaces():
    """Have each RDMA device live in one network namespace."""
    if "netns exclusive" in run("rdma", "system", "show"):
        return
    try:
        run("rdma", "system", "set", "netns", "exclusive")
    except Failure as failure:
        raise Failure(
            f"RDMA devices cannot be given to network namespaces: {failure}. The kernel changes this only while there "
            "are no other namespaces: delete those, or load ib_core with netns_mode=0"
        ) from failure


def configure(directory, options):
    """Make a directory in softib's configfs if need be, and write options to its files."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"{directory} cannot be made: {error.strerror}") from error
    for key, value in options.items():
        file = directory / key
        if not file.exists():
            known = ", ".join(sorted(each.name for each in directory.iterdir() if each.is_file()))
            raise Failure(f"softib has no option {key} for a {directory.parent.name}, but {known}")
        write(file, value)


def write(file, value):
    """Write to a file of the kernel's."""
    try:
        file.write_text(f"{value}\n", encoding="ascii")
    except OSError as error:
        reason = f"{file}: '{value}' is refused: {error.strerror}; the kernel's log (dmesg) says why"
        raise Failure(reason) from error


def remove_directory(directory):
    """Remove it if it is there."""
    try:
        directory.rmdir()
    except FileNotFoundError:
        pass
    except OSError as error:
        raise Failure(f"{directory} cannot be removed: {error.strerror}") from error


def remove_empty_folders():
    """Remove softib's folders of switches, routers and HCAs where nothing is left in them: they would hold the module."""
    for folder in SOFTIB.iterdir():
        if folder.is_dir() and not any(each.is_dir() for each in folder.iterdir()):
            remove_directory(folder)


def _processes(namespaces):
    return [int(word) for namespace in namespaces for word in run("ip", "netns", "pids", namespace).split()]


def _signal(processes, number):
    for process in processes:
        try:
            os.kill(process, number)
        except ProcessLookupError:
            pass


def end_processes(namespaces):
    """End what runs in namespaces: first it is asked to, then it is made to."""
    for number, patience in ((signal.SIGTERM, 5), (signal.SIGKILL, 60)):
        deadline = time.monotonic() + patience
        processes = _processes(namespaces)
        _signal(processes, number)
        while processes:
            if time.monotonic() > deadline:
                break
            time.sleep(0.1)
            processes = _processes(namespaces)
        else:
            return
    raise Failure("processes in the hosts' namespaces do not end")
