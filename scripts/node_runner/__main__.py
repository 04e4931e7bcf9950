# SPDX-License-Identifier: GPL-2.0-only
"""The command line of the node runner; see scripts/nodes."""

import argparse
import os
import sys
import termios
from dataclasses import dataclass
from pathlib import Path

from node_runner import bytecode
from node_runner import qemu
from node_runner import uml
from node_runner.kernel import Kernel
from node_runner.machine import Shape
from node_runner.results import Results
from node_runner.results import Taken
from node_runner.results import shown
from node_runner.run import Run


# The status of a run that was interrupted, as of other commands.
_INTERRUPTED = 130


@dataclass(frozen=True)
class Places:
    """Where things are in the toolchain root."""

    cache: Path
    checkout: Path

    @property
    def guest(self):
        """The root every node shares."""
        return self.cache / "guest"


def _results(places, options):
    """Where the results go: under the name asked for, or one made from the script's."""
    above = places.cache / "out"
    if not options.name:
        return Results.first_free(above / f"{Path(options.script).stem}-{options.kernel}")
    try:
        return Results(above / options.name)
    except Taken as taken:
        raise SystemExit(f"oxib: a run named {taken} is going on; give this one another --name")


def _kernel_id(kernel):
    """A kernel's identifier: scripts/nodes says which version a name alone stands for."""
    return kernel if "-" in kernel else f"{kernel}-{os.environ['OXIB_KERNEL']}"


def _show(node, line):
    print(f"{node.name}| {line}", flush=True)


def _explain(run, tail):
    """Say what went wrong in which node, with the end of its output."""
    failed = False
    for node in run.nodes:
        troubles = node.troubles()
        failed = failed or bool(troubles)
        for trouble in troubles:
            print(f"{node.name}: {trouble}", file=sys.stderr)
        if troubles and tail:
            lines = node.log.read_text(encoding="utf-8", errors="replace").splitlines()[-tail:]
            for line in lines:
                print(f"{node.name}| {line}", file=sys.stderr)
    return failed


def _run_script(run, places, options):
    script = Path("/oxib") / options.script
    if not script.is_file():
        raise SystemExit(f"oxib: there is no script {options.script} in the checkout")
    for node in run.nodes:
        node.give_command(["/bin/bash", str(script), *options.arguments])
    run.start()
    seconds = run.watch(options.timeout, _show if options.verbose else None)
    failed = _explain(run, 0 if options.verbose else options.tail)
    verdict = "failed" if failed else "passed"
    print(f"run {run.directory.name}: {verdict} in {seconds:.0f} s; logs: {shown(run.directory)}/", file=sys.stderr)
    return _INTERRUPTED if run.interruption else 1 if failed else 0


def _run_shell(run):
    first, *others = run.nodes
    first.give_prompt()
    for node in others:
        node.give_command(["/bin/sleep", "infinity"])
    settings = termios.tcgetattr(sys.stdin)
    run.start(terminal_node=first.number)
    run.wait_for(first)
    # A node that was killed leaves the terminal as it needed it.
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, settings)
    return 0


def parse(words):
    """The options of a command line, without the name of the program."""
    parser = argparse.ArgumentParser(prog="scripts/nodes", description="Boot nodes joined by Ethernet cables.")
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="run a script of the checkout in every node")
    shell = commands.add_parser("shell", help="a prompt on the first node")
    for command in (run, shell):
        command.add_argument("--kernel", required=True, help="fast, debug or stock on QEMU; uml or umldebug; or with a version as fast-7.3 (default: fast or uml, by machine)")
        command.add_argument("--nodes", type=int, default=2, help="how many, in a chain (default 2)")
        command.add_argument("--smp", type=int, default=2, help="processors of each node (default 2)")
        command.add_argument("--memory", type=int, default=1024, help="MiB of each node (default 1024)")
        command.add_argument("--append", default="", help="more of the kernel's command line")
        command.add_argument("--name", help="of the results' directory (default: from the script)")
    run.add_argument("--icount", action="store_true", help="guest time is the instruction count; one processor")
    run.add_argument("--plugin", default="", help="a TCG plugin of QEMU: FILE[,ARGUMENT=VALUE...]")
    run.add_argument("--timeout", type=int, default=300, help="seconds until the run is stopped (default 300)")
    run.add_argument("--verbose", action="store_true", help="show the script's output as it comes")
    run.add_argument("--tail", type=int, default=20, help="lines of output shown of a failed node (default 20)")
    run.add_argument("script", help="path in the checkout")
    run.add_argument("arguments", nargs=argparse.REMAINDER)
    shell.set_defaults(icount=False, plugin="", script="shell", timeout=None)
    return parser.parse_args(words)


def main():
    """Do what the command line says; the exit status says whether every node was content."""
    options = parse(sys.argv[1:])
    places = Places(Path(os.environ["OXIB_CACHE"]), Path("/oxib"))
    kernel = Kernel(_kernel_id(options.kernel), places.cache, options.append, options.timeout)
    kernel.build.mkdir(parents=True, exist_ok=True)
    machine_type = uml.Machine if kernel.is_uml else qemu.Machine
    machine = machine_type(Shape(options.smp, options.memory, options.icount, options.plugin), kernel)
    bytecode.make(places.checkout)
    run = Run(_results(places, options), places, kernel, machine, options.nodes)
    if options.command == "shell":
        return _run_shell(run)
    return _run_script(run, places, options)


if __name__ == "__main__":
    sys.exit(main())
