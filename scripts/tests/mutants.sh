#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# Every mutant applies to the source as it is, and the test that has to fail is there: what `make mutants` does with them takes
# a build each. Runs in the toolchain root.

set -eu
exec python3 -m mutant_runner --check
