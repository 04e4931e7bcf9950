// SPDX-License-Identifier: GPL-2.0-only

//! The messages of connection management byte by byte, as the tables of the specification place
//! their fields: each is written out, built, and read.

use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::ece::Ece;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::path::Path;
use oxib_wire::cm::reason::Reason;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::cm::rep::Failover;
use oxib_wire::cm::service_id::ServiceId;
use oxib_wire::cm::timeout::Timeout;
use oxib_wire::cm::transport::Transport;
use oxib_wire::cm::{
    apr,
    drep,
    dreq,
    lap,
    mra,
    rej,
    rep,
    req,
    rtu,
    sidr_rep,
    sidr_req,
    Message,
    Parameters, //
};
use oxib_wire::gid::Gid;
use oxib_wire::lid::Lid;
use oxib_wire::mad;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

mod cm_fields;

/// The private data of each message is the beginning of this, as long as it can be.
static PRIVATE_DATA: [u8; 224] = {
    let mut bytes = [0; 224];
    let mut index = 0;
    while index < bytes.len() {
        bytes[index] = index as u8 + 1;
        index += 1;
    }
    bytes
};

const TID: u64 = 0x1122_3344_5566_7788;
const LOCAL: CommId = CommId::new(0x0102_0304);
const REMOTE: CommId = CommId::new(0x0506_0708);
const SERVICE: ServiceId = ServiceId::new(0x1011_1213_1415_1617);
const GUID: u64 = 0x2021_2223_2425_2627;
const QKEY: u32 = 0x3031_3233;
const QPN: Qpn = Qpn::from_bytes([0x40, 0x41, 0x42]);
const EECN: Qpn = Qpn::from_bytes([0x50, 0x51, 0x52]);
const PSN: Psn = Psn::from_bytes([0x70, 0x71, 0x72]);
const ECE: Ece = Ece {
    vendor_id: 0x00a1_a2a3,
    options: 0x99aa_bbcc,
};

const fn gid(first: u8) -> Gid {
    let mut bytes = [0; 16];
    let mut index = 0;
    while index < 16 {
        bytes[index] = first + index as u8;
        index += 1;
    }
    Gid::from_bytes(bytes)
}

const PRIMARY: Path = Path {
    local_lid: Lid::new(0x8283),
    remote_lid: Lid::new(0x8485),
    local_gid: gid(0x90),
    remote_gid: gid(0xb0),
    flow_label: 0xc0c1c,
    packet_rate: 0x2d,
    traffic_class: 0xd0,
    hop_limit: 0xd1,
    sl: 0xe,
    subnet_local: true,
    local_ack_timeout: Timeout::saturating(0x13),
};

const ALTERNATE: Path = Path {
    local_lid: Lid::new(0x8687),
    remote_lid: Lid::new(0x8889),
    local_gid: gid(0xe0),
    remote_gid: gid(0xf0),
    flow_label: 0x12345,
    packet_rate: 0x03,
    traffic_class: 0xd4,
    hop_limit: 0xd5,
    sl: 0x5,
    subnet_local: false,
    local_ack_timeout: Timeout::saturating(0x1f),
};

fn private_data(length: usize) -> &'static [u8] {
    &PRIVATE_DATA[..length]
}

/// The bytes of a table: in each row the offset from the end of the header, the bytes, and what
/// they are. What is between the rows is zeros, and the last row has only its offset.
fn bytes(table: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for row in table.lines().filter(|row| !row.trim().is_empty()) {
        let (offset, row) = row.split_once(':').unwrap();
        let offset = offset.trim().parse::<i32>().unwrap() + mad::HEADER_LEN as i32;
        assert!(bytes.len() <= offset as usize, "rows overlap at {row}");
        bytes.resize(offset as usize, 0);
        let (row, _name) = row.split_once('|').unwrap();
        let row = row.split_whitespace();
        bytes.extend(row.map(|byte| u8::from_str_radix(byte, 16).unwrap()));
    }
    bytes
}

/// Builds and reads the message of this table, with the private data after it.
fn check(parameters: Parameters<'_>, table: &str) {
    let fixed = bytes(table);
    let rest = mad::LEN - fixed.len();
    let golden = [&fixed, private_data(rest)].concat();
    let mut built = [0xee; mad::LEN];
    assert_eq!(parameters.build(TID, &mut built), Ok(()));
    assert_eq!(built[..], golden[..]);

    let message = Message::parse(&golden).unwrap();
    assert_eq!(cm_fields::read(message), parameters);
    assert_eq!(message.header().tid(), TID);
    assert_eq!(message.header().attribute(), message.kind().get());
    assert_eq!(message.private_data(), private_data(rest));
    assert_eq!(message.kind().private_data_len(), rest);
}

#[test]
fn req() {
    let parameters = Parameters::Req(req::Parameters {
        local_comm_id: LOCAL,
        service_id: SERVICE,
        local_ca_guid: GUID,
        local_qkey: QKEY,
        local_qpn: QPN,
        responder_resources: 0x43,
        initiator_depth: 0x53,
        local_eecn: EECN,
        remote_eecn: Qpn::from_bytes([0x60, 0x61, 0x62]),
        remote_cm_response_timeout: Timeout::saturating(0x15),
        transport: Transport::Xrc,
        flow_control: false,
        starting_psn: PSN,
        local_cm_response_timeout: Timeout::saturating(0x0a),
        retry_count: 6,
        pkey: Pkey::new(0x8081),
        path_mtu: Mtu::new(4),
        rdc_exists: true,
        rnr_retry_count: 5,
        max_cm_retries: 0xb,
        srq: true,
        primary: PRIMARY,
        alternate: Some(ALTERNATE),
        sap_supported: true,
        ece: ECE,
        private_data: private_data(92),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 10 00 00 99 aa bb cc | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 00 a1 a2 a3             | reserved, vendor
              8: 10 11 12 13 14 15 16 17 | service ID
             16: 20 21 22 23 24 25 26 27 | CA GUID
             24: 00 00 00 00             | reserved
             28: 30 31 32 33             | Q_Key
             32: 40 41 42 43             | queue pair, responder resources
             36: 50 51 52 53             | local EEC, initiator depth
             40: 60 61 62 ae             | remote EEC, timeout 10101, type 11, flow 0
             44: 70 71 72 56             | PSN, timeout 01010, retries 110
             48: 80 81                   | P_Key
             50: 4d                      | MTU 0100, RDC 1, RNR 101
             51: b9                      | CM retries 1011, SRQ 1, extended type 001
             52: 82 83 84 85             | primary local and remote LID
             56: 90 91 92 93 94 95 96 97 | local GID
             64: 98 99 9a 9b 9c 9d 9e 9f | (continued)
             72: b0 b1 b2 b3 b4 b5 b6 b7 | remote GID
             80: b8 b9 ba bb bc bd be bf | (continued)
             88: c0 c1 c0 2d             | flow label, rate
             92: d0 d1                   | traffic class, hop limit
             94: e8                      | SL 1110, subnet local 1
             95: 98                      | acknowledgment timeout 10011
             96: 86 87 88 89             | alternate local and remote LID
            100: e0 e1 e2 e3 e4 e5 e6 e7 | local GID
            108: e8 e9 ea eb ec ed ee ef | (continued)
            116: f0 f1 f2 f3 f4 f5 f6 f7 | remote GID
            124: f8 f9 fa fb fc fd fe ff | (continued)
            132: 12 34 50 03             | flow label, rate
            136: d4 d5                   | traffic class, hop limit
            138: 50                      | SL 0101, subnet local 0
            139: fc                      | acknowledgment timeout 11111, SAP 1
            140:                         | private data
        ",
    );
}

#[test]
fn mra() {
    let parameters = Parameters::Mra(mra::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        acknowledged: Acknowledged::Rep,
        service_timeout: Timeout::saturating(24),
        private_data: private_data(222),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 11 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 40                      | message 01
              9: c0                      | service timeout 11000
             10:                         | private data
        ",
    );
}

#[test]
fn rej() {
    let parameters = Parameters::Rej(rej::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        rejected: Rejected::Other,
        reason: Reason::TIMEOUT,
        ari: &[0x20, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27],
        private_data: private_data(148),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 12 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 80                      | message 10
              9: 10                      | length 0001000
             10: 00 04                   | reason
             12: 20 21 22 23 24 25 26 27 | additional information
             84:                         | private data
        ",
    );
}

#[test]
fn rep() {
    let parameters = Parameters::Rep(rep::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        local_qkey: QKEY,
        local_qpn: QPN,
        local_eecn: EECN,
        starting_psn: PSN,
        responder_resources: 0x43,
        initiator_depth: 0x53,
        target_ack_delay: Timeout::saturating(0x15),
        failover: Failover::Rejected,
        flow_control: true,
        rnr_retry_count: 5,
        srq: true,
        local_ca_guid: GUID,
        ece: ECE,
        private_data: private_data(196),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 13 00 00 99 aa bb cc | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 30 31 32 33             | Q_Key
             12: 40 41 42 a1             | queue pair, vendor high
             16: 50 51 52 a2             | EEC, vendor middle
             20: 70 71 72 a3             | PSN, vendor low
             24: 43 53                   | responder resources, initiator depth
             26: ad                      | delay 10101, failover 10, flow 1
             27: b0                      | RNR 101, SRQ 1
             28: 20 21 22 23 24 25 26 27 | CA GUID
             36:                         | private data
        ",
    );
}

#[test]
fn rtu() {
    let parameters = Parameters::Rtu(rtu::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        private_data: private_data(224),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 14 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8:                         | private data
        ",
    );
}

#[test]
fn dreq() {
    let parameters = Parameters::Dreq(dreq::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        remote_qpn: QPN,
        private_data: private_data(220),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 15 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 40 41 42 00             | queue pair
             12:                         | private data
        ",
    );
}

#[test]
fn drep() {
    let parameters = Parameters::Drep(drep::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        private_data: private_data(224),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 16 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8:                         | private data
        ",
    );
}

#[test]
fn sidr_req() {
    let parameters = Parameters::SidrReq(sidr_req::Parameters {
        request_id: LOCAL,
        pkey: Pkey::new(0x8081),
        service_id: SERVICE,
        private_data: private_data(216),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 17 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | request ID
              4: 80 81 00 00             | P_Key, reserved
              8: 10 11 12 13 14 15 16 17 | service ID
             16:                         | private data
        ",
    );
}

#[test]
fn sidr_rep() {
    let parameters = Parameters::SidrRep(sidr_rep::Parameters {
        request_id: LOCAL,
        status: sidr_rep::Status::NO_QP,
        qpn: QPN,
        service_id: SERVICE,
        qkey: QKEY,
        ece: ECE,
        information: b"ab",
        private_data: private_data(136),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 18 00 00 99 aa bb cc | attribute, modifier
              0: 01 02 03 04             | request ID
              4: 03 02 a1 a2             | status, length, vendor high
              8: 40 41 42 a3             | queue pair, vendor low
             12: 10 11 12 13 14 15 16 17 | service ID
             20: 30 31 32 33             | Q_Key
             24: 61 62                   | additional information
             96:                         | private data
        ",
    );
}

#[test]
fn lap() {
    let parameters = Parameters::Lap(lap::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        remote_qpn: QPN,
        remote_cm_response_timeout: Timeout::saturating(0x15),
        alternate: PRIMARY,
        private_data: private_data(168),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 19 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 00 00 00 00             | reserved
             12: 40 41 42 a8             | queue pair, timeout 10101
             16: 00 00 00 00             | reserved
             20: 82 83 84 85             | alternate local and remote LID
             24: 90 91 92 93 94 95 96 97 | local GID
             32: 98 99 9a 9b 9c 9d 9e 9f | (continued)
             40: b0 b1 b2 b3 b4 b5 b6 b7 | remote GID
             48: b8 b9 ba bb bc bd be bf | (continued)
             56: c0 c1 c0 d0             | flow label, traffic class
             60: d1 2d                   | hop limit, rate
             62: e8                      | SL 1110, subnet local 1
             63: 98                      | acknowledgment timeout 10011
             64:                         | private data
        ",
    );
}

#[test]
fn apr() {
    let parameters = Parameters::Apr(apr::Parameters {
        local_comm_id: LOCAL,
        remote_comm_id: REMOTE,
        status: apr::Status::INVALID_HOP_LIMIT,
        information: b"abc",
        private_data: private_data(148),
    });
    check(
        parameters,
        "
            -24: 01 07 02 03 00 00 00 00 | version, class, class version, method, status
            -16: 11 22 33 44 55 66 77 88 | transaction
             -8: 00 1a 00 00 00 00 00 00 | attribute, modifier
              0: 01 02 03 04             | local communication ID
              4: 05 06 07 08             | remote communication ID
              8: 03 0b 00 00             | length, status
             12: 61 62 63                | additional information
             84:                         | private data
        ",
    );
}
