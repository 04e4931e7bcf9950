# SPDX-License-Identifier: GPL-2.0-only
"""Builds fabrics of softib's HCAs, switches and routers from a file; see scripts/fabric and Documentation/softib.md."""
