# SPDX-License-Identifier: GPL-2.0-only
"""What the checkout's Python programs are compiled to. Made here, beside them: a node cannot write to the checkout, would compile
them again at each start, and is emulated.
"""

import compileall


def make(checkout):
    """Compile what has changed since it was compiled last."""
    for directory in ("scripts", "selftests"):
        compileall.compile_dir(checkout / directory, quiet=2)
