# SPDX-License-Identifier: GPL-2.0-only
"""What ends the program, and what is only told."""

import sys


class Failure(Exception):
    """Something is wrong: texts for the administrator, one for each thing that is."""

    def __init__(self, *texts):
        super().__init__(*texts)
        self.texts = texts


def warn(text):
    """Tell something that changes nothing."""
    print(f"collect-fabric: {text}", file=sys.stderr)
