// SPDX-License-Identifier: GPL-2.0-only

//! A resolution: what is needed to reach an address, step by step.

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

/// The question that a step asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The address cache: the GID.
    Cache,
    /// The peer: its queue pair.
    Sidr,
    /// The path cache, or the subnet administrator: the way.
    Path,
}

/// The outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    /// The answer is known now.
    Ok,
    /// The answer is that there is none.
    None,
    /// No answer has come.
    Timeout,
    /// The one that was asked refuses to tell.
    Refused,
    /// The question could not be asked.
    Error,
    /// The question did not have to be asked, or could not be for want of an answer before.
    Skipped,
}

/// A step of a resolution.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Step {
    /// The question of the step.
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
    /// The entry that the cache has now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<Entry>,
    /// The steps, in their order.
    pub steps: Vec<Step>,
    /// The path to the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<Path>,
}

/// Takes the kernel's number.
fn kind(number: u8) -> Result<Kind> {
    [Kind::Cache, Kind::Sidr, Kind::Path]
        .get(usize::from(number))
        .copied()
        .ok_or_else(|| Error::Answer(format!("a step of kind {number}")))
}

/// Takes the kernel's number.
fn outcome(number: u8) -> Result<Outcome> {
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
            step: kind(attributes.u8(step_attribute::KIND)?.unwrap_or(u8::MAX))?,
            result: outcome(attributes.u8(step_attribute::RESULT)?.unwrap_or(u8::MAX))?,
            time: attributes.u32(step_attribute::TIME)?.unwrap_or(0),
            text: attributes
                .text(step_attribute::TEXT)?
                .filter(|text| !text.is_empty()),
        })
    }

    /// Returns whether something is missing after it.
    fn failed(&self) -> bool {
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

    /// Why the address is not resolved, if it is not.
    pub fn failure(&self) -> Option<String> {
        let step = self.steps.iter().find(|step| step.failed())?;
        Some(match &step.text {
            Some(text) => text.clone(),
            None => format!("{}: {}", name(step.step), words(step.result)),
        })
    }
}

/// Returns the user's name of a step.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::Cache => "cache",
        Kind::Sidr => "sidr",
        Kind::Path => "path",
    }
}

/// Returns the user's words for an outcome.
fn words(outcome: Outcome) -> &'static str {
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
            write!(f, "{:<6} {:<9}", name(step.step), words(step.result))?;
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
    fn what_the_kernel_may_say_later_is_not_guessed() {
        for (kind, result) in [(3, 0), (0, 6)] {
            let bytes = Request::new()
                .bytes(attribute::STEP, step(kind, result, 0, ""))
                .emitted();
            assert!(Resolution::read(Attributes::new(&bytes)).is_err());
        }
    }
}
