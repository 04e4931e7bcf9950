#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only
"""Connections of a capture that have ended: the DREQ is answered by a DREP, the last message of a connection.

ended.py FILE    prints how many. A DREQ that is repeated belongs to the same connection, and so do the DREPs that answer
                 it. More DREPs than DREQs are an error
"""

import collections
import sys

import capture


def _connection(message):
    """The transaction and the communication IDs, as the sender of the DREQ has them."""
    ids = message.fields["local_comm_id"], message.fields["remote_comm_id"]
    return message.fields["tid"], *(ids if message.kind == "DREQ" else reversed(ids))


def ended(messages):
    """The number of connections that have ended. A SystemExit names the DREP that answers no DREQ."""
    unanswered, answered = collections.Counter(), set()
    for message in messages:
        if message.kind == "DREQ":
            unanswered[_connection(message)] += 1
        elif message.kind == "DREP":
            connection = _connection(message)
            if not unanswered[connection]:
                raise SystemExit(f"a DREP from {message.source} answers no DREQ: transaction {connection[0]:#x}")
            unanswered[connection] -= 1
            answered.add(connection)
    return len(answered)


def main():
    """Do what the command line says."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(ended(capture.messages(sys.argv[1])))


if __name__ == "__main__":
    main()
