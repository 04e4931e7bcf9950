#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Debian's kernel as packaged: all of stock/ in one boot, as it boots slowly.
#
# nodes: 2
# kernels: stock
# timeout: 600

. selftests/lib/node.sh

parts '2 ground/boot' '2 stock/stock' '2 stock/cm' '2 stock/peers' '1 stock/fabric'
finish
