// SPDX-License-Identifier: GPL-2.0-only

//! A switch, a router or the options of a host channel adapter, as a folder.

use core::fmt::Write as _;

use kernel::{
    configfs::{
        self,
        configfs_attrs, //
    },
    new_mutex,
    page::PAGE_SIZE,
    prelude::*,
    str::CString,
    sync::Mutex, //
};

use super::{
    options,
    text, //
};
use crate::{
    hca::options::MAX_INLINE as MOST_INLINE,
    net::cable::NetDevice,
    router,
    switch,
    THIS_MODULE, //
};

/// What a folder stands for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Switch,
    Router,
    Hca,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Switch => "switch",
            Self::Router => "router",
            Self::Hca => "hca",
        }
    }
}

/// What is switched on.
enum On {
    Nothing,
    Switch(switch::On),
    Router(router::On),
}

/// What the files say.
struct Settings {
    ports: KVec<CString>,
    guid: Option<u64>,
    algorithmic: bool,
    on: On,
}

/// A folder.
#[pin_data]
pub(crate) struct Element {
    kind: Kind,
    name: CString,
    #[pin]
    settings: Mutex<Settings>,
    /// Of an adapter: what is taken when a device of its name is made.
    options: Option<options::Entry>,
}

impl Element {
    /// Makes a folder.
    pub(super) fn make(
        kind: Kind,
        name: &CStr,
    ) -> Result<impl PinInit<configfs::Group<Self>, Error>> {
        let switch = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                ports: 0,
                enable: 1,
                guid: 2,
                drops: 3,
            ],
        };
        let router = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                ports: 0,
                enable: 1,
                guid: 2,
                drops: 3,
                algorithmic: 4,
            ],
        };
        let hca = configfs_attrs! {
            container: configfs::Group<Element>,
            data: Element,
            attributes: [
                port2: 5,
                mtu: 6,
                max_inline: 7,
            ],
        };
        let (attributes, options) = match kind {
            Kind::Switch => (switch, None),
            Kind::Router => (router, None),
            Kind::Hca => (hca, Some(options::Entry::new(name)?)),
        };
        let own_name: CString = name.try_into()?;
        let element = try_pin_init!(Element {
            kind,
            name: own_name,
            settings <- new_mutex!(Settings {
                ports: KVec::new(),
                guid: None,
                algorithmic: true,
                on: On::Nothing,
            }),
            options,
        });
        Ok(configfs::Group::new(name.try_into()?, attributes, element))
    }

    /// Says in the log what was wrong, and makes the error of it.
    fn refuse(&self, what: core::fmt::Arguments<'_>) -> Error {
        pr_err!("{} {:?}: {}\n", self.kind.name(), &*self.name, what);
        EINVAL
    }

    /// Reads a number.
    fn number(&self, page: &[u8], file: &str) -> Result<u64> {
        let text = text::read(page)?;
        text::number(text).map_err(|_| {
            self.refuse(format_args!(
                "{file} takes a number, in decimal or with 0x before it"
            ))
        })
    }

    fn enable(&self, settings: &mut Settings) -> Result {
        if !matches!(settings.on, On::Nothing) {
            return Ok(());
        }
        let mut devices = KVec::with_capacity(settings.ports.len(), GFP_KERNEL)?;
        for name in &settings.ports {
            let device = NetDevice::find(name)
                .map_err(|_| self.refuse(format_args!("there is no net device {:?}", &**name)))?;
            devices.push(device, GFP_KERNEL)?;
        }
        if devices.is_empty() {
            return Err(self.refuse(format_args!(
                "it has no ports: write the names of its net devices to `ports`"
            )));
        }
        let name = self.name.to_bytes();
        let on = match self.kind {
            Kind::Switch => switch::start(name, settings.guid, &devices).map(On::Switch),
            _ => {
                let ways = router::Ways {
                    routes: KVec::new(),
                    neighbours: KVec::new(),
                    algorithmic: settings.algorithmic,
                };
                router::start(name, settings.guid, &devices, ways).map(On::Router)
            }
        };
        settings.on = on.inspect_err(|error| {
            if *error == EBUSY {
                pr_err!(
                    "{} {:?}: a net device is another port's cable, or part of a bridge or the like\n",
                    self.kind.name(),
                    &*self.name
                );
            }
        })?;
        Ok(())
    }

    /// Refuses what cannot be changed while it runs.
    fn need_off(&self, settings: &Settings) -> Result {
        if matches!(settings.on, On::Nothing) {
            Ok(())
        } else {
            pr_err!(
                "{} {:?}: it is switched on: write 0 to `enable` before changing it\n",
                self.kind.name(),
                &*self.name
            );
            Err(EBUSY)
        }
    }
}

#[vtable]
impl configfs::AttributeOperations<0> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let mut page = text::Page::new(page);
        let mut separator = "";
        for name in &element.settings.lock().ports {
            let name = name.to_str().map_err(|_| EINVAL)?;
            write!(page, "{separator}{name}").map_err(|_| EOVERFLOW)?;
            separator = " ";
        }
        page.write_str("\n").map_err(|_| EOVERFLOW)?;
        Ok(page.len())
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let mut ports = KVec::new();
        for name in text::read(page)?.split_ascii_whitespace() {
            ports.push(CString::try_from_fmt(fmt!("{name}"))?, GFP_KERNEL)?;
        }
        let mut settings = element.settings.lock();
        element.need_off(&settings)?;
        settings.ports = ports;
        Ok(())
    }
}

#[vtable]
impl configfs::AttributeOperations<1> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let on = !matches!(element.settings.lock().on, On::Nothing);
        text::write(page, format_args!("{}\n", u8::from(on)))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let wanted = text::read(page)?;
        let mut settings = element.settings.lock();
        match wanted {
            "1" => element.enable(&mut settings),
            "0" => {
                let on = core::mem::replace(&mut settings.on, On::Nothing);
                drop(on);
                Ok(())
            }
            _ => Err(element.refuse(format_args!("enable takes 0 or 1"))),
        }
    }
}

#[vtable]
impl configfs::AttributeOperations<2> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let guid = element.settings.lock().guid;
        text::write(page, format_args!("{:#018x}\n", guid.unwrap_or(0)))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let guid = element.number(page, "guid")?;
        let mut settings = element.settings.lock();
        element.need_off(&settings)?;
        settings.guid = (guid != 0).then_some(guid);
        Ok(())
    }
}

#[vtable]
impl configfs::AttributeOperations<3> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let mut page = text::Page::new(page);
        let mut tell = |name: &str, count: u64| {
            // What does not fit is not there.
            let _ = writeln!(page, "{name} {count}");
        };
        match &element.settings.lock().on {
            On::Nothing => (),
            On::Switch(switch) => switch.relay().drops(&mut tell),
            On::Router(router) => router.relay().drops(&mut tell),
        }
        Ok(page.len())
    }
}

#[vtable]
impl configfs::AttributeOperations<4> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let algorithmic = element.settings.lock().algorithmic;
        text::write(page, format_args!("{}\n", u8::from(algorithmic)))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let algorithmic = match text::read(page)? {
            "0" => false,
            "1" => true,
            _ => return Err(element.refuse(format_args!("algorithmic takes 0 or 1"))),
        };
        let mut settings = element.settings.lock();
        element.need_off(&settings)?;
        settings.algorithmic = algorithmic;
        Ok(())
    }
}

impl Element {
    /// The options of an adapter: only its files ask.
    fn options(&self) -> Result<&options::Entry> {
        self.options.as_ref().ok_or(EINVAL)
    }
}

#[vtable]
impl configfs::AttributeOperations<5> for Element {
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
        let name = text::read(page)?;
        let port2 = match name {
            "" => None,
            name => Some(CString::try_from_fmt(fmt!("{name}"))?),
        };
        element.options()?.set(|options| options.port2 = port2)
    }
}

#[vtable]
impl configfs::AttributeOperations<6> for Element {
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
        element.options()?.set(|options| options.mtu = number)
    }
}

#[vtable]
impl configfs::AttributeOperations<7> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let options = element.options()?.get()?;
        text::write(page, format_args!("{}\n", options.max_inline))
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let number = element.number(page, "max_inline")?;
        let number = u32::try_from(number)
            .ok()
            .filter(|number| *number <= MOST_INLINE)
            .ok_or_else(|| {
                let most = MOST_INLINE;
                element.refuse(format_args!("max_inline takes 0 to {most} bytes"))
            })?;
        element
            .options()?
            .set(|options| options.max_inline = number)
    }
}
