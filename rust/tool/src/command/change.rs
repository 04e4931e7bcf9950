// SPDX-License-Identifier: GPL-2.0-only

//! The commands `oxib acm add`, `replace`, `del` and `flush`.

use crate::{
    cli,
    command::report_note,
    error::Result,
    filter::Filter,
    netlink::{
        attribute::Request,
        connection::Connection,
        family::{
            self,
            entry as attribute,
            operation, //
        },
    },
    words::{
        self,
        set_once,
        Words, //
    },
};

/// Parses the words of an entry into the attributes of a request.
fn entry_request(entry: &cli::Entry) -> Result<Request> {
    let (mut qpn, mut pkey, mut lifetime) = (None, None, None);
    let mut words = Words::new(&entry.words);
    while let Some(word) = words.next_word() {
        match word {
            "qpn" => set_once(&mut qpn, word, words::number(word, words.value(word)?)?)?,
            "pkey" => set_once(
                &mut pkey,
                word,
                words::short_number(word, words.value(word)?)?,
            )?,
            "lifetime" => set_once(
                &mut lifetime,
                word,
                words::number(word, words.value(word)?)?,
            )?,
            _ => {
                return Err(words::unknown(
                    word,
                    "qpn NUMBER, pkey P_KEY and lifetime SECONDS",
                ))
            }
        }
    }
    let mut request = Request::new()
        .address(attribute::ADDRESS, words::address(&entry.address)?)
        .gid(attribute::GID, words::gid(&entry.gid)?);
    if let Some(qpn) = qpn {
        request = request.u32(attribute::QPN, qpn);
    }
    if let Some(pkey) = pkey {
        request = request.u16(attribute::PKEY, pkey);
    }
    if let Some(lifetime) = lifetime {
        request = request.u32(attribute::LIFETIME, lifetime);
    }
    Ok(request)
}

/// Adds or replaces an entry, as `operation` says.
pub fn add_or_replace(operation: u8, entry: &cli::Entry) -> Result {
    let request = entry_request(entry)?;
    let answer = Connection::open()?.request(operation, &request, family::ENTRY_NAMES)?;
    report_note(&answer);
    Ok(())
}

/// Deletes the entry of an address.
pub fn del(address: &str) -> Result {
    let request = Request::new().address(attribute::ADDRESS, words::address(address)?);
    let answer =
        Connection::open()?.request(operation::ENTRY_DEL, &request, family::ENTRY_NAMES)?;
    report_note(&answer);
    Ok(())
}

/// Deletes the entries that a filter matches.
pub fn flush(words: &[String]) -> Result {
    let filter = Filter::parse(words)?;
    let answer = Connection::open()?.request(
        operation::ENTRY_FLUSH,
        &filter.request(),
        family::ENTRY_NAMES,
    )?;
    report_note(&answer);
    Ok(())
}
