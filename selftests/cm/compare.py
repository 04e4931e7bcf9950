#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Compare what two connection managers put on the cable in the same scenario.

compare.py REFERENCE CANDIDATE [NAME...]
    Two captures, taken on the watched node. In each step of scenario.py, the node calling or serving, the messages have to
    be the same, field for field; ids and sequence numbers are replaced by what they stand for. With names, in each of
    these calls instead, whose services end in 1, 2 and so on. Prints for each
    `same STEP` or `different STEP`, and what there is to say of it in lines that begin with a space. On purpose:

    early retransmission   a message that is repeated: how often is the sender's own affair, and so is a REQ or SIDR_REQ
                           that finds the service gone, after the first one was answered: one answer for each of these
    early MRA              an MRA that the other connection manager had no occasion for
"""

import itertools
import sys
from dataclasses import dataclass
from dataclasses import field

import capture
import scenario


@dataclass
class Conversation:
    """The messages of one connection, or of one service resolution."""

    caller: str
    messages: list = field(default_factory=list)


def _conversations(messages, port):
    """Those that asked for that port. A message belongs to the one whose ids it has."""
    found, known = [], {}
    for message in messages:
        fields = message.fields
        if message.kind.startswith("SIDR"):
            caller = message.source if message.kind == "SIDR_REQ" else message.destination
            own, others = (caller, "sidr", fields["request_id"]), None
        else:
            own = (message.source, "connection", fields.get("local_comm_id"))
            others = (message.destination, "connection", fields.get("remote_comm_id"))
        if message.kind in ("REQ", "SIDR_REQ") and own not in known and message.service_port == port:
            known[own] = Conversation(message.source)
            found.append(known[own])
        conversation = known.get(others) or known.get(own)
        if conversation:
            conversation.messages.append(message)
            if own[2]:
                known.setdefault(own, conversation)
    return found


class _Labels:
    """Names for ids, in the order in which they are seen."""

    def __init__(self, prefix):
        self._prefix = prefix
        self._names = {0: "none"}

    def of(self, value):
        """The name of one."""
        return self._names.setdefault(value, f"{self._prefix} {len(self._names)}")


def _masked(conversation):
    """(sender, kind, fields) of each message, with names for what is different every time."""
    labels = {"tid": _Labels("transaction"), "request_id": _Labels("request")}
    ids = _Labels("id")
    labels |= {"local_comm_id": ids, "remote_comm_id": ids}
    masked = []
    for message in conversation.messages:
        fields = {name: labels[name].of(value) if name in labels else value for name, value in message.fields.items()}
        if "psn" in fields:
            fields["psn"] = "random"
        sender = "caller" if message.source == conversation.caller else "server"
        masked.append((sender, message.kind, fields))
    return masked


def _answers_repetition(message, essence, repeated):
    """Whether that is what a REQ or SIDR_REQ got after another one like it had been answered: one answer for each repetition."""
    asked = "caller", {"REJ": "REQ", "SIDR_REP": "SIDR_REQ"}.get(message[1])
    is_owed = repeated.count(message[:2]) < repeated.count(asked)
    return is_owed and message[:2] in [earlier[:2] for earlier in essence]


def _essence(conversation):
    """(messages without repetitions and MRAs, MRAs, number of repetitions)."""
    essence, answers, repeated = [], [], []
    for message in _masked(conversation):
        if message in essence or message in answers or _answers_repetition(message, essence, repeated):
            repeated.append(message[:2])
        elif message[1] == "MRA":
            answers.append(message)
        else:
            essence.append(message)
    return essence, answers, len(repeated)


def _differing(reference, candidate):
    """The fields of two messages that differ, a line each."""
    for name in reference.keys() | candidate.keys():
        values = reference.get(name), candidate.get(name)
        if values[0] != values[1]:
            shown = [f"{value:#x}" if isinstance(value, int) else value for value in values]
            yield f"{name}: {shown[0]} expected, {shown[1]} found"


def _names(messages):
    return " ".join(f"{sender}:{kind}" for sender, kind, _ in messages) or "nothing"


def _compare(reference, candidate):
    """(lines for what differs and may not, lines for what differs on purpose)."""
    wanted, wanted_answers, wanted_repetitions = _essence(reference)
    found, found_answers, found_repetitions = _essence(candidate)
    if [message[:2] for message in wanted] != [message[:2] for message in found]:
        return [f"expected: {_names(wanted)}", f"found:    {_names(found)}"], []
    differing = [
        f"{kind} of the {sender}: {line}"
        for (sender, kind, fields), (_, _, others) in zip(wanted, found, strict=True)
        for line in _differing(fields, others)
    ]
    differing += _missing_answers(wanted_answers, found_answers)
    on_purpose = []
    if len(found_answers) > len(wanted_answers):
        on_purpose.append(f"early MRA: {_names(found_answers)}")
    if found_repetitions != wanted_repetitions:
        on_purpose.append(f"early retransmission: {found_repetitions} repeated messages, not {wanted_repetitions}")
    return differing, on_purpose


def _missing_answers(wanted, found):
    """Where one sends an MRA the other has to, and their fields are the same. It may send more."""
    for sender, kind, fields in wanted:
        theirs = [others for who, _, others in found if (who, others["answers"]) == (sender, fields["answers"])]
        if not theirs:
            yield f"the {sender} sent no {kind}"
        else:
            yield from (f"{kind} of the {sender}: {line}" for line in _differing(fields, theirs[0]))


def _compare_step(reference, candidate):
    """The same for all conversations of a step."""
    if not reference or len(reference) != len(candidate):
        return [f"{len(candidate)} conversations, and in the reference {len(reference)}"], []
    differing, on_purpose = [], []
    for pair in zip(reference, candidate, strict=True):
        lines = _compare(*pair)
        differing += lines[0]
        on_purpose += lines[1]
    return differing, on_purpose


def _steps():
    """(name, port) of the steps of the scenario."""
    for step, _ in scenario.STEPS:
        for watched_calls in (True, False):
            yield f"{step}, {'calling' if watched_calls else 'serving'}", scenario.port_of(step, watched_calls)


def main():
    """Do what the command line says."""
    if len(sys.argv) < 3:
        raise SystemExit(__doc__)
    captures = [capture.messages(file) for file in sys.argv[1:3]]
    for name, port in list(zip(sys.argv[3:], itertools.count(1))) or _steps():
        differing, on_purpose = _compare_step(*(_conversations(messages, port) for messages in captures))
        print("different" if differing else "same", name)
        for line in differing + on_purpose:
            print("", line)


if __name__ == "__main__":
    main()
