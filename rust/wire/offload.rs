// SPDX-License-Identifier: GPL-2.0-only

//! The work that better adapters do for IP datagrams in messages of IP over InfiniBand (RFC
//! 4391), and drivers for other adapters: computing and checking checksums, and cutting long TCP
//! segments.
//!
//! A `sum` that is passed in is the ones' complement sum (RFC 1071) of bytes as 16-bit numbers in
//! network order, an odd last byte filled up with a zero: [`sum`], or one that uses what the
//! processor has for it.

use core::ops::Range;

/// The bytes before a datagram: its Ethernet type, and two that are reserved (RFC 4391 §6).
const ENCAPSULATION: usize = super::encap::LEN;

/// Ethernet types of IP datagrams.
const TYPE_IPV4: u16 = 0x0800;
const TYPE_IPV6: u16 = 0x86dd;

/// Protocol numbers in IP headers.
const TCP: u8 = 6;
const UDP: u8 = 17;

/// The shortest headers (RFC 791, RFC 8200, RFC 9293).
const IPV4_HEADER: usize = 20;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;

/// The bits at the 7th byte of an IPv4 header that only a fragment has: more to come, an offset.
const FRAGMENT: u16 = 0x3fff;

/// Flags of TCP that the last segment of several alone has: FIN and PSH.
const LAST_ONLY: u8 = 0x01 | 0x08;

/// The flag of TCP that the first segment alone has: CWR.
const FIRST_ONLY: u8 = 0x80;

/// The longest header of a segment that can be cut: that of an IPv4 header and a TCP header with
/// all options that they can have, and what is before it.
pub const MAX_HEADER: usize = ENCAPSULATION + 60 + 60;

/// The ones' complement sum of bytes.
pub fn sum(bytes: &[u8]) -> u16 {
    let mut words = bytes.chunks_exact(4);
    let whole: u64 = words
        .by_ref()
        .map(|word| match word {
            [a, b, c, d] => u64::from(u32::from_be_bytes([*a, *b, *c, *d])),
            _ => 0,
        })
        .sum();
    let mut last = [0; 4];
    for (to, from) in last.iter_mut().zip(words.remainder()) {
        *to = *from;
    }
    fold(whole + u64::from(u32::from_be_bytes(last)))
}

/// The ones' complement sum of the four words of a number. No sum of a packet's bytes overflows it.
const fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    add((sum >> 16) as u16, sum as u16)
}

/// Adds in ones' complement.
pub(super) const fn add(one: u16, other: u16) -> u16 {
    let (sum, carried) = one.overflowing_add(other);
    sum + carried as u16
}

fn byte(bytes: &[u8], at: usize) -> Option<u8> {
    bytes.get(at).copied()
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn put<const N: usize>(bytes: &mut [u8], at: usize, value: [u8; N]) {
    if let Some(place) = bytes.get_mut(at..).and_then(<[u8]>::first_chunk_mut) {
        *place = value;
    }
}

/// The fields of an IP header, by their offsets in the message.
struct Header {
    /// The IPv4 header's own checksum; `None` for IPv6.
    checksum: Option<usize>,
    /// The source and destination addresses.
    addresses: Range<usize>,
    /// The beginning of the protocol's header.
    transport: usize,
    /// The end of the datagram, by its own length field.
    end: usize,
    /// The protocol, unless it is a fragment of a datagram.
    protocol: Option<u8>,
}

impl Header {
    /// Reads the header; `None` if it is none, or not whole.
    fn read(message: &[u8]) -> Option<Header> {
        const IP: usize = ENCAPSULATION;
        let first = byte(message, IP)?;
        let header = match (word(message, 0)?, first >> 4) {
            (TYPE_IPV4, 4) => {
                let length = usize::from(first & 0xf) * 4;
                if length < IPV4_HEADER {
                    return None;
                }
                let whole = word(message, IP + 6)? & FRAGMENT == 0;
                let protocol = byte(message, IP + 9)?;
                Header {
                    checksum: Some(IP + 10),
                    addresses: IP + 12..IP + 20,
                    transport: IP + length,
                    end: IP + usize::from(word(message, IP + 2)?),
                    protocol: whole.then_some(protocol),
                }
            }
            (TYPE_IPV6, 6) => Header {
                checksum: None,
                addresses: IP + 8..IP + 40,
                transport: IP + IPV6_HEADER,
                end: IP + IPV6_HEADER + usize::from(word(message, IP + 4)?),
                protocol: Some(byte(message, IP + 6)?),
            },
            _ => return None,
        };
        (header.transport <= message.len()).then_some(header)
    }

    /// Reads the header of a datagram that is all there.
    fn whole(message: &[u8]) -> Option<Header> {
        let header = Self::read(message)?;
        (header.transport <= header.end && header.end <= message.len()).then_some(header)
    }

    /// Returns the offset of the protocol's checksum, if that is TCP or UDP and holds one.
    fn transport_checksum(&self) -> Option<usize> {
        let at = match self.protocol? {
            TCP => self.transport + 16,
            UDP => self.transport + 6,
            _ => return None,
        };
        (at + 2 <= self.end).then_some(at)
    }

    /// The sum of the IP header, which has its checksum in it.
    fn header_sum(&self, message: &[u8], sum: impl Fn(&[u8]) -> u16) -> Option<u16> {
        message.get(ENCAPSULATION..self.transport).map(sum)
    }

    /// The sum of the protocol's part with its pseudo header (RFC 9293 §3.1, RFC 8200 §8.1).
    fn transport_sum(&self, message: &[u8], sum: impl Fn(&[u8]) -> u16) -> Option<u16> {
        // At most 64 KiB, by the length fields.
        let length = (self.end - self.transport) as u16;
        let pseudo = add(length, self.protocol?.into());
        let addresses = message.get(self.addresses.clone()).map(&sum)?;
        let part = message.get(self.transport..self.end).map(&sum)?;
        Some(add(add(pseudo, addresses), part))
    }
}

/// Writes the checksums of a message's IPv4 header and of the TCP or UDP in it. Any other message
/// stays as it is.
pub fn fill(message: &mut [u8], sum: impl Fn(&[u8]) -> u16 + Copy) {
    let Some(header) = Header::whole(message) else {
        return;
    };
    if let Some(at) = header.checksum {
        put(message, at, [0; 2]);
        if let Some(total) = header.header_sum(message, sum) {
            put(message, at, (!total).to_be_bytes());
        }
    }
    if let Some(at) = header.transport_checksum() {
        put(message, at, [0; 2]);
        if let Some(total) = header.transport_sum(message, sum) {
            // Zero would say that there is none (RFC 768).
            let checksum = if total == u16::MAX { total } else { !total };
            put(message, at, checksum.to_be_bytes());
        }
    }
}

/// Writes the checksums into the headers of a datagram; its data, of the sum `data`, is elsewhere.
/// Headers that are no such stay as they are.
pub fn fill_headers(headers: &mut [u8], data: u16) {
    let Some(ip) = Header::read(headers) else {
        return;
    };
    if let Some(at) = ip.checksum {
        put(headers, at, [0; 2]);
        if let Some(total) = ip.header_sum(headers, sum) {
            put(headers, at, (!total).to_be_bytes());
        }
    }
    if let Some(at) = ip.transport_checksum() {
        put(headers, at, [0; 2]);
        let parts = [ip.addresses.clone(), ip.transport..headers.len()];
        let [Some(addresses), Some(transport)] = parts.map(|part| headers.get(part).map(sum))
        else {
            return;
        };
        let length = ip.end.saturating_sub(ip.transport) as u16;
        let pseudo = add(length, ip.protocol.unwrap_or(0).into());
        let total = add(add(pseudo, addresses), add(transport, data));
        // Zero would say that there is none (RFC 768).
        let checksum = if total == u16::MAX { total } else { !total };
        put(headers, at, checksum.to_be_bytes());
    }
}

/// Returns whether a message is TCP or UDP in IP, not in fragments, and all its checksums are
/// there and right.
pub fn is_right(message: &[u8], sum: impl Fn(&[u8]) -> u16 + Copy) -> bool {
    let judge = || {
        let header = Header::whole(message)?;
        let at = header.transport_checksum()?;
        let right = (header.checksum.is_none() || header.header_sum(message, sum)? == u16::MAX)
            && (header.protocol? == TCP || word(message, at)? != 0)
            && header.transport_sum(message, sum)? == u16::MAX;
        Some(right)
    };
    judge().unwrap_or(false)
}

/// A long TCP segment that is sent as several.
#[derive(Clone, Copy, Debug)]
pub struct Cut<'a> {
    /// The headers of the whole, from the Ethernet type to the end of TCP's.
    header: &'a [u8],
    /// Bytes of data of each segment but the last.
    size: usize,
    /// Bytes of data of all segments together.
    length: usize,
    /// The number of segments that these make.
    count: usize,
}

impl<'a> Cut<'a> {
    /// Cuts `length` bytes of data, which come after these headers, into segments of `size`
    /// bytes. `None` if the headers are not those of TCP in IP and nothing else, or a segment
    /// could not be as long.
    pub fn new(header: &'a [u8], size: usize, length: usize) -> Option<Cut<'a>> {
        let ip = Header::read(header)?;
        let data_offset = usize::from(byte(header, ip.transport + 12)? >> 4) * 4;
        let fits = ip.protocol == Some(TCP)
            && data_offset >= TCP_HEADER
            && header.len() == ip.transport + data_offset
            && header.len() <= MAX_HEADER
            && header.len() + size <= usize::from(u16::MAX);
        let whole = length.checked_div(size)?;
        let rest = usize::from(whole * size < length || whole == 0);
        fits.then_some(Cut {
            header,
            size,
            length,
            count: whole + rest,
        })
    }

    /// The headers of the whole.
    pub const fn header(&self) -> &'a [u8] {
        self.header
    }

    /// Bytes of data of each segment but the last.
    pub const fn size(&self) -> usize {
        self.size
    }

    /// The number of segments: one, at least.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// Returns the range of the data that is in the segment of that number.
    pub fn data(&self, number: usize) -> Range<usize> {
        let from = number.saturating_mul(self.size).min(self.length);
        from..from.saturating_add(self.size).min(self.length)
    }

    /// Writes the headers of the segment of that number, without checksums; those of `room` that
    /// they take.
    pub fn write_header<'b>(&self, number: usize, room: &'b mut [u8; MAX_HEADER]) -> &'b [u8] {
        // No longer, as was looked at.
        let Some(header) = room.get_mut(..self.header.len()) else {
            return &[];
        };
        header.copy_from_slice(self.header);
        if let Some(ip) = Header::read(header) {
            self.adapt(number, &ip, header);
        }
        header
    }

    /// Makes the headers those of a segment.
    fn adapt(&self, number: usize, ip: &Header, header: &mut [u8]) -> Option<()> {
        const IP: usize = ENCAPSULATION;
        let data = self.data(number);
        let rest = (header.len() - ip.transport + data.len()) as u16;
        if ip.checksum.is_some() {
            let total = rest + (ip.transport - IP) as u16;
            put(header, IP + 2, total.to_be_bytes());
            let identification = word(header, IP + 4)?.wrapping_add(number as u16);
            put(header, IP + 4, identification.to_be_bytes());
        } else {
            put(header, IP + 4, rest.to_be_bytes());
        }
        let tcp = ip.transport;
        let sequence = u32::from_be_bytes(*header.get(tcp + 4..)?.first_chunk()?);
        let sequence = sequence.wrapping_add(data.start as u32);
        put(header, tcp + 4, sequence.to_be_bytes());
        let flags = header.get_mut(tcp + 13)?;
        if number > 0 {
            *flags &= !FIRST_ONLY;
        }
        if number + 1 < self.count {
            *flags &= !LAST_ONLY;
        }
        Some(())
    }
}
