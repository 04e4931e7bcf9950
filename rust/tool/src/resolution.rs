// SPDX-License-Identifier: GPL-2.0-only

//! The resolution of an address: the steps that a packet to it waits for.

use crate::{
    entry::Entry,
    error::{
        Error,
        Result, //
    },
    netlink::{
        attribute::Attributes,
        family::{
            resolution as attribute,
            step as step_attribute, //
        },
    },
    path::Path,
};
use serde::Serialize;
use std::fmt;

/// The kind of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The GID is looked up in the address cache.
    Cache,
    /// The peer is asked for its queue pair number (SIDR).
    Sidr,
    /// The path is looked up in the path cache, or queried from the subnet administrator.
    Path,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The step succeeded.
    Ok,
    /// There is no such entry, service or path.
    None,
    /// No answer came in time.
    Timeout,
    /// The peer or the subnet administrator refused the request.
    Refused,
    /// The request could not be sent.
    Error,
    /// The step was not needed, or an earlier one failed.
    Skipped,
}

/// A step of a resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The kind of the step.
    pub step: Kind,
    /// The outcome of the step.
    pub result: Outcome,
    /// The duration of the step in microseconds.
    #[serde(rename = "time_us")]
    pub time: u32,
    /// More about the step, as text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The resolution of an address.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Resolution {
    /// The entry of the cache after the resolution.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// The steps in the order in which they were taken.
    pub steps: Vec<Step>,
    /// The path to the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
}

/// Converts the kernel's number of a kind of step.
fn parse_kind(number: u8) -> Result<Kind> {
    [Kind::Cache, Kind::Sidr, Kind::Path]
        .get(usize::from(number))
        .copied()
        .ok_or_else(|| Error::Answer(format!("a step of kind {number}")))
}

/// Converts the kernel's number of an outcome.
fn parse_outcome(number: u8) -> Result<Outcome> {
    use Outcome::{
        None,
        Ok,
        Refused,
        Skipped,
        Timeout, //
    };
    [Ok, None, Timeout, Refused, Outcome::Error, Skipped]
        .get(usize::from(number))
        .copied()
        .ok_or_else(|| Error::Answer(format!("a step with result {number}")))
}

impl Step {
    /// Reads the attributes of a step.
    fn read(attributes: Attributes<'_>) -> Result<Step> {
        Ok(Step {
            step: parse_kind(attributes.u8(step_attribute::KIND)?.unwrap_or(u8::MAX))?,
            result: parse_outcome(attributes.u8(step_attribute::RESULT)?.unwrap_or(u8::MAX))?,
            time: attributes.u32(step_attribute::TIME)?.unwrap_or(0),
            text: attributes
                .text(step_attribute::TEXT)?
                .filter(|text| !text.is_empty()),
        })
    }

    /// Returns whether the step failed, and with it the resolution.
    fn is_failure(&self) -> bool {
        !matches!(self.result, Outcome::Ok | Outcome::Skipped)
    }
}

impl Resolution {
    /// Reads the attributes of a resolution.
    pub fn read(attributes: Attributes<'_>) -> Result<Resolution> {
        let mut steps = Vec::new();
        for found in attributes.iter() {
            let (number, value) = found?;
            if number == attribute::STEP {
                steps.push(Step::read(Attributes::new(value))?);
            }
        }
        Ok(Resolution {
            entry: attributes
                .nest(attribute::ENTRY)?
                .map(Entry::read)
                .transpose()?,
            steps,
            path: attributes
                .nest(attribute::PATH)?
                .map(Path::read)
                .transpose()?,
        })
    }

    /// Returns the reason why the address is not resolved, if it is not.
    pub fn failure(&self) -> Option<String> {
        let step = self.steps.iter().find(|step| step.is_failure())?;
        Some(match &step.text {
            Some(text) => text.clone(),
            None => format!("{}: {}", kind_name(step.step), outcome_text(step.result)),
        })
    }
}

/// Returns the name of a step, as shown to users.
fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cache => "cache",
        Kind::Sidr => "sidr",
        Kind::Path => "path",
    }
}

/// Returns an outcome as text for users.
fn outcome_text(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::None => "not known",
        Outcome::Timeout => "no answer",
        Outcome::Refused => "refused",
        Outcome::Error => "failed",
        Outcome::Skipped => "skipped",
    }
}

impl fmt::Display for Resolution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in &self.steps {
            write!(
                f,
                "{:<6} {:<9}",
                kind_name(step.step),
                outcome_text(step.result)
            )?;
            match step.result {
                Outcome::Skipped => write!(f, " {:>12}", "")?,
                _ => write!(f, " {:>9} us", step.time)?,
            }
            match &step.text {
                Some(text) => writeln!(f, "  {text}")?,
                None => writeln!(f)?,
            }
        }
        if let Some(entry) = &self.entry {
            writeln!(f, "{entry}")?;
        }
        if let Some(path) = &self.path {
            writeln!(f, "    path {path}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::netlink::attribute::Request;

    /// A step as the kernel sends it.
    fn step(kind: u8, result: u8, time: u32, text: &str) -> Vec<u8> {
        Request::new()
            .u8(step_attribute::KIND, kind)
            .u8(step_attribute::RESULT, result)
            .u32(step_attribute::TIME, time)
            .bytes(step_attribute::TEXT, [text.as_bytes(), &[0]].concat())
            .emitted()
    }

    #[test]
    fn steps_are_shown_in_order() {
        let entry = Request::new()
            .address(1, "10.0.0.1".parse().unwrap())
            .bytes(2, [&[0xfe, 0xc0][..], &[0; 13], &[1]].concat())
            .emitted();
        let bytes = Request::new()
            .bytes(attribute::ENTRY, entry)
            .bytes(attribute::STEP, step(0, 0, 3, "file"))
            .bytes(
                attribute::STEP,
                step(1, 2, 2_000_000, "no answer from fec0::1"),
            )
            .bytes(attribute::STEP, step(2, 5, 0, ""))
            .emitted();
        let resolution = Resolution::read(Attributes::new(&bytes)).unwrap();
        assert_eq!(
            resolution.to_string(),
            "cache  ok                3 us  file\n\
             sidr   no answer   2000000 us  no answer from fec0::1\n\
             path   skipped               \n\
             10.0.0.1 gid fec0::1\n"
        );
        assert_eq!(
            resolution.failure().as_deref(),
            Some("no answer from fec0::1")
        );
        assert_eq!(
            serde_json::to_string(&resolution.steps[2]).unwrap(),
            r#"{"step":"path","result":"skipped","time_us":0}"#
        );
    }

    #[test]
    fn numbers_of_a_newer_kernel_are_refused() {
        for (kind, result) in [(3, 0), (0, 6)] {
            let bytes = Request::new()
                .bytes(attribute::STEP, step(kind, result, 0, ""))
                .emitted();
            assert!(Resolution::read(Attributes::new(&bytes)).is_err());
        }
    }
}
