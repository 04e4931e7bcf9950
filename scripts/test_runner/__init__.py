# SPDX-License-Identifier: GPL-2.0-only
"""Runs the tests, in nodes and on the host, and counts what they come to."""
