# SPDX-License-Identifier: GPL-2.0-only
# shellcheck shell=sh
#
# The directories that the runner gives a node, each under a tag: see Run._directories in run.py. Sourced, with MACHINE
# and, on user-mode Linux, DIRECTORIES set: the directory of the host that has a link for each tag.

# mount_directory TAG DIRECTORY ro|rw: mount one of them. What is read-only here does not change on the host either.
mount_directory() {
	if [ "$MACHINE" = uml ]; then
		mount -t hostfs -o "$3,hostfs=$DIRECTORIES/$1" none "$2"
	elif [ "$3" = ro ]; then
		mount -t 9p -o "ro,trans=virtio,version=9p2000.L,msize=262144,noxattr,cache=loose" "$1" "$2"
	else
		mount -t 9p -o "rw,trans=virtio,version=9p2000.L,msize=262144,noxattr,cache=none" "$1" "$2"
	fi
}
