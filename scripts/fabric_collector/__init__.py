# SPDX-License-Identifier: GPL-2.0-only
"""Collects a fabric's GIDs and addresses, for the address cache and for other programs; see scripts/collect-fabric."""
