// SPDX-License-Identifier: GPL-2.0-only

//! Each field of less than a byte, or beside one, is where the tables of the specification say, and
//! writing it changes nothing else, whatever the value.

use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::ece::Ece;
use oxib_wire::cm::mra::Acknowledged;
use oxib_wire::cm::mtu::Mtu;
use oxib_wire::cm::path::Path;
use oxib_wire::cm::rej::Rejected;
use oxib_wire::cm::rep::Failover;
use oxib_wire::cm::service_id::ServiceId;
use oxib_wire::cm::timeout::Timeout;
use oxib_wire::cm::transport::Transport;
use oxib_wire::cm::{
    lap,
    mra,
    rej,
    rep,
    req,
    Parameters, //
};
use oxib_wire::gid::Gid;
use oxib_wire::lid::Lid;
use oxib_wire::mad;
use oxib_wire::pkey::Pkey;
use oxib_wire::psn::Psn;
use oxib_wire::qpn::Qpn;

const NO_TIME: Timeout = Timeout::saturating(0);
const LONGEST: Timeout = Timeout::saturating(31);
const ZERO_QPN: Qpn = Qpn::from_bytes([0; 3]);
const ZERO_PSN: Psn = Psn::wrapping(0);
const NO_ECE: Ece = Ece {
    vendor_id: 0,
    options: 0,
};

/// A path that is there, and all zeros besides.
const PATH: Path = Path {
    local_lid: Lid::new(1),
    remote_lid: Lid::ZERO,
    local_gid: Gid::ZERO,
    remote_gid: Gid::ZERO,
    flow_label: 0,
    packet_rate: 0,
    traffic_class: 0,
    hop_limit: 0,
    sl: 0,
    subnet_local: false,
    local_ack_timeout: NO_TIME,
};

const REQ: req::Parameters<'_> = req::Parameters {
    local_comm_id: CommId::ZERO,
    service_id: ServiceId::new(0),
    local_ca_guid: 0,
    local_qkey: 0,
    local_qpn: ZERO_QPN,
    responder_resources: 0,
    initiator_depth: 0,
    local_eecn: ZERO_QPN,
    remote_eecn: ZERO_QPN,
    remote_cm_response_timeout: NO_TIME,
    transport: Transport::Rc,
    flow_control: false,
    starting_psn: ZERO_PSN,
    local_cm_response_timeout: NO_TIME,
    retry_count: 0,
    pkey: Pkey::new(0),
    path_mtu: Mtu::new(0),
    rdc_exists: false,
    rnr_retry_count: 0,
    max_cm_retries: 0,
    srq: false,
    primary: PATH,
    alternate: Some(PATH),
    sap_supported: false,
    ece: NO_ECE,
    private_data: &[],
};

const REP: rep::Parameters<'_> = rep::Parameters {
    local_comm_id: CommId::ZERO,
    remote_comm_id: CommId::ZERO,
    local_qkey: 0,
    local_qpn: ZERO_QPN,
    local_eecn: ZERO_QPN,
    starting_psn: ZERO_PSN,
    responder_resources: 0,
    initiator_depth: 0,
    target_ack_delay: NO_TIME,
    failover: Failover::Accepted,
    flow_control: false,
    rnr_retry_count: 0,
    srq: false,
    local_ca_guid: 0,
    ece: NO_ECE,
    private_data: &[],
};

const LAP: lap::Parameters<'_> = lap::Parameters {
    local_comm_id: CommId::ZERO,
    remote_comm_id: CommId::ZERO,
    remote_qpn: ZERO_QPN,
    remote_cm_response_timeout: NO_TIME,
    alternate: PATH,
    private_data: &[],
};

/// The place of a field as the tables write it, `byte[bit]` and the number of bits.
type Place = (usize, usize, usize);

/// The bits that differ between the messages, as one place.
fn difference(one: Parameters<'_>, other: Parameters<'_>) -> Place {
    let built = |parameters: Parameters<'_>| {
        let mut bytes = [0; mad::LEN];
        parameters.build(0, &mut bytes).unwrap();
        bytes
    };
    let (one, other) = (built(one), built(other));
    let differ = |bit: &usize| (one[bit / 8] ^ other[bit / 8]) << (bit % 8) & 0x80 != 0;
    let bits: Vec<usize> = (0..mad::LEN * 8).filter(differ).collect();
    let (first, last) = (bits[0], bits[bits.len() - 1]);
    assert_eq!(bits.len(), last - first + 1, "the field is in pieces");
    (first / 8 - mad::HEADER_LEN, first % 8, bits.len())
}

#[test]
fn fields_of_a_req() {
    let check = |place: Place, set: fn(&mut req::Parameters<'_>)| {
        let mut other = REQ;
        set(&mut other);
        assert_eq!(
            difference(Parameters::Req(REQ), Parameters::Req(other)),
            place
        );
    };
    check((5, 0, 24), |req| req.ece.vendor_id = u32::MAX);
    check((32, 0, 24), |req| req.local_qpn = Qpn::MULTICAST);
    check((35, 0, 8), |req| req.responder_resources = 0xff);
    check((36, 0, 24), |req| req.local_eecn = Qpn::MULTICAST);
    check((39, 0, 8), |req| req.initiator_depth = 0xff);
    check((40, 0, 24), |req| req.remote_eecn = Qpn::MULTICAST);
    check((43, 0, 5), |req| req.remote_cm_response_timeout = LONGEST);
    check((43, 5, 2), |req| req.transport = Transport::Extended(0));
    check((43, 7, 1), |req| req.flow_control = true);
    check((44, 0, 24), |req| {
        req.starting_psn = Psn::wrapping(u32::MAX)
    });
    check((47, 0, 5), |req| req.local_cm_response_timeout = LONGEST);
    check((47, 5, 3), |req| req.retry_count = 0xff);
    check((48, 0, 16), |req| req.pkey = Pkey::DEFAULT);
    check((50, 0, 4), |req| req.path_mtu = Mtu::new(0xff));
    check((50, 4, 1), |req| req.rdc_exists = true);
    check((50, 5, 3), |req| req.rnr_retry_count = 0xff);
    check((51, 0, 4), |req| req.max_cm_retries = 0xff);
    check((51, 4, 1), |req| req.srq = true);
    check((139, 5, 1), |req| req.sap_supported = true);
}

#[test]
fn extended_transport_type_of_a_req() {
    let extended = |number| {
        Parameters::Req(req::Parameters {
            transport: Transport::Extended(number),
            ..REQ
        })
    };
    assert_eq!(difference(extended(0), extended(0xff)), (51, 5, 3));
}

#[test]
fn paths_of_a_req() {
    let check = |place: Place, set: fn(&mut Path)| {
        let mut path = PATH;
        set(&mut path);
        let primary = Parameters::Req(req::Parameters {
            primary: path,
            ..REQ
        });
        let alternate = Parameters::Req(req::Parameters {
            alternate: Some(path),
            ..REQ
        });
        let (byte, bit, length) = place;
        assert_eq!(difference(Parameters::Req(REQ), primary), place);
        let place = (byte + 44, bit, length);
        assert_eq!(difference(Parameters::Req(REQ), alternate), place);
    };
    check((52, 0, 15), |path| path.local_lid = Lid::PERMISSIVE); // but its last bit, which was set
    check((54, 0, 16), |path| path.remote_lid = Lid::PERMISSIVE);
    check((56, 0, 128), |path| path.local_gid = ONES);
    check((72, 0, 128), |path| path.remote_gid = ONES);
    check((88, 0, 20), |path| path.flow_label = u32::MAX);
    check((91, 2, 6), |path| path.packet_rate = 0xff);
    check((92, 0, 8), |path| path.traffic_class = 0xff);
    check((93, 0, 8), |path| path.hop_limit = 0xff);
    check((94, 0, 4), |path| path.sl = 0xff);
    check((94, 4, 1), |path| path.subnet_local = true);
    check((95, 0, 5), |path| path.local_ack_timeout = LONGEST);
}

/// No port's, but a place is seen by it.
const ONES: Gid = Gid::from_bytes([0xff; 16]);

#[test]
fn no_alternate_path_without_a_local_lid() {
    let without = |alternate| req::Parameters { alternate, ..REQ };
    let path = Path {
        local_lid: Lid::ZERO,
        ..PATH
    };
    let mut bytes = [0; mad::LEN];
    for alternate in [None, Some(path)] {
        assert_eq!(without(alternate).build(0, &mut bytes), Ok(()));
        let oxib_wire::cm::Message::Req(req) = oxib_wire::cm::Message::parse(&bytes).unwrap()
        else {
            panic!("a REQ was built");
        };
        assert_eq!(req.alternate(), None);
    }
}

#[test]
fn fields_of_an_mra() {
    let zero = mra::Parameters {
        local_comm_id: CommId::ZERO,
        remote_comm_id: CommId::ZERO,
        acknowledged: Acknowledged::Req,
        service_timeout: NO_TIME,
        private_data: &[],
    };
    let message = Parameters::Mra(mra::Parameters {
        acknowledged: Acknowledged::Reserved,
        ..zero
    });
    assert_eq!(difference(Parameters::Mra(zero), message), (8, 0, 2));
    let message = Parameters::Mra(mra::Parameters {
        service_timeout: LONGEST,
        ..zero
    });
    assert_eq!(difference(Parameters::Mra(zero), message), (9, 0, 5));
}

#[test]
fn fields_of_a_rej() {
    let zero = rej::Parameters {
        local_comm_id: CommId::ZERO,
        remote_comm_id: CommId::ZERO,
        rejected: Rejected::Req,
        reason: oxib_wire::cm::reason::Reason::new(0),
        ari: &[],
        private_data: &[],
    };
    let message = Parameters::Rej(rej::Parameters {
        rejected: Rejected::Reserved,
        ..zero
    });
    assert_eq!(difference(Parameters::Rej(zero), message), (8, 0, 2));
    // 7 is three ones, in the low end of seven bits.
    let message = Parameters::Rej(rej::Parameters {
        ari: &[0; 7],
        ..zero
    });
    assert_eq!(difference(Parameters::Rej(zero), message), (9, 4, 3));
}

#[test]
fn fields_of_a_rep() {
    let check = |place: Place, set: fn(&mut rep::Parameters<'_>)| {
        let mut other = REP;
        set(&mut other);
        assert_eq!(
            difference(Parameters::Rep(REP), Parameters::Rep(other)),
            place
        );
    };
    check((12, 0, 24), |rep| rep.local_qpn = Qpn::MULTICAST);
    check((15, 0, 8), |rep| rep.ece.vendor_id = 0xffff_0000);
    check((16, 0, 24), |rep| rep.local_eecn = Qpn::MULTICAST);
    check((19, 0, 8), |rep| rep.ece.vendor_id = 0x0000_ff00);
    check((20, 0, 24), |rep| {
        rep.starting_psn = Psn::wrapping(u32::MAX)
    });
    check((23, 0, 8), |rep| rep.ece.vendor_id = 0x0000_00ff);
    check((24, 0, 8), |rep| rep.responder_resources = 0xff);
    check((25, 0, 8), |rep| rep.initiator_depth = 0xff);
    check((26, 0, 5), |rep| rep.target_ack_delay = LONGEST);
    check((26, 5, 2), |rep| rep.failover = Failover::Reserved);
    check((26, 7, 1), |rep| rep.flow_control = true);
    check((27, 0, 3), |rep| rep.rnr_retry_count = 0xff);
    check((27, 3, 1), |rep| rep.srq = true);
}

#[test]
fn fields_of_a_lap() {
    let check = |place: Place, set: fn(&mut lap::Parameters<'_>)| {
        let mut other = LAP;
        set(&mut other);
        assert_eq!(
            difference(Parameters::Lap(LAP), Parameters::Lap(other)),
            place
        );
    };
    check((12, 0, 24), |lap| lap.remote_qpn = Qpn::MULTICAST);
    check((15, 0, 5), |lap| lap.remote_cm_response_timeout = LONGEST);
    check((22, 0, 16), |lap| {
        lap.alternate.remote_lid = Lid::PERMISSIVE
    });
    check((24, 0, 128), |lap| lap.alternate.local_gid = ONES);
    check((40, 0, 128), |lap| lap.alternate.remote_gid = ONES);
    check((56, 0, 20), |lap| lap.alternate.flow_label = u32::MAX);
    check((59, 0, 8), |lap| lap.alternate.traffic_class = 0xff);
    check((60, 0, 8), |lap| lap.alternate.hop_limit = 0xff);
    check((61, 2, 6), |lap| lap.alternate.packet_rate = 0xff);
    check((62, 0, 4), |lap| lap.alternate.sl = 0xff);
    check((62, 4, 1), |lap| lap.alternate.subnet_local = true);
    check((63, 0, 5), |lap| lap.alternate.local_ack_timeout = LONGEST);
}
