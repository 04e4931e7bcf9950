# SPDX-License-Identifier: GPL-2.0-only
"""Breaks a copy of the source on purpose, in one place at a time, and looks whether a test notices."""
