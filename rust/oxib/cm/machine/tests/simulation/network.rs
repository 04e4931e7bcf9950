// SPDX-License-Identifier: GPL-2.0-only

//! The network: messages under way.

use std::collections::BTreeMap;

use oxib_cm_machine::claim::Adapter;
use oxib_cm_machine::input::{
    Incoming,
    Req, //
};
use oxib_cm_machine::source::Source;
use oxib_cm_machine::time::Time;
use oxib_wire::cm::comm_id::CommId;
use oxib_wire::cm::kind::Kind;

use crate::random::Random;

/// An end of the conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Side {
    Active,
    Passive,
}

impl Side {
    pub fn other(self) -> Side {
        match self {
            Side::Active => Side::Passive,
            Side::Passive => Side::Active,
        }
    }
}

/// The sender of a message.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Origin {
    /// The address of the other end.
    Peer,
    /// The address of a node that has no part in the conversation.
    Stranger,
}

/// The contents of a message.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Body {
    Req(Req),
    Answer(Incoming),
}

/// A message on its way.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Packet {
    pub to: Side,
    pub from: Origin,
    /// The channel adapter that it names: any node may write anything there.
    pub adapter: Origin,
    pub kind: Kind,
    /// The receiver's name for the connection, as far as the sender knows it.
    pub receiver: CommId,
    pub body: Body,
}

impl Packet {
    /// The channel adapter that the sender claims to be, where it really is.
    pub fn sent_by(&self) -> Adapter {
        Adapter {
            guid: self.adapter as u64,
            source: Source::new(self.from as u32, 0, None),
        }
    }

    /// The sender's name for the connection.
    pub fn sender(&self) -> CommId {
        match self.body {
            Body::Req(req) => req.sender,
            Body::Answer(Incoming::Rep(rep)) => rep.sender,
            Body::Answer(
                Incoming::Mra { sender, .. }
                | Incoming::Rej { sender, .. }
                | Incoming::Rtu { sender }
                | Incoming::Dreq { sender, .. }
                | Incoming::Drep { sender }
                | Incoming::Lap { sender, .. }
                | Incoming::Apr { sender },
            ) => sender,
            Body::Answer(_) => CommId::ZERO,
        }
    }
}

/// The network's treatment of messages.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Percentage of messages that are lost.
    pub loss: u64,
    /// Percentage of messages that arrive twice.
    pub duplicates: u64,
    /// Longest delay of a message, in milliseconds.
    pub longest_delay: u64,
    /// Most messages of a kind that are lost in a row, if there is such a limit.
    pub losses_in_a_row: Option<u32>,
}

#[derive(Debug)]
pub struct Network {
    weather: Weather,
    /// The messages in the order of their arrival.
    under_way: BTreeMap<(Time, u64), Packet>,
    /// Lost in a row, of a kind to a side.
    lost: BTreeMap<(Side, u16), u32>,
    sent: u64,
}

impl Network {
    pub fn new(weather: Weather) -> Network {
        Network {
            weather,
            under_way: BTreeMap::new(),
            lost: BTreeMap::new(),
            sent: 0,
        }
    }

    /// Sends a message, or not.
    pub fn send(&mut self, packet: Packet, now: Time, random: &mut Random) {
        let lost = self.lost.entry((packet.to, packet.kind.get())).or_insert(0);
        let limit = self.weather.losses_in_a_row;
        let may_be_lost = limit.is_none_or(|limit| *lost < limit);
        if may_be_lost && random.percent(self.weather.loss) {
            *lost += 1;
            return;
        }
        *lost = 0;
        let copies = if random.percent(self.weather.duplicates) {
            2
        } else {
            1
        };
        for _ in 0..copies {
            // In order of sending where the delays are equal.
            self.sent += 1;
            let delay = 1 + random.below(self.weather.longest_delay);
            self.under_way.insert((now.after(delay), self.sent), packet);
        }
    }

    /// The time at which the next message arrives.
    pub fn next(&self) -> Option<Time> {
        self.under_way.keys().next().map(|(time, _)| *time)
    }

    /// The message that arrives next.
    pub fn arrive(&mut self) -> Option<Packet> {
        self.under_way.pop_first().map(|(_, packet)| packet)
    }
}
