#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# The comparison of two connection managers' messages, with made-up conversations. Runs in the toolchain root.

set -u

# shellcheck source=scripts/tests/unittests.bash
. scripts/tests/unittests.bash
run_unittests scripts/tests/cm_compare.py
