# SPDX-License-Identifier: GPL-2.0-only
"""What each job took on another machine, for jobs that were not measured on this one yet.

python3 -m test_runner.usual RESULTS...: make usual.json from files results.json of `make test`, of runs with nothing beside them.
"""

import json
import re
import sys
from pathlib import Path

_FILE = Path(__file__).with_name("usual.json")
# The version in the kernel of a job's name: a test takes about as long with each.
_VERSION = re.compile(r"-[0-9.]+\)$")


def _name(job):
    """The name of a job without the version of its kernel."""
    return _VERSION.sub(")", job)


def read(path=_FILE):
    """The seconds and processor seconds (`busy`) of each job, by its name without a version."""
    return json.loads(path.read_text(encoding="utf-8"))


def of(usual, job):
    """What is usual for a job of that name; None if nobody measured it."""
    return usual.get(_name(job))


def taken_from(records):
    """What is usual, by the records of whole runs: of several for one name, the one that took the longest."""
    usual = {}
    for record in sorted(records, key=lambda record: record["seconds"]):
        if record["ran"] and not record["failed"]:
            usual[_name(record["test"])] = {"busy": round(record["processor_seconds"]), "seconds": round(record["seconds"])}
    return usual


def main():
    """Write it anew."""
    records = [record for path in sys.argv[1:] for record in json.loads(Path(path).read_text(encoding="utf-8"))]
    lines = [f" {json.dumps(name)}: {json.dumps(took)}" for name, took in sorted(taken_from(records).items())]
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
