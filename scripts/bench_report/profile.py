# SPDX-License-Identifier: GPL-2.0-only
"""Which function executes how many instructions per packet or connection: `scripts/bench profile`.

python3 -m bench_report.profile DIRECTORY BURST: the run's directory, with the profiler's counts and the node's symbols.
"""

import subprocess
import sys
from bisect import bisect_right
from collections import Counter
from pathlib import Path

# Less than that is left out.
_LEAST = 1


class Symbols:
    """The kernel's and the modules' functions by address."""

    def __init__(self, kallsyms):
        found = []
        for line in kallsyms:
            address, kind, *name = line.split()
            if kind in "tTwW":
                found.append((int(address, 16), " ".join(name)))
        found.sort()
        self._addresses = [address for address, _ in found]
        self._names = [name for _, name in found]

    def name(self, address):
        """The function that an address is in."""
        index = bisect_right(self._addresses, address) - 1
        return self._names[index] if index >= 0 else "?"

    def starts(self, address):
        """Whether a function starts there."""
        index = bisect_right(self._addresses, address) - 1
        return index >= 0 and self._addresses[index] == address


def count(lines, symbols):
    """(rounds, instructions by function, calls by function) of what bench/profile.c wrote."""
    rounds = int(next(lines))
    instructions, calls = Counter(), Counter()
    for line in lines:
        address, length, runs = line.split()
        address = int(address, 16)
        name = symbols.name(address)
        instructions[name] += int(length) * int(runs)
        if symbols.starts(address):
            calls[name] += int(runs)
    return rounds, instructions, calls


def readable(names):
    """The names as the source has them."""
    output = subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True, check=True).stdout
    return dict(zip(names, output.splitlines(), strict=True))


def main():
    """Print the list."""
    directory, burst = Path(sys.argv[1]), int(sys.argv[2])
    with open(directory / "node1/kallsyms", encoding="ascii") as kallsyms:
        symbols = Symbols(kallsyms)
    with open(directory / "counts", encoding="ascii") as counts:
        rounds, instructions, calls = count(counts, symbols)
    packets = rounds * burst
    if not packets:
        raise SystemExit("oxib: the profiler saw no round")
    ours = sum(number for name, number in instructions.items() if name.endswith(("[oxib]", "[softib]", "[ib_ipoib]", "[ib_cm]")))
    print(
        f"per packet, over {rounds} rounds: {sum(instructions.values()) / packets:.0f} instructions, "
        f"{ours / packets:.0f} in the modules oxib, ib_cm, ib_ipoib and softib"
    )
    print("instructions    calls  function")
    listed = [name for name, number in instructions.most_common() if number / packets >= _LEAST]
    names = readable(listed)
    for name in listed:
        print(f"{instructions[name] / packets:12.1f} {calls[name] / packets:8.2f}  {names[name]}")


if __name__ == "__main__":
    main()
