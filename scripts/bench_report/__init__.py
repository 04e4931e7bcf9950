# SPDX-License-Identifier: GPL-2.0-only
"""Makes a table, a JSON file and a chart of what bench/node.sh measured."""
