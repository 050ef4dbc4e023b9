//! The command `chronolog verify PATH`: checks a store, a backup or a single log without opening it.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chronomemory::{RealDisk, Verified, layout_of};

const USAGE: &str = "usage: chronolog verify PATH    (a project, a store's folder, a backup or an events.wal)";

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    match &arguments[..] {
        [verb, path] if verb.as_os_str() == "verify" => match verify(path) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::from(1),
            Err(fault) => refuse(&format!("chronolog: {}: {fault}", path.display())),
        },
        _ => refuse(USAGE),
    }
}

/// Says why nothing was verified. Nothing is left to do if that cannot be written.
fn refuse(reason: &str) -> ExitCode {
    let _ = writeln!(io::stderr(), "{reason}");
    ExitCode::from(2)
}

/// Prints what is found; returns whether the chain is valid and nothing was cut off.
fn verify(path: &Path) -> Result<bool, Box<dyn std::error::Error>> {
    let is_log = path.file_name().is_some_and(|name| name == "events.wal");
    let place = if is_log { path.parent().unwrap_or(path) } else { path };
    if !place.is_dir() {
        return Err("no such folder".into());
    }
    let folder = match place.join("events.wal").exists() {
        true => place.to_owned(),
        false => layout_of(&RealDisk::default(), place).folder().to_owned(),
    };
    let report = Verified::of_folder(folder, None, &mut |_, _| {})?.report;
    let mut out = io::stdout().lock();
    let head = report.head.map(|head| head.text().to_owned()).unwrap_or_default();
    let first = report.first_seq.unwrap_or(0);
    writeln!(
        out,
        "{} events, seq {first} to {}, head {head}",
        report.events, report.last_seq
    )?;
    for damage in report.damage.iter().chain(&report.altered).chain(&report.returned) {
        writeln!(out, "damage: {damage}")?;
    }
    if let Some(tail) = &report.tail {
        writeln!(
            out,
            "tail: {} bytes at byte {}: {}",
            tail.length, tail.offset, tail.reason
        )?;
    }
    for note in &report.notes {
        writeln!(out, "note: {note}")?;
    }
    writeln!(out, "{}", if report.valid() { "chain ok" } else { "corrupt" })?;
    Ok(report.valid())
}
