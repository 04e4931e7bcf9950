# SPDX-License-Identifier: GPL-2.0-only
"""Time limits of programs, in seconds, out of the node's patience: see scripts/node_runner/patience.sh."""

import os

# Seconds in which a condition should come true.
PATIENCE = int(os.environ.get("PATIENCE", 60))


def at_least(seconds):
    """Returns the node's patience, or `seconds` if that is more: the limit of what may take long even on an idle machine."""
    return max(PATIENCE, seconds)
