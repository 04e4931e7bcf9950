// SPDX-License-Identifier: GPL-2.0-only

//! The files of a host channel adapter: what hardware a device of its name is to stand for.
//!
//! They are read when the device is made: while it is there they cannot be changed. Those of
//! failures can be written only then.

use core::{
    fmt::Write as _,
    ops::RangeInclusive, //
};

use kernel::{
    configfs,
    page::PAGE_SIZE,
    prelude::*,
    str::CString, //
};

use super::{
    element::Element,
    text, //
};
use crate::hca::{
    faults::MAX_REFUSE_EVERY,
    limits,
    options::{
        Options,
        ALIASES,
        MAX_COMMAND_MS,
        MAX_INLINE,
        MIN_WR, //
    },
    peer,
    Hca, //
};

/// The longest name of a net device.
const NAME: usize = 15;

impl Element {
    /// Reads a number that is one of `range`.
    fn number_in(&self, page: &[u8], file: &str, range: RangeInclusive<u32>) -> Result<u32> {
        let number = u32::try_from(self.number(page, file)?).ok();
        number
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                let (least, most) = (range.start(), range.end());
                self.refuse(format_args!("{file} takes {least} to {most}"))
            })
    }

    /// Runs `change` on the device of that name, for it to fail.
    fn change_device(&self, change: impl FnOnce(&Hca)) -> Result {
        peer::with(&self.name, change).ok_or_else(|| {
            self.fail(
                ENODEV,
                format_args!("no device was made of it yet (rdma link add), that could fail"),
            )
        })
    }

    /// Changes the options, unless the device is there.
    fn choose(&self, file: &str, change: impl FnOnce(&mut Options)) -> Result {
        self.options()?.set(change).map_err(|error| {
            self.fail(
                error,
                format_args!(
                    "a device was made of it: delete that (rdma link delete) before you change \
                     `{file}`"
                ),
            )
        })
    }
}

#[vtable]
impl configfs::AttributeOperations<7> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        match &options.port2 {
            Some(name) => {
                let name = name.to_str().map_err(|_| EINVAL)?;
                text::write(page, format_args!("{name}\n"))
            }
            None => text::write(page, format_args!("\n")),
        }
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let name = element.text(page, "port2")?;
        // Whether it is there shows when the device is made: it is looked for where that is.
        let is_name = name.len() <= NAME
            && !name.contains(|letter: char| letter.is_whitespace() || "/:\0".contains(letter));
        if !is_name {
            return Err(element.refuse(format_args!(
                "port2 takes the name of one net device, of {NAME} letters at most"
            )));
        }
        let port2 = match name {
            "" => None,
            name => Some(CString::try_from_fmt(fmt!("{name}"))?),
        };
        element.choose("port2", |options| options.port2 = port2)
    }
}

#[vtable]
impl configfs::AttributeOperations<8> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", 128 << options.mtu))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = match element.number(page, "mtu")? {
            256 => 1,
            512 => 2,
            1024 => 3,
            2048 => 4,
            4096 => 5,
            _ => return Err(element.refuse(format_args!("mtu takes 256, 512, 1024, 2048 or 4096"))),
        };
        element.choose("mtu", |options| options.mtu = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<9> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", options.max_inline))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = element.number_in(page, "max_inline", 0..=MAX_INLINE)?;
        element.choose("max_inline", |options| options.max_inline = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<10> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Element::show_flag(page, element.options()?.get()?.checksum)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "checksum")?;
        element.choose("checksum", |options| options.checksum = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<11> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Element::show_flag(page, element.options()?.get()?.tso)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "tso")?;
        element.choose("tso", |options| options.tso = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<12> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        let mut page = text::Page::new(page);
        let mut separator = "";
        for guid in options.alias_guids.iter().filter(|guid| **guid != 0) {
            write!(page, "{separator}{guid:#018x}").map_err(|_| EOVERFLOW)?;
            separator = " ";
        }
        page.write_str("\n").map_err(|_| EOVERFLOW)?;
        Ok(page.len())
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let mut guids = [0; ALIASES];
        let words = element
            .text(page, "alias_guids")?
            .split(|letter: char| letter.is_ascii_whitespace() || letter == ',')
            .filter(|word| !word.is_empty());
        for (place, word) in words.enumerate() {
            let guid = text::number(word).unwrap_or(0);
            if guid == 0 || guids.contains(&guid) {
                return Err(element.refuse(format_args!(
                    "alias_guids: '{word}': each is a number above 0, with 0x before it if it is \
                     hexadecimal, and another one"
                )));
            }
            *guids.get_mut(place).ok_or_else(|| {
                element.refuse(format_args!("alias_guids takes {ALIASES} GUIDs, at most"))
            })? = guid;
        }
        element.choose("alias_guids", |options| options.alias_guids = guids)
    }
}

#[vtable]
impl configfs::AttributeOperations<13> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        let name = options.peer.as_deref().unwrap_or(c"");
        let name = name.to_str().map_err(|_| EINVAL)?;
        text::write(page, format_args!("{name}\n"))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let name = element.text(page, "peer")?;
        if name.contains(char::is_whitespace) || name.as_bytes() == element.name.to_bytes() {
            return Err(element.refuse(format_args!(
                "peer takes the name of one other host channel adapter"
            )));
        }
        let peer = match name {
            "" => None,
            name => Some(CString::try_from_fmt(fmt!("{name}"))?),
        };
        element.choose("peer", |options| options.peer = peer)
    }
}

#[vtable]
impl configfs::AttributeOperations<14> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.affinity)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let affinity = element.flag(page, "affinity")?;
        element.choose("affinity", |options| options.affinity = affinity)
    }
}

#[vtable]
impl configfs::AttributeOperations<15> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.dma)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let dma = element.flag(page, "dma")?;
        element.choose("dma", |options| options.dma = dma)
    }
}

#[vtable]
impl configfs::AttributeOperations<16> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", options.max_sge))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = element.number_in(page, "max_sge", 1..=limits::SEGMENTS)?;
        element.choose("max_sge", |options| options.max_sge = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<17> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", options.max_wr))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = element.number_in(page, "max_wr", MIN_WR..=limits::WORK_REQUESTS)?;
        element.choose("max_wr", |options| options.max_wr = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<18> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.srq)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let srq = element.flag(page, "srq")?;
        element.choose("srq", |options| options.srq = srq)
    }
}

#[vtable]
impl configfs::AttributeOperations<19> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", options.command_ms))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = element.number_in(page, "command_ms", 0..=MAX_COMMAND_MS)?;
        element.choose("command_ms", |options| options.command_ms = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<21> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.omni_path)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let omni_path = element.flag(page, "omni_path")?;
        element.choose("omni_path", |options| options.omni_path = omni_path)
    }
}

#[vtable]
impl configfs::AttributeOperations<20> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let failed = peer::with(&element.name, |hca| hca.has_failed()).unwrap_or(false);
        Self::show_flag(page, failed)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let failed = element.flag(page, "failed")?;
        element.change_device(|hca| hca.set_failed(failed))
    }
}

#[vtable]
impl configfs::AttributeOperations<22> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let every = peer::with(&element.name, |hca| hca.faults.refuse_every()).unwrap_or(0);
        text::write(page, format_args!("{every}\n"))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let every = element.number_in(page, "refuse_every", 0..=MAX_REFUSE_EVERY)?;
        element.change_device(|hca| hca.faults.set_refuse_every(every))
    }
}

#[vtable]
impl configfs::AttributeOperations<23> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let fail = peer::with(&element.name, |hca| hca.faults.resets_fail()).unwrap_or(false);
        Self::show_flag(page, fail)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let fail = element.flag(page, "resets_fail")?;
        element.change_device(|hca| hca.faults.set_resets_fail(fail))
    }
}

#[vtable]
impl configfs::AttributeOperations<30> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let fail = peer::with(&element.name, |hca| hca.faults.attaches_fail()).unwrap_or(false);
        Self::show_flag(page, fail)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let fail = element.flag(page, "attaches_fail")?;
        element.change_device(|hca| hca.faults.set_attaches_fail(fail))
    }
}

#[vtable]
impl configfs::AttributeOperations<31> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let fail = peer::with(&element.name, |hca| hca.faults.detaches_fail()).unwrap_or(false);
        Self::show_flag(page, fail)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let fail = element.flag(page, "detaches_fail")?;
        element.change_device(|hca| hca.faults.set_detaches_fail(fail))
    }
}

#[vtable]
impl configfs::AttributeOperations<24> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.multicast)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "multicast")?;
        element.choose("multicast", |options| options.multicast = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<25> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.sleeping_ah)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "sleeping_ah")?;
        element.choose("sleeping_ah", |options| options.sleeping_ah = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<26> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.interrupts)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "interrupts")?;
        element.choose("interrupts", |options| options.interrupts = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<27> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.overtaking)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "overtaking")?;
        element.choose("overtaking", |options| options.overtaking = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<28> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        Self::show_flag(page, element.options()?.get()?.own_multicast)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let flag = element.flag(page, "own_multicast")?;
        element.choose("own_multicast", |options| options.own_multicast = flag)
    }
}

#[vtable]
impl configfs::AttributeOperations<29> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let mut page = text::Page::new(page);
        let written = peer::with(&element.name, |hca| {
            let mut counts = hca.vectors.counts(kernel::cpu::nr_cpu_ids());
            counts.try_for_each(|count| writeln!(page, "{count}").map_err(|_| EOVERFLOW))
        });
        written.unwrap_or(Ok(()))?;
        Ok(page.len())
    }
}
