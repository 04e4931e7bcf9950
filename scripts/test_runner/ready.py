# SPDX-License-Identifier: GPL-2.0-only
"""The kernels that tests run on. Some are still being made when the first tests run; see scripts/test."""

_FAILED = ".failed"


class Ready:
    """The kernels that are made, with their modules: files in a directory, named for each when it is made or has failed."""

    def __init__(self, directory):
        self._directory = directory

    def has(self, kernel):
        """Whether a kernel is made. Jobs of the host need none, and without a directory every kernel is made."""
        return kernel is None or self._directory is None or (self._directory / kernel).exists()

    def is_over(self, kernels):
        """Whether none of these kernels is still being made: each of them is made, or could not be."""
        return all(self.has(kernel) or self.has_failed(kernel) for kernel in kernels)

    def has_failed(self, kernel):
        """Whether the making of a kernel has failed."""
        return kernel is not None and self._directory is not None and (self._directory / f"{kernel}{_FAILED}").exists()
