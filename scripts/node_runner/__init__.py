# SPDX-License-Identifier: GPL-2.0-only
"""Boots nodes, joins them with cables, runs a script in each, and judges what came of it."""
