# SPDX-License-Identifier: GPL-2.0-only
"""bench_report.scheduling [--publish FILE KERNEL COMMAND] DIRECTORY CONNECTIONS: what two CPUs do for a connection.

Reads what bench/trace_events.sh printed in the runs bench-cm-* in DIRECTORY, a boot each, with so many connections at once. With
--publish the tables are a section of FILE, which is Markdown, with the date, KERNEL and COMMAND.
"""

import re
from collections import Counter
from statistics import median
from statistics import quantiles

from bench_report import page
from bench_report.profile import readable

TITLE = "What two CPUs do while connections are made"
MANAGERS = {"kernel": "kernel's", "oxib": "oxib's"}
# cmtime opens its connections with queue pairs and without.
_PASSES = 2
_WAIT = re.compile(r"^wait (\w+) (\S+) (\d+)$")
# The rows, with the counts that are summed in each. A name that ends in an underscore stands for all counts that begin so.
_ROWS = {
    "wake-ups": ("wakeups_",),
    "wake-ups of programs": ("wakeups_program",),
    "wake-ups of workers, unbound": ("wakeups_unbound_worker",),
    "wake-ups of workers of a CPU": ("wakeups_bound_worker",),
    "work items queued": ("works",),
    "context switches": ("switches_",),
    "context switches to the idle thread": ("switches_idle",),
    "migrations": ("migrations_",),
    "migrations of programs": ("migrations_program",),
    "migrations of workers, unbound": ("migrations_unbound_worker",),
    "interrupts from the other CPU": ("interrupts",),
    "waits for spin locks": ("waits_spin", "waits_rwlock"),
    "waits for mutexes": ("waits_mutex",),
    "waits for mutexes, asleep": ("waits_mutex_sleep",),
    "waits for semaphores": ("waits_semaphore",),
}
# What is there only on a kernel with probes, and the count that says so.
_PROBED = {"waits for spin locks": "waits_spin"}
_KINDS = {"spin": "spin lock", "rwlock": "spin lock", "mutex": "mutex", "mutex_sleep": "mutex, asleep", "semaphore": "semaphore"}
# The functions that are listed: those that wait most often with either connection manager.
_LISTED = 12
_EXPLANATION = """\
A connection with its end, both of its ends, in a node with two processors: `cmtime` opens all its
connections at once, with queue pairs and without; its start and end are in the figures. The medians
of single boots, the two connection managers by turns: their median, and in brackets the quartiles.
The trace events of the scheduler and of locks say how many
([benchmark.md](../benchmark.md#what-two-cpus-do)); they take time themselves, so nothing is timed
here.
"""


def read(text):
    """The counts of each repetition in a boot, and what waited for locks in all of them."""
    repetitions, waits = [], Counter()
    for line in text.splitlines():
        word, *words = line.split() or [""]
        wait = _WAIT.match(line)
        if word == "scheduling":
            repetitions.append(Counter({key: int(value) for key, _, value in (each.partition("=") for each in words)}))
        elif wait and repetitions:
            kind, function, number = wait[1], wait[2], int(wait[3])
            repetitions[-1][f"waits_{kind}"] += number
            waits[kind, function] += number
    return repetitions, waits


def _boots(directory):
    """What `read` finds in the boots of each connection manager, in their order."""
    boots = {manager: [] for manager in MANAGERS}
    for log in sorted(directory.glob("bench-cm-*-*-*/node1.log")):
        found = read(log.read_text(encoding="utf-8", errors="replace"))
        if found[0]:
            boots[log.parent.name.split("-")[3]].append(found)
    return boots


def _is_counted(name, boots):
    """Whether the kernel could count it: without probes there is no line of waits for spin locks."""
    return _PROBED.get(name) is None or any(
        _PROBED[name] in counts for found in boots.values() for repetitions, _ in found for counts in repetitions
    )


def _sum(counts, names):
    return sum(
        number for key, number in counts.items() if any(key.startswith(name) if name.endswith("_") else key == name for name in names)
    )


def _row(name, boots, number):
    """The median of each boot."""
    values = {
        manager: [median(_sum(counts, _ROWS[name]) / number for counts in repetitions) for repetitions, _ in found]
        for manager, found in boots.items()
    }
    medians = {manager: median(each) if each else None for manager, each in values.items()}
    ratio = medians["oxib"] / medians["kernel"] if medians["kernel"] and medians["oxib"] is not None else None
    return {"row": name, "values": values, "medians": medians, "ratio": ratio}


def _waits(boots, number):
    """How often each function waited, for a connection, in all boots."""
    sums = {}
    for manager, found in boots.items():
        taken = sum(len(repetitions) for repetitions, _ in found) * number
        for _, waits in found:
            for (kind, function), times in waits.items():
                if function == "?":
                    continue
                row = sums.setdefault((_KINDS.get(kind, kind), function), dict.fromkeys(MANAGERS, 0.0))
                row[manager] += times / taken
    most = sorted(sums.items(), key=lambda item: (-max(item[1].values()), item[0]))[:_LISTED]
    return [{"lock": lock, "function": function, **each} for (lock, function), each in most]


def document_of(boots, connections):
    """The rows of both tables."""
    number = _PASSES * connections
    return {
        "connections": connections,
        "repetitions": {manager: [len(each) for each, _ in found] for manager, found in boots.items()},
        "rows": [_row(name, boots, number) for name in _ROWS if _is_counted(name, boots)],
        "waits": _waits(boots, number),
    }


def _figure(value):
    return f"{value:.2f}" if value >= 0.1 else f"{value:.3f}"


def _values(values):
    if len(values) < 3:
        return " ".join(map(_figure, values)) or "-"
    low, _, high = quantiles(values, n=4)
    return f"{_figure(median(values))} ({_figure(low)} to {_figure(high)})"


def lines_of(document):
    """The lines of the tables, as Markdown has them."""
    boots = len(document["repetitions"]["oxib"])
    yield f"| a connection, boots: {boots} | {' | '.join(MANAGERS.values())} | ratio |"
    yield "| --- | --- | --- | --- |"
    for row in document["rows"]:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.2f}"
        yield f"| {row['row']} | {' | '.join(_values(row['values'][manager]) for manager in MANAGERS)} | {ratio} |"
    yield ""
    if not document["waits"]:
        return
    yield f"| waits, by the function that wants the lock | lock | {' | '.join(MANAGERS.values())} |"
    yield "| --- | --- | --- | --- |"
    names = readable([each["function"] for each in document["waits"]])
    for each in document["waits"]:
        figures = " | ".join(_figure(each[manager]) for manager in MANAGERS)
        yield f"| `{names[each['function']]}` | {each['lock']} | {figures} |"
    yield ""


def main():
    """Read the nodes' logs; print the tables, write all."""
    parser = page.parser()
    parser.add_argument("connections", type=int)
    options = parser.parse_args()
    document = document_of(_boots(options.directory), options.connections)
    lines = list(lines_of(document))
    page.write_section(options, "scheduling", document, lines, TITLE, [_EXPLANATION, *lines])


if __name__ == "__main__":
    main()
