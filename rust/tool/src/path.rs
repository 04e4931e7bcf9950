// SPDX-License-Identifier: GPL-2.0-only

//! A path of the path cache, as the kernel reports it.

use crate::{
    entry::{
        serialize_gid,
        serialize_pkey, //
    },
    error::Result,
    netlink::{
        attribute::Attributes,
        family::path as attribute, //
    },
};
use oxib_data_file::entry::ShortGid;
use oxib_wire::gid::Gid;
use serde::Serialize;
use std::fmt;

/// A path that the subnet administrator returned.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// The GID at which the path begins.
    #[serde(serialize_with = "serialize_gid")]
    sgid: Gid,
    /// The GID at which the path ends.
    #[serde(serialize_with = "serialize_gid")]
    dgid: Gid,
    /// The P_Key of the partition.
    #[serde(serialize_with = "serialize_pkey")]
    pkey: Option<u16>,
    /// The traffic class, 8 bits.
    traffic_class: Option<u8>,
    /// The destination LID: the peer's or the router's.
    dlid: Option<u16>,
    /// The source LID.
    slid: Option<u16>,
    /// The service level, 4 bits.
    sl: Option<u8>,
    /// The path MTU in bytes.
    mtu: Option<u16>,
    /// The rate in Gb/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f32>,
    /// The hop limit; 0 or 1 within the subnet.
    hop_limit: Option<u8>,
    /// The flow label, 20 bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    flow_label: Option<u32>,
    /// The service ID that a program's query had, in hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    service_id: Option<String>,
    /// The QoS class that a program's query had.
    #[serde(skip_serializing_if = "Option::is_none")]
    qos_class: Option<u16>,
    /// The time since the path was queried, in seconds.
    age: Option<u32>,
    /// The time for which the path is used, in seconds.
    lifetime: Option<u32>,
    /// The name of the RDMA device at which the path begins.
    device: Option<String>,
    /// The number of the device's port.
    port: Option<u32>,
}

impl Path {
    /// Reads the attributes of a path.
    pub fn read(attributes: Attributes<'_>) -> Result<Path> {
        Ok(Path {
            sgid: attributes.gid(attribute::SGID)?,
            dgid: attributes.gid(attribute::DGID)?,
            pkey: attributes.u16(attribute::PKEY)?,
            traffic_class: attributes.u8(attribute::TRAFFIC_CLASS)?,
            dlid: attributes.u16(attribute::DLID)?,
            slid: attributes.u16(attribute::SLID)?,
            sl: attributes.u8(attribute::SL)?,
            mtu: attributes.u16(attribute::MTU)?,
            rate: attributes.u8(attribute::RATE)?.and_then(gigabits),
            hop_limit: attributes.u8(attribute::HOP_LIMIT)?,
            flow_label: attributes.u32(attribute::FLOW_LABEL)?,
            service_id: attributes
                .u64(attribute::SERVICE_ID)?
                .map(|id| format!("{id:#018x}")),
            qos_class: attributes.u16(attribute::QOS_CLASS)?,
            age: attributes.u32(attribute::AGE)?,
            lifetime: attributes.u32(attribute::LIFETIME)?,
            device: attributes.text(attribute::DEVICE)?,
            port: attributes.u32(attribute::PORT)?,
        })
    }
}

/// Converts an encoded rate (PathRecord, IBTA 15.2.5.16) to Gb/s.
fn gigabits(code: u8) -> Option<f32> {
    Some(match code {
        2 => 2.5,
        3 => 10.0,
        4 => 30.0,
        5 => 5.0,
        6 => 20.0,
        7 => 40.0,
        8 => 60.0,
        9 => 80.0,
        10 => 120.0,
        11 => 14.0,
        12 => 56.0,
        13 => 112.0,
        14 => 168.0,
        15 => 25.0,
        16 => 100.0,
        17 => 200.0,
        18 => 300.0,
        19 => 28.0,
        20 => 50.0,
        21 => 400.0,
        22 => 600.0,
        23 => 800.0,
        24 => 1200.0,
        _ => return None,
    })
}

/// Writes a name and a value, if there is one.
fn write_field<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    name: &str,
    value: Option<T>,
) -> fmt::Result {
    match value {
        Some(value) => write!(f, " {name} {value}"),
        None => Ok(()),
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} from {}", ShortGid(self.dgid), ShortGid(self.sgid))?;
        if let Some(pkey) = self.pkey {
            write!(f, " pkey {pkey:#06x}")?;
        }
        write_field(f, "tclass", self.traffic_class)?;
        write_field(f, "dlid", self.dlid)?;
        write_field(f, "slid", self.slid)?;
        write_field(f, "sl", self.sl)?;
        write_field(f, "mtu", self.mtu)?;
        if let Some(rate) = self.rate {
            write!(f, " rate {rate}Gb/s")?;
        }
        write_field(f, "hoplimit", self.hop_limit)?;
        write_field(f, "flowlabel", self.flow_label.filter(|label| *label != 0))?;
        write_field(f, "service", self.service_id.as_deref())?;
        write_field(f, "qos", self.qos_class)?;
        write_field(f, "dev", self.device.as_deref())?;
        write_field(f, "port", self.port)?;
        write_field(f, "age", self.age)?;
        write_field(f, "lifetime", self.lifetime)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::Request;

    #[test]
    fn all_attributes_are_shown() {
        let gid = |last: u8| [&[0xfe, 0xc0][..], &[0; 13], &[last]].concat();
        let bytes = Request::new()
            .bytes(attribute::SGID, gid(1))
            .bytes(attribute::DGID, gid(2))
            .u16(attribute::PKEY, 0xffff)
            .u8(attribute::TRAFFIC_CLASS, 0)
            .u16(attribute::DLID, 5)
            .u16(attribute::SLID, 3)
            .u8(attribute::SL, 0)
            .u16(attribute::MTU, 2048)
            .u8(attribute::RATE, 3)
            .u8(attribute::HOP_LIMIT, 255)
            .u32(attribute::FLOW_LABEL, 0)
            .bytes(attribute::SERVICE_ID, 0x0106_1234u64.to_ne_bytes().to_vec())
            .u16(attribute::QOS_CLASS, 2)
            .u32(attribute::AGE, 7)
            .u32(attribute::LIFETIME, 900)
            .bytes(attribute::DEVICE, b"h1\0".to_vec())
            .u32(attribute::PORT, 1)
            .emitted();
        let path = Path::read(Attributes::new(&bytes)).unwrap();
        assert_eq!(
            path.to_string(),
            "fec0::2 from fec0::1 pkey 0xffff tclass 0 dlid 5 slid 3 sl 0 mtu 2048 rate 10Gb/s \
             hoplimit 255 service 0x0000000001061234 qos 2 dev h1 port 1 age 7 lifetime 900"
        );
        let json: serde_json::Value = serde_json::to_value(&path).unwrap();
        assert_eq!(json["pkey"], "0xffff");
        assert_eq!(json["rate"], 10.0);
        assert_eq!(json["hop_limit"], 255);
        assert_eq!(json["service_id"], "0x0000000001061234");
        assert_eq!(json["qos_class"], 2);
        assert_eq!(json["device"], "h1");
    }

    #[test]
    fn a_path_without_ends_is_refused() {
        assert!(Path::read(Attributes::new(&[])).is_err());
    }
}
