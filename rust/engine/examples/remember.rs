//! A program in Rust that remembers something, asks for it, and verifies that it is still true.
//!
//! `cargo run --package chronomemory --example remember -- FOLDER` keeps a store in a folder, or in one that goes away.

use std::error::Error;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use chronomemory::{Draft, Engine, Options, Query, Value, parse_json};

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(folder) = std::env::args_os().nth(1) {
        return remember(&PathBuf::from(folder), &mut io::stdout());
    }
    let folder = std::env::temp_dir().join(format!("chronomemory-example-{}", std::process::id()));
    std::fs::create_dir_all(&folder)?;
    let outcome = remember(&folder, &mut io::stdout());
    std::fs::remove_dir_all(&folder)?;
    outcome
}

fn remember(project: &Path, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    // Any thread may use it. What it acknowledges is on disk a second later at the most: it looks after itself.
    let engine = Engine::open(project, Options::default())?;

    // A draft holds any number of changes. They count together or not at all.
    let mut draft = Draft::default();
    let fact = r#"{"id":"F-1","kind":"fact","label":"The pump leaks","confidence":0.9}"#;
    let decision = r#"{"id":"D-1","kind":"decision","label":"Order a new seal","evidence":["F-1"]}"#;
    for record in [fact, decision] {
        draft.upsert_value(&parse_json(record.as_bytes())?, 0, None)?;
    }
    let written = engine.commit(&mut draft)?;
    writeln!(out, "wrote events {} to {}", written.first_seq, written.next_seq - 1)?;

    let asked = Query {
        kinds: Some(vec!["decision".to_owned()]),
        ..Query::default()
    };
    for record in engine.query(&asked)? {
        let record = parse_json(&record)?;
        let text = |field: &str| record.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        writeln!(out, "{}: {}", text("id"), text("label"))?;
    }

    // Nothing that is in memory is believed here: every line is read again, and its hash computed.
    let report = engine.verify(&mut |_, _| {})?.report;
    let is_true = report.damage.is_empty();
    writeln!(
        out,
        "{} events, {}",
        report.events,
        if is_true { "all of them true" } else { "damaged" }
    )?;
    engine.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_found_and_true() {
        let folder = std::env::temp_dir().join(format!("chronomemory-example-test-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut told = Vec::new();
        let outcome = remember(&folder, &mut told);
        std::fs::remove_dir_all(&folder).expect("no folder");
        outcome.expect("a memory");
        let told = String::from_utf8(told).expect("text");
        assert_eq!(
            told,
            "wrote events 2 to 3\nD-1: Order a new seal\n3 events, all of them true\n"
        );
    }
}
