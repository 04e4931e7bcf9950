# SPDX-License-Identifier: GPL-2.0-only
"""Tests of selftests/cm/compare.py: which differences between two made-up conversations are told, and which may be."""

import io
import sys
import unittest
from contextlib import redirect_stdout
from pathlib import Path
from unittest.mock import patch

sys.path.append(str(Path(__file__).resolve().parents[2] / "selftests/cm"))

# The scenario loads librdmacm, which only nodes need.
with patch("ctypes.CDLL"):
    import compare
    import message
    import scenario

_CALLER, _SERVER, _STRANGER = "10.0.0.1", "10.0.0.2", "10.0.0.3"
_PORT_SPACE = 0x01060000
_NO_SUCH_SERVICE, _CONSUMER = 8, 28
# The message that an MRA answers.
_OF_REQ, _OF_REP = 0, 1


def _made(source, destination, kind, hop_limit=64, **fields):
    """The message as a capture has it."""
    return message.parse(message.build(kind, **fields), source, destination, {"ip_ttl": hop_limit})


class _Connection:
    """Makes the messages of one connection, with IDs from a number on."""

    def __init__(self, number=100, port=1):
        self.caller_id, self.server_id, self._transaction, self._psn = range(number, number + 4)
        self._service = _PORT_SPACE | port

    def req(self, **fields):
        """The caller's first message."""
        given = {"local_comm_id": self.caller_id, "service_id": self._service, "psn": self._psn, "retries": 7}
        return _made(_CALLER, _SERVER, "REQ", **{"tid": self._transaction, **given, **fields})

    def rep(self, **fields):
        """The server's answer."""
        return self.server("REP", **{"psn": self._psn + 1, "qpn": 0x2000, **fields})

    def rej(self, **fields):
        """The answer of a server that keeps nothing of the connection."""
        return self.server("REJ", **{"local_comm_id": 0, "reason": _NO_SUCH_SERVICE, **fields})

    def caller(self, kind, **fields):
        """A message of the caller."""
        ids = {"local_comm_id": self.caller_id, "remote_comm_id": self.server_id}
        return _made(_CALLER, _SERVER, kind, **{"tid": self._transaction, **ids, **fields})

    def server(self, kind, **fields):
        """A message of the server."""
        ids = {"local_comm_id": self.server_id, "remote_comm_id": self.caller_id}
        return _made(_SERVER, _CALLER, kind, **{"tid": self._transaction, **ids, **fields})

    def opening(self):
        """The messages by which it comes up."""
        return [self.req(), self.rep(), self.caller("RTU")]

    def closing(self):
        """The messages by which the caller ends it, a transaction of their own."""
        return [kind(name, tid=self._transaction + 10) for kind, name in ((self.caller, "DREQ"), (self.server, "DREP"))]

    def whole(self):
        """All of them."""
        return self.opening() + self.closing()


class _Resolution:
    """Makes the messages of one service resolution."""

    def __init__(self, number=100, port=1, caller=_CALLER):
        self._fields = {"tid": number, "request_id": number, "service_id": _PORT_SPACE | port}
        self._caller = caller

    def req(self):
        """The question."""
        return _made(self._caller, _SERVER, "SIDR_REQ", **self._fields)

    def rep(self, **fields):
        """The answer."""
        return _made(_SERVER, self._caller, "SIDR_REP", **{**self._fields, "qpn": 0x2000, **fields})


def _compared(reference, candidate, *names):
    """The lines that are printed of two captures."""
    captures = {"reference": reference, "candidate": candidate}
    output = io.StringIO()
    words = ["compare.py", *captures, *names]
    with patch("capture.messages", captures.get), patch.object(sys, "argv", words), redirect_stdout(output):
        compare.main()
    return output.getvalue().splitlines()


def _call(reference, candidate):
    """The same, of the first call."""
    return _compared(reference, candidate, "call")


_ONE, _OTHER = _Connection(100), _Connection(500)
_SAME = ["same call"]


def _retransmission(found, expected=0):
    return ["same call", f" early retransmission: {found} repeated messages, not {expected}"]


class Messages(unittest.TestCase):
    """Conversations that are the same, or have more messages, fewer or others."""

    def test_identical_ones_are_the_same(self):
        self.assertEqual(_call(_ONE.whole(), _ONE.whole()), _SAME)

    def test_a_missing_message_is_told(self):
        self.assertEqual(
            _call(_ONE.whole(), _OTHER.whole()[:-1]),
            [
                "different call",
                " expected: caller:REQ server:REP caller:RTU caller:DREQ server:DREP",
                " found:    caller:REQ server:REP caller:RTU caller:DREQ",
            ],
        )

    def test_a_message_too_many_is_told(self):
        self.assertEqual(_call(_ONE.whole()[:-1], _OTHER.whole())[0], "different call")

    def test_another_message_is_told(self):
        self.assertEqual(
            _call([_ONE.req(), _ONE.rep()], [_OTHER.req(), _OTHER.rej()]),
            ["different call", " expected: caller:REQ server:REP", " found:    caller:REQ server:REJ"],
        )

    def test_another_order_is_told(self):
        self.assertEqual(
            _call(_ONE.opening(), [_OTHER.req(), _OTHER.caller("RTU"), _OTHER.rep()]),
            [
                "different call",
                " expected: caller:REQ server:REP caller:RTU",
                " found:    caller:REQ caller:RTU server:REP",
            ],
        )

    def test_a_message_of_the_other_side_is_told(self):
        self.assertEqual(
            _call([*_ONE.opening(), _ONE.caller("DREQ")], [*_OTHER.opening(), _OTHER.server("DREQ")]),
            [
                "different call",
                " expected: caller:REQ server:REP caller:RTU caller:DREQ",
                " found:    caller:REQ server:REP caller:RTU server:DREQ",
            ],
        )


class Fields(unittest.TestCase):
    """Fields that have to be the same, and those that are different every time."""

    def test_another_value_is_told(self):
        self.assertEqual(
            _call(_ONE.whole(), [_OTHER.req(retries=6), *_OTHER.whole()[1:]]),
            ["different call", " REQ of the caller: retries: 0x7 expected, 0x6 found"],
        )

    def test_another_value_in_the_packet_is_told(self):
        self.assertEqual(
            _call(_ONE.opening(), [_OTHER.req(), _OTHER.rep(), _OTHER.caller("RTU", hop_limit=63)]),
            ["different call", " RTU of the caller: ip_ttl: 0x40 expected, 0x3f found"],
        )

    def test_a_field_that_only_one_has_is_told(self):
        without = _ONE.req()
        del without.fields["ip_ttl"]
        for reference, candidate, line in (
            (without, _OTHER.req(), " REQ of the caller: ip_ttl: None expected, 0x40 found"),
            (_OTHER.req(), without, " REQ of the caller: ip_ttl: 0x40 expected, None found"),
        ):
            self.assertEqual(_call([reference], [candidate]), ["different call", line])

    def test_other_ids_and_sequence_numbers_are_the_same(self):
        self.assertEqual(_call(_ONE.whole(), _OTHER.whole()), _SAME)

    def test_other_request_ids_are_the_same(self):
        one, other = _Resolution(100), _Resolution(500)
        self.assertEqual(_call([one.req(), one.rep()], [other.req(), other.rep()]), _SAME)

    def test_an_answer_in_another_transaction_is_told(self):
        self.assertEqual(
            _call(_ONE.whole(), [*_OTHER.whole()[:-1], _OTHER.server("DREP", tid=999)]),
            ["different call", " DREP of the server: tid: transaction 2 expected, transaction 3 found"],
        )

    def test_an_id_that_the_peer_does_not_have_is_told(self):
        wrong = [_OTHER.req(), _OTHER.rep(), _OTHER.caller("RTU", remote_comm_id=999)]
        self.assertEqual(
            _call(_ONE.opening(), wrong),
            ["different call", " RTU of the caller: remote_comm_id: id 2 expected, id 3 found"],
        )

    def test_an_id_where_none_has_to_be_is_told(self):
        self.assertEqual(
            _call([_ONE.req(), _ONE.rej()], [_OTHER.req(), _OTHER.rej(local_comm_id=999)]),
            ["different call", " REJ of the server: local_comm_id: none expected, id 2 found"],
        )


class Repetitions(unittest.TestCase):
    """Messages that are sent again, and the answers to them."""

    def test_a_message_may_be_repeated(self):
        for reference, candidate in ((_ONE.whole(), _OTHER.whole()), (_OTHER.whole(), _ONE.whole())):
            for each, repeated in enumerate(candidate):
                with self.subTest(repeated.kind):
                    self.assertEqual(_call(reference, [*candidate[: each + 1], *candidate[each:]]), _retransmission(1))

    def test_a_message_may_be_repeated_less_often(self):
        req, *rest = _ONE.whole()
        self.assertEqual(_call([req, req, req, *rest], _OTHER.whole()), _retransmission(0, 2))

    def test_as_many_repetitions_are_not_mentioned(self):
        self.assertEqual(_call([_ONE.req(), _ONE.req(), _ONE.rej()], [_OTHER.req(), _OTHER.rej(), _OTHER.req()]), _SAME)

    def test_a_repetition_with_another_field_is_told(self):
        again = [_OTHER.req(), _OTHER.req(retries=6), *_OTHER.whole()[1:]]
        self.assertEqual(_call(_ONE.whole(), again)[0], "different call")

    def test_a_repeated_req_may_find_the_service_gone(self):
        rejected = [_ONE.req(), _ONE.rej(reason=_CONSUMER)]
        again = [_OTHER.req(), _OTHER.req(), _OTHER.rej(reason=_CONSUMER), _OTHER.rej()]
        self.assertEqual(_call(rejected, again), _retransmission(2))
        self.assertEqual(_call(again, rejected), _retransmission(0, 2))

    def test_a_repeated_sidr_req_may_find_the_service_gone(self):
        one, other = _Resolution(100), _Resolution(500)
        again = [other.req(), other.req(), other.rep(), other.rep(sidr_status=1)]
        self.assertEqual(_call([one.req(), one.rep()], again), _retransmission(2))
        self.assertEqual(_call(again, [one.req(), one.rep()]), _retransmission(0, 2))

    def test_each_repeated_req_may_find_the_service_gone(self):
        again = [_OTHER.req(), _OTHER.req(), _OTHER.req(), _OTHER.rej(reason=_CONSUMER), _OTHER.rej(), _OTHER.rej()]
        self.assertEqual(_call([_ONE.req(), _ONE.rej(reason=_CONSUMER)], again), _retransmission(4))

    def test_more_rejs_than_repeated_reqs_are_told(self):
        req, rej, another = _OTHER.req(), _OTHER.rej(reason=_CONSUMER), _OTHER.rej()
        candidates = {
            "two other REJs": [req, req, rej, another, another],
            "a repeated REJ and another": [req, req, rej, rej, another],
        }
        for name, candidate in candidates.items():
            with self.subTest(name):
                self.assertEqual(
                    _call([_ONE.req(), _ONE.rej(reason=_CONSUMER)], candidate),
                    ["different call", " expected: caller:REQ server:REJ", " found:    caller:REQ server:REJ server:REJ"],
                )

    def test_more_sidr_reps_than_repeated_sidr_reqs_are_told(self):
        one, other = _Resolution(100), _Resolution(500)
        candidate = [other.req(), other.req(), other.rep(), other.rep(sidr_status=1), other.rep(sidr_status=1)]
        self.assertEqual(
            _call([one.req(), one.rep()], candidate),
            [
                "different call",
                " expected: caller:SIDR_REQ server:SIDR_REP",
                " found:    caller:SIDR_REQ server:SIDR_REP server:SIDR_REP",
            ],
        )

    def test_the_first_rej_is_compared(self):
        again = [_OTHER.req(), _OTHER.req(), _OTHER.rej(), _OTHER.rej(reason=_CONSUMER)]
        self.assertEqual(
            _call([_ONE.req(), _ONE.rej(reason=_CONSUMER)], again)[:2],
            ["different call", " REJ of the server: reason: 0x1c expected, 0x8 found"],
        )

    def test_the_first_sidr_rep_is_compared(self):
        one, other = _Resolution(100), _Resolution(500)
        again = [other.req(), other.req(), other.rep(sidr_status=1), other.rep()]
        self.assertEqual(
            _call([one.req(), one.rep()], again)[:2],
            ["different call", " SIDR_REP of the server: sidr_status: 0x0 expected, 0x1 found"],
        )

    def test_a_repeated_req_has_to_be_rejected_if_the_reference_is(self):
        self.assertEqual(
            _call([_ONE.req(), _ONE.rej()], [_OTHER.req(), _OTHER.req()]),
            ["different call", " expected: caller:REQ server:REJ", " found:    caller:REQ"],
        )

    def test_a_rej_that_none_came_before_is_told(self):
        again = [_OTHER.req(), *_OTHER.opening(), _OTHER.rej()]
        self.assertEqual(_call(_ONE.opening(), again)[0], "different call")

    def test_a_rej_too_many_without_a_repeated_req_is_told(self):
        req, rej, another = _OTHER.req(), _OTHER.rej(reason=_CONSUMER), _OTHER.rej()
        candidates = {
            "no repetition": [req, rej, another],
            "a repeated REJ": [req, rej, rej, another],
            "a REQ that is repeated later": [req, rej, another, req],
        }
        for name, candidate in candidates.items():
            with self.subTest(name):
                self.assertEqual(
                    _call([_ONE.req(), _ONE.rej(reason=_CONSUMER)], candidate),
                    ["different call", " expected: caller:REQ server:REJ", " found:    caller:REQ server:REJ server:REJ"],
                )

    def test_a_sidr_rep_too_many_without_a_repeated_sidr_req_is_told(self):
        one, other = _Resolution(100), _Resolution(500)
        candidate = [other.req(), other.rep(), other.rep(sidr_status=1)]
        self.assertEqual(
            _call([one.req(), one.rep()], candidate),
            [
                "different call",
                " expected: caller:SIDR_REQ server:SIDR_REP",
                " found:    caller:SIDR_REQ server:SIDR_REP server:SIDR_REP",
            ],
        )

    def test_a_rej_of_the_caller_is_told_though_the_req_is_repeated(self):
        again = [_OTHER.req(), _OTHER.req(), _OTHER.rej(), _OTHER.caller("REJ", remote_comm_id=0)]
        self.assertEqual(_call([_ONE.req(), _ONE.rej()], again)[0], "different call")

    def test_another_rep_is_told_though_the_req_is_repeated(self):
        again = [_OTHER.req(), _OTHER.req(), _OTHER.rep(), _OTHER.rep(qpn=0x2001), _OTHER.caller("RTU")]
        self.assertEqual(_call(_ONE.opening(), again)[0], "different call")


class Waits(unittest.TestCase):
    """MRAs, by which one side asks the other for more time."""

    def _with(self, connection, *waits):
        """A conversation with these after its REQ."""
        req, *rest = connection.whole()
        return [req, *waits, *rest]

    def _mra(self, connection, **fields):
        return connection.server("MRA", **{"answers": _OF_REQ, "service_timeout": 20, **fields})

    def test_the_same_mra_is_the_same(self):
        self.assertEqual(_call(self._with(_ONE, self._mra(_ONE)), self._with(_OTHER, self._mra(_OTHER))), _SAME)

    def test_an_mra_more_is_mentioned(self):
        self.assertEqual(
            _call(_ONE.whole(), self._with(_OTHER, self._mra(_OTHER))),
            ["same call", " early MRA: server:MRA"],
        )

    def test_an_mra_may_be_repeated(self):
        twice = self._with(_OTHER, self._mra(_OTHER), self._mra(_OTHER))
        self.assertEqual(_call(self._with(_ONE, self._mra(_ONE)), twice), _retransmission(1))

    def test_a_missing_mra_is_told(self):
        self.assertEqual(
            _call(self._with(_ONE, self._mra(_ONE)), _OTHER.whole()),
            ["different call", " the server sent no MRA"],
        )

    def test_an_mra_to_another_message_is_told(self):
        self.assertEqual(
            _call(self._with(_ONE, self._mra(_ONE)), self._with(_OTHER, self._mra(_OTHER, answers=_OF_REP))),
            ["different call", " the server sent no MRA"],
        )

    def test_an_mra_of_the_other_side_is_told(self):
        by_caller = _OTHER.caller("MRA", answers=_OF_REQ, service_timeout=20)
        self.assertEqual(
            _call(self._with(_ONE, self._mra(_ONE)), self._with(_OTHER, by_caller)),
            ["different call", " the server sent no MRA"],
        )

    def test_another_value_in_an_mra_is_told(self):
        self.assertEqual(
            _call(self._with(_ONE, self._mra(_ONE)), self._with(_OTHER, self._mra(_OTHER, service_timeout=21))),
            ["different call", " MRA of the server: service_timeout: 0x14 expected, 0x15 found"],
        )


class Conversations(unittest.TestCase):
    """Messages of several conversations in one capture."""

    def test_each_call_is_compared_by_its_port(self):
        def both(first, number):
            return [*first, *_Connection(number, port=2).whole()]

        self.assertEqual(
            _compared(both(_ONE.whole(), 200), both(_OTHER.opening(), 600), "one", "other")[::3],
            ["different one", "same other"],
        )

    def test_without_names_the_steps_of_the_scenario_are_compared(self):
        steps = [f"{name}, {way}" for name, _ in scenario.STEPS for way in ("calling", "serving")]
        ports = [scenario.port_of(name, way) for name, _ in scenario.STEPS for way in (True, False)]
        reference = [each for port in ports for each in _Connection(10 * port, port).opening()]
        candidate = [*reference[:-3], _Connection(10 * ports[-1], ports[-1]).req()]
        lines = [line for line in _compared(reference, candidate) if not line.startswith(" ")]
        self.assertEqual(lines, [f"same {step}" for step in steps[:-1]] + [f"different {steps[-1]}"])

    def test_each_conversation_of_a_step_is_compared(self):
        one, other = _Connection(600), _Connection(700)
        for name, candidate in (
            ("the first", [one.req(retries=6), *one.whole()[1:], *other.whole()]),
            ("the second", [*one.whole(), other.req(retries=6), *other.whole()[1:]]),
        ):
            with self.subTest(name):
                self.assertEqual(
                    _call(_ONE.whole() + _OTHER.whole(), candidate),
                    ["different call", " REQ of the caller: retries: 0x7 expected, 0x6 found"],
                )

    def test_repetitions_in_each_conversation_are_mentioned(self):
        one, other = _Connection(600), _Connection(700)
        repeated = " early retransmission: 1 repeated messages, not 0"
        self.assertEqual(
            _call(_ONE.whole() + _OTHER.whole(), [one.req(), *one.whole(), other.req(), *other.whole()]),
            ["same call", repeated, repeated],
        )

    def test_another_number_of_conversations_is_told(self):
        self.assertEqual(
            _call(_ONE.whole(), _OTHER.whole() + _Connection(600).whole()),
            ["different call", " 2 conversations, and in the reference 1"],
        )
        self.assertEqual(_call(_ONE.whole(), []), ["different call", " 0 conversations, and in the reference 1"])

    def test_a_capture_alone_is_refused(self):
        with patch.object(sys, "argv", ["compare.py", "reference"]), self.assertRaises(SystemExit):
            compare.main()

    def test_nothing_is_not_the_same_as_nothing(self):
        self.assertEqual(_call([], []), ["different call", " 0 conversations, and in the reference 0"])

    def test_conversations_may_overlap(self):
        def overlapping(*connections):
            return [each for pair in zip(*(connection.whole() for connection in connections), strict=True) for each in pair]

        one, other = (_Connection(100), _Connection(200)), (_Connection(500), _Connection(600))
        self.assertEqual(_call(overlapping(*one), overlapping(*other)), _SAME)

    def test_a_rej_without_an_id_belongs_to_the_req_that_it_names(self):
        rejected = [_ONE.req(), _ONE.rej()]
        another = _Connection(600, port=2)
        self.assertEqual(_call(rejected, [_OTHER.req(), _OTHER.rej(), another.req(), another.rej(reason=_CONSUMER)]), _SAME)

    def test_a_message_without_an_own_id_belongs_to_the_connection_of_its_peer(self):
        forgotten = [_OTHER.req(), _OTHER.rep(), _OTHER.caller("REJ", local_comm_id=0)]
        self.assertEqual(
            _call([_ONE.req(), _ONE.rep()], forgotten),
            ["different call", " expected: caller:REQ server:REP", " found:    caller:REQ server:REP caller:REJ"],
        )

    def test_two_callers_may_choose_the_same_request_id(self):
        def resolutions(number):
            one, other = _Resolution(number), _Resolution(number, caller=_STRANGER)
            return [one.req(), other.req(), one.rep(), other.rep(sidr_status=1)]

        self.assertEqual(_call(resolutions(100), resolutions(500)), _SAME)
        self.assertEqual(
            _call(resolutions(100), resolutions(500)[:-1]),
            ["different call", " expected: caller:SIDR_REQ server:SIDR_REP", " found:    caller:SIDR_REQ"],
        )

    def test_two_callers_may_choose_the_same_communication_id(self):
        strange = [_made(_STRANGER, _SERVER, "REQ", local_comm_id=_ONE.caller_id, service_id=_PORT_SPACE | 2)]
        strange += [_made(_SERVER, _STRANGER, "REJ", remote_comm_id=_ONE.caller_id, reason=_CONSUMER)]
        self.assertEqual(_call(_ONE.whole(), _ONE.opening() + strange + _ONE.closing()), _SAME)


if __name__ == "__main__":
    unittest.main()
