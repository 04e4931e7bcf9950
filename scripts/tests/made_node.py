# SPDX-License-Identifier: GPL-2.0-only
"""A kernel for made-up caches: a shell script that runs the node's command as a process of this machine."""

# What the command writes to descriptor 3 is on the node's console. A file boot.sh of the cache runs before it.
LINUX = """#!/bin/bash
for word in "$@"; do
	case $word in [A-Z]*=*) export "$word" ;; esac
done
out=$DIRECTORIES/out
exec 3>&1
[ ! -e /cache/boot.sh ] || . /cache/boot.sh
: >"$out/begun"
setpriv --pdeathsig KILL bash "$out/command" >"$out/log" 2>&1
echo $? >"$out/status"
"""

# Enters a made-up checkout and cache, and runs a command there.
ENTER = 'mount --bind "$1" /oxib && mount --bind "$2" /cache && cd /oxib && exec "${@:3}"'


def make_kernel(cache, identifier):
    """Put the kernel into a cache, under an identifier such as uml-7.3."""
    kernel = cache / "kernel" / identifier
    kernel.mkdir(parents=True)
    (kernel / "linux").write_text(LINUX)
    (kernel / "linux").chmod(0o755)
