// SPDX-License-Identifier: GPL-2.0-only

//! The files that switches and routers have in common: `ports`, `enable`, `guid`, `drops`.

use core::fmt::Write as _;

use kernel::{
    configfs,
    page::PAGE_SIZE,
    prelude::*,
    str::CString, //
};

use super::{
    element::{
        Element,
        Kind, //
    },
    text, //
};
use crate::{
    fabric::{
        router::{
            Neighbour,
            Route, //
        },
        switch::MAX_PORTS, //
    },
    net::cable::NetDevice,
    router,
    switch, //
};

/// The node that is switched on, if there is one.
pub(super) enum On {
    Nothing,
    Switch(switch::On),
    Router(router::On),
}

/// The settings of a switch or a router, as its files show them.
pub(super) struct Settings {
    pub(super) ports: KVec<CString>,
    guid: Option<u64>,
    pub(super) algorithmic: bool,
    pub(super) routes: KVec<Route>,
    pub(super) neighbours: KVec<Neighbour>,
    pub(super) on: On,
}

impl Settings {
    /// Creates the settings of a new folder.
    pub(super) fn new() -> Self {
        Self {
            ports: KVec::new(),
            guid: None,
            algorithmic: true,
            routes: KVec::new(),
            neighbours: KVec::new(),
            on: On::Nothing,
        }
    }
}

impl Element {
    /// The net devices of names, if they can be ports' cables. The folder itself is off.
    fn cables<'a>(&self, names: impl Iterator<Item = &'a CStr>) -> Result<KVec<NetDevice>> {
        let mut devices: KVec<NetDevice> = KVec::new();
        for name in names {
            let shown = name.to_str().unwrap_or("?");
            let device = NetDevice::find(name).map_err(|_| {
                self.refuse(format_args!(
                    "there is no net device {shown} here: name one that `ip link` shows"
                ))
            })?;
            if devices.iter().any(|other| *other == device) {
                return Err(self.refuse(format_args!(
                    "net device {shown} is named twice: it can be the cable of one port"
                )));
            }
            device.check().map_err(|unfit| {
                let why = unfit.why();
                self.fail(unfit.error(), format_args!("net device {shown} {why}"))
            })?;
            devices.push(device, GFP_KERNEL)?;
        }
        if devices.len() > usize::from(MAX_PORTS) {
            return Err(self.refuse(format_args!(
                "{} net devices are too many: there are {MAX_PORTS} ports, at most",
                devices.len()
            )));
        }
        Ok(devices)
    }

    fn enable(&self, settings: &mut Settings) -> Result {
        if !matches!(settings.on, On::Nothing) {
            return Ok(());
        }
        let devices = self.cables(settings.ports.iter().map(|name| &**name))?;
        if devices.is_empty() {
            return Err(self.refuse(format_args!(
                "it has no ports: write the names of its net devices to `ports`"
            )));
        }
        let name = self.name.to_bytes();
        settings.on = match self.kind {
            Kind::Switch => switch::start(name, settings.guid, &devices).map(On::Switch),
            _ => {
                self.check_routes(&settings.routes, devices.len())?;
                router::start(
                    name,
                    settings.guid,
                    &devices,
                    self.routing_tables(settings)?,
                )
                .map(On::Router)
            }
        }
        .map_err(|error| self.fail(error, format_args!("it cannot be enabled: {error:?}")))?;
        Ok(())
    }

    /// Refuses what cannot be changed while it runs.
    pub(super) fn need_off(&self, settings: &Settings, file: &str) -> Result {
        if matches!(settings.on, On::Nothing) {
            return Ok(());
        }
        Err(self.fail(
            EBUSY,
            format_args!("it is enabled: write 0 to `enable` before you change `{file}`"),
        ))
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
        let mut ports: KVec<CString> = KVec::new();
        for name in element.text(page, "ports")?.split_ascii_whitespace() {
            let name = CString::try_from_fmt(fmt!("{name}")).map_err(|_| {
                element.refuse(format_args!("ports takes names, without a zero byte"))
            })?;
            ports.push(name, GFP_KERNEL)?;
        }
        let mut settings = element.settings.lock();
        element.need_off(&settings, "ports")?;
        element.cables(ports.iter().map(|name| &**name))?;
        settings.ports = ports;
        Ok(())
    }
}

#[vtable]
impl configfs::AttributeOperations<1> for Element {
    type Data = Element;

    fn show(element: &Element, page: &mut [u8; PAGE_SIZE]) -> Result<usize> {
        let on = !matches!(element.settings.lock().on, On::Nothing);
        Element::show_flag(page, on)
    }

    fn store(element: &Element, page: &[u8]) -> Result {
        let wanted = element.flag(page, "enable")?;
        let mut settings = element.settings.lock();
        if wanted {
            return element.enable(&mut settings);
        }
        settings.on = On::Nothing;
        Ok(())
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
        element.need_off(&settings, "guid")?;
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
            // Lines that do not fit are left out.
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
