// SPDX-License-Identifier: GPL-2.0-only

//! Reads every field of a received message, so that it can be built again.

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

/// Returns parameters from which the message could have been built.
pub fn read(message: Message<'_>) -> Parameters<'_> {
    match message {
        Message::Req(req) => Parameters::Req(read_req(req)),
        Message::Mra(mra) => Parameters::Mra(mra::Parameters {
            local_comm_id: mra.local_comm_id(),
            remote_comm_id: mra.remote_comm_id(),
            acknowledged: mra.acknowledged(),
            service_timeout: mra.service_timeout(),
            private_data: mra.private_data(),
        }),
        Message::Rej(rej) => Parameters::Rej(rej::Parameters {
            local_comm_id: rej.local_comm_id(),
            remote_comm_id: rej.remote_comm_id(),
            rejected: rej.rejected(),
            reason: rej.reason(),
            ari: rej.ari(),
            private_data: rej.private_data(),
        }),
        Message::Rep(rep) => Parameters::Rep(read_rep(rep)),
        Message::Rtu(rtu) => Parameters::Rtu(rtu::Parameters {
            local_comm_id: rtu.local_comm_id(),
            remote_comm_id: rtu.remote_comm_id(),
            private_data: rtu.private_data(),
        }),
        Message::Dreq(dreq) => Parameters::Dreq(dreq::Parameters {
            local_comm_id: dreq.local_comm_id(),
            remote_comm_id: dreq.remote_comm_id(),
            remote_qpn: dreq.remote_qpn(),
            private_data: dreq.private_data(),
        }),
        Message::Drep(drep) => Parameters::Drep(drep::Parameters {
            local_comm_id: drep.local_comm_id(),
            remote_comm_id: drep.remote_comm_id(),
            private_data: drep.private_data(),
        }),
        Message::SidrReq(request) => Parameters::SidrReq(sidr_req::Parameters {
            request_id: request.request_id(),
            pkey: request.pkey(),
            service_id: request.service_id(),
            private_data: request.private_data(),
        }),
        Message::SidrRep(reply) => Parameters::SidrRep(sidr_rep::Parameters {
            request_id: reply.request_id(),
            status: reply.status(),
            qpn: reply.qpn(),
            service_id: reply.service_id(),
            qkey: reply.qkey(),
            ece: reply.ece(),
            information: reply.information(),
            private_data: reply.private_data(),
        }),
        Message::Lap(lap) => Parameters::Lap(lap::Parameters {
            local_comm_id: lap.local_comm_id(),
            remote_comm_id: lap.remote_comm_id(),
            remote_qpn: lap.remote_qpn(),
            remote_cm_response_timeout: lap.remote_cm_response_timeout(),
            alternate: lap.alternate(),
            private_data: lap.private_data(),
        }),
        Message::Apr(apr) => Parameters::Apr(apr::Parameters {
            local_comm_id: apr.local_comm_id(),
            remote_comm_id: apr.remote_comm_id(),
            status: apr.status(),
            information: apr.information(),
            private_data: apr.private_data(),
        }),
    }
}

fn read_req(req: &req::Req) -> req::Parameters<'_> {
    req::Parameters {
        local_comm_id: req.local_comm_id(),
        service_id: req.service_id(),
        local_ca_guid: req.local_ca_guid(),
        local_qkey: req.local_qkey(),
        local_qpn: req.local_qpn(),
        responder_resources: req.responder_resources(),
        initiator_depth: req.initiator_depth(),
        local_eecn: req.local_eecn(),
        remote_eecn: req.remote_eecn(),
        remote_cm_response_timeout: req.remote_cm_response_timeout(),
        transport: req.transport(),
        flow_control: req.flow_control(),
        starting_psn: req.starting_psn(),
        local_cm_response_timeout: req.local_cm_response_timeout(),
        retry_count: req.retry_count(),
        pkey: req.pkey(),
        path_mtu: req.path_mtu(),
        rdc_exists: req.rdc_exists(),
        rnr_retry_count: req.rnr_retry_count(),
        max_cm_retries: req.max_cm_retries(),
        srq: req.srq(),
        primary: req.primary(),
        alternate: req.alternate(),
        sap_supported: req.sap_supported(),
        ece: req.ece(),
        private_data: req.private_data(),
    }
}

fn read_rep(rep: &rep::Rep) -> rep::Parameters<'_> {
    rep::Parameters {
        local_comm_id: rep.local_comm_id(),
        remote_comm_id: rep.remote_comm_id(),
        local_qkey: rep.local_qkey(),
        local_qpn: rep.local_qpn(),
        local_eecn: rep.local_eecn(),
        starting_psn: rep.starting_psn(),
        responder_resources: rep.responder_resources(),
        initiator_depth: rep.initiator_depth(),
        target_ack_delay: rep.target_ack_delay(),
        failover: rep.failover(),
        flow_control: rep.flow_control(),
        rnr_retry_count: rep.rnr_retry_count(),
        srq: rep.srq(),
        local_ca_guid: rep.local_ca_guid(),
        ece: rep.ece(),
        private_data: rep.private_data(),
    }
}
