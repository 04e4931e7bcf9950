// SPDX-License-Identifier: GPL-2.0-only

//! The table of states in the documentation, compared with what the machine does: every state with
//! everything that can happen in it.
//!
//! `OXIB_PRINT_STATES=1 scripts/cargo test ... --test states -- --nocapture` prints the table as
//! the machine has it. It is a draft: a line that changes has to be judged, not copied.

mod allowed;
mod stage;

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fmt::Write;

use oxib_cm_machine::actions::{
    Actions,
    Cause,
    Counted,
    Outgoing,
    RemoteAction,
    Send,
    SlotAction,
    TimerAction, //
};
use oxib_cm_machine::backlog::Outcome;
use oxib_cm_machine::state::StateName;
use oxib_wire::cm::reason::Reason;

const TABLE: &str = include_str!("../../../../../Documentation/cm-states.md");

/// The most columns of a list in the documentation. Rows of a table may be longer.
const COLUMNS: usize = 100;

/// The results of each event in each state.
type Table = BTreeMap<(String, String), String>;

/// The lists after the table of a state of what does the same, and what that is.
const LISTS: [(&str, &str); 4] = [
    ("Refused: ", "refused"),
    ("Not taken: ", " |  |  | not taken | "),
    ("Not from the peer: ", " |  |  | not from the peer | "),
    ("No effect: ", " |  |  |  | "),
];

/// The cells of a line of a table, without the spaces around them.
fn cells(line: &str) -> Option<Vec<String>> {
    let line = line.strip_prefix('|')?.strip_suffix('|')?;
    Some(line.split('|').map(|cell| cell.trim().into()).collect())
}

/// Reads the table in the documentation.
fn documented() -> Table {
    let mut table = Table::new();
    let mut state = None;
    let mut lines = TABLE.lines();
    while let Some(line) = lines.next() {
        if let Some(heading) = line.strip_prefix("## ") {
            state = stage::STATES.contains(&heading).then_some(heading);
        }
        let Some(state) = state else { continue };
        let mut put = |event: &str, action: String| {
            if stage::EVENTS.contains(&event) {
                let cell = (state.to_string(), event.to_string());
                let before = table.insert(cell, action);
                assert_eq!(before, None, "{state} has two lines for {event}");
            } else {
                panic!("{state} has a line for {event}, which nothing is called");
            }
        };
        for (label, action) in LISTS {
            let Some(first) = line.strip_prefix(label) else {
                continue;
            };
            let mut list = first.to_string();
            // Up to the empty line behind it.
            for more in lines.by_ref().take_while(|line| !line.is_empty()) {
                list += " ";
                list += more;
            }
            let events = list.strip_suffix('.').expect("a list ends with a dot");
            for event in events.split("; ") {
                put(event, action.into());
            }
        }
        if let Some(cells) = cells(line) {
            let (event, action) = cells.split_first().expect("a line of a table has cells");
            if event != "event" && !event.starts_with("---") {
                put(event, action.join(" | "));
            }
        }
    }
    table
}

fn text_of_send(send: Send) -> String {
    match send {
        Send::Again => "the request again".into(),
        Send::New(outgoing) => text_of_outgoing(outgoing),
        Send::Saved(outgoing) => format!("{} again", text_of_outgoing(outgoing)),
    }
}

fn text_of_outgoing(outgoing: Outgoing) -> String {
    match outgoing {
        Outgoing::Rej { reason, of, local } => {
            let reason = match reason {
                Reason::TIMEOUT => "time-out",
                Reason::STALE_CONNECTION => "stale",
                Reason::CONSUMER_DEFINED => "consumer",
                other => panic!("a REJ for {other} is not expected"),
            };
            let named = match local {
                stage::LOCAL => "",
                _ => ", no name",
            };
            format!("REJ ({of:?}, {reason}{named})")
        }
        Outgoing::Mra { of } => format!("MRA ({of:?})"),
        Outgoing::SidrRep { status } => format!("SIDR_REP ({})", status.get()),
        Outgoing::SidrReq => "SIDR_REQ".into(),
        simple => format!("{simple:?}").to_uppercase(),
    }
}

fn text_of_counted(counted: Counted) -> String {
    match counted {
        Counted::Duplicate(kind) => format!("duplicate {kind}"),
        Counted::Dropped(Cause::Unexpected) => "not taken".into(),
        Counted::Dropped(Cause::Stranger) => "not from the peer".into(),
        Counted::Dropped(Cause::WrongQpn) => "other queue pair".into(),
    }
}

/// Returns the text of the other actions; the machine leaves out what stays as it is.
fn text_of_rest(actions: &Actions) -> String {
    let mut rest = Vec::new();
    match actions.timer {
        TimerAction::Keep => {}
        TimerAction::Stop => rest.push("timer stopped"),
        TimerAction::At(_) => rest.push("timer set"),
    }
    if actions.remote == RemoteAction::Forget {
        rest.push("names forgotten");
    }
    match actions.slot {
        SlotAction::Keep => {}
        SlotAction::GiveBack => rest.push("half open no more"),
        SlotAction::End(Outcome::Finished) => rest.push("half open no more, finished"),
        SlotAction::End(Outcome::Failed) => rest.push("half open no more, failed"),
    }
    if actions.rtt_sample.is_some() {
        rest.push("round trip");
    }
    rest.join(", ")
}

fn text(before: StateName, after: StateName, actions: &Actions) -> String {
    let next = if before == after {
        String::new()
    } else {
        after.to_string()
    };
    let send = actions.send.map_or(String::new(), text_of_send);
    let report = actions.report.map_or(String::new(), |r| format!("{r:?}"));
    let counted = actions.counted.map_or(String::new(), text_of_counted);
    [next, send, report, counted, text_of_rest(actions)].join(" | ")
}

/// Returns the table of what the machine does.
fn done() -> Table {
    let mut table = Table::new();
    for state in stage::STATES {
        for event in stage::EVENTS {
            let mut machine = stage::machine(state);
            let before = machine.name();
            let action = match stage::event(&mut machine, event) {
                Ok(actions) => text(before, machine.name(), &actions),
                Err(refused) => {
                    assert_eq!(refused.state, before);
                    assert_eq!(
                        format!("{machine:?}"),
                        format!("{:?}", stage::machine(state))
                    );
                    "refused".into()
                }
            };
            table.insert((state.into(), event.into()), action);
        }
    }
    table
}

/// Breaks a list into lines of at most [`COLUMNS`], between its events.
fn wrapped(list: &str) -> String {
    let mut text = String::new();
    let mut column = 0;
    for event in list.split_inclusive("; ") {
        if column + event.trim_end().len() > COLUMNS {
            text.truncate(text.trim_end().len());
            text.push('\n');
            column = 0;
        }
        text += event;
        column += event.len();
    }
    text
}

/// The table as the documentation would have it.
fn draft(table: &Table) -> String {
    let mut draft = String::new();
    for state in stage::STATES {
        let at = |event: &str| table[&(state.to_string(), event.to_string())].as_str();
        write!(draft, "\n## {state}\n\n").unwrap();
        draft += "| event | next state | sends | reports | counts | besides |\n";
        draft += "| --- | --- | --- | --- | --- | --- |\n";
        let listed = |event: &&str| LISTS.iter().any(|(_, action)| *action == at(event));
        for event in stage::EVENTS.into_iter().filter(|event| !listed(event)) {
            let line = format!("| {event} | {} |\n", at(event));
            draft += &line.replace("|  |", "| |").replace("|  |", "| |");
        }
        for (label, action) in LISTS {
            let same = |event: &&str| at(event) == action;
            let events: Vec<&str> = stage::EVENTS.into_iter().filter(same).collect();
            if !events.is_empty() {
                let list = wrapped(&format!("{label}{}.", events.join("; ")));
                write!(draft, "\n{list}\n").unwrap();
            }
        }
    }
    draft
}

#[test]
fn the_machine_does_what_the_table_says() {
    let done = done();
    if std::env::var_os("OXIB_PRINT_STATES").is_some() {
        println!("{}", draft(&done));
    }
    let documented = documented();
    let mut wrong = String::new();
    for (cell, action) in &done {
        let documented = documented.get(cell).map_or("(no line)", String::as_str);
        if documented != action {
            let (state, event) = cell;
            writeln!(
                wrong,
                "{state}, {event}:\n  table   {documented}\n  machine {action}"
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert_eq!(documented.len(), stage::STATES.len() * stage::EVENTS.len());
}

/// The order of the events, and where the lists are broken.
#[test]
fn the_documentation_is_as_it_is_printed() {
    assert!(
        TABLE.ends_with(&draft(&done())),
        "print it as the page itself says"
    );
}

/// Messages that are answered again have to be known before the machine receives them: the answer
/// needs the address that the message came from.
#[test]
fn repeated_answers_are_announced() {
    for state in stage::STATES {
        for event in stage::EVENTS {
            let Some(message) = stage::message(event) else {
                continue;
            };
            let mut machine = stage::machine(state);
            let is_announced = machine.answers_again(&message, stage::SOON);
            let actions = machine.receive(&message, stage::SOON);
            let is_repeated = matches!(actions.send, Some(Send::Saved(_)));
            assert_eq!(is_announced, is_repeated, "{state}, {event}");
        }
    }
}

#[test]
fn a_dreq_after_the_time_wait_is_answered_again() {
    let mut machine = stage::machine("TimeWait");
    let _ = stage::event(&mut machine, "timer");
    assert_eq!(machine.name(), StateName::Idle);
    for event in ["DREQ", "DREQ, other queue pair"] {
        let message = stage::message(event).expect("it is a message");
        assert!(machine.answers_again(&message, stage::SOON), "{event}");
    }
    let stranger = stage::message("DREQ of a stranger").expect("it is a message");
    assert!(!machine.answers_again(&stranger, stage::SOON));
}

#[test]
fn the_states_are_what_they_are_called() {
    let mut seen = BTreeSet::new();
    for state in stage::STATES {
        let name = stage::machine(state).name();
        let documented = state.split(',').next().expect("a string has a beginning");
        assert_eq!(name.to_string(), documented);
        seen.insert(name);
    }
    assert_eq!(seen, BTreeSet::from(StateName::ALL));
}

#[test]
fn the_allowed_transitions_are_those_of_the_table() {
    let mut found = BTreeSet::new();
    for state in stage::STATES {
        for event in stage::EVENTS {
            let mut machine = stage::machine(state);
            let before = machine.name();
            let _ = stage::event(&mut machine, event);
            if machine.name() != before {
                found.insert((before, machine.name()));
            }
        }
    }
    let allowed: BTreeSet<_> = allowed::TRANSITIONS
        .iter()
        .flat_map(|(from, targets)| targets.iter().map(move |to| (*from, *to)))
        .collect();
    assert_eq!(found, allowed);
}
