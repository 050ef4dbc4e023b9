//! The command `chronolog verify PATH`: checks the hash chain of a log and the digests of the files that it names.
//!
//! It follows the log back through its archives. What needs the records themselves (whether a base equals the replay before it,
//! embeddings, indexes) is checked by `chronomemory verify`.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use chronolog::archive::{self, file_digest};
use chronolog::damage::{Damage, DamageKind, Tail};
use chronolog::disk::{Disk, DiskFile, Manner, RealDisk};
use chronolog::hint::{Hint, hint_for, read_hint};
use chronolog::layout::{LOG, Layout, base_name};
use chronolog::log::files::open_base;
use chronolog::origin::{Origin, Sentinel, WayBack, beginning_of};
use chronolog::verify::{NoSink, Walk, finding, open_log};
use chronolog::wal::reader::Reading;

const USAGE: &str = "usage: chronolog verify PATH    (a project, a store's folder, a backup or an events.wal)";

/// The result of a verification.
#[derive(Default)]
struct Verdict {
    segments: Vec<String>,
    damage: Vec<Damage>,
    tail: Option<Tail>,
    notes: Vec<String>,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [verb, path] = &arguments[..] else {
        let _ = writeln!(io::stderr(), "{USAGE}");
        return ExitCode::from(2);
    };
    if verb != "verify" {
        let _ = writeln!(io::stderr(), "chronolog: unknown command {verb:?}\n{USAGE}");
        return ExitCode::from(2);
    }
    let printed = verify(&layout_of(Path::new(path))).and_then(|verdict| print(&verdict));
    match printed {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(fault) => {
            let _ = writeln!(io::stderr(), "chronolog: {path}: {fault}");
            ExitCode::from(2)
        }
    }
}

/// The files of a project, a store's folder or a single log.
fn layout_of(path: &Path) -> Layout {
    let folder: PathBuf = match path.file_name().is_some_and(|name| name == LOG) {
        true => path.parent().unwrap_or(Path::new(".")).to_owned(),
        false => path.to_owned(),
    };
    let project = Layout::of_project(&folder);
    match project.folder().is_dir() {
        true => project,
        false => Layout::of_folder(folder),
    }
}

fn verify(layout: &Layout) -> io::Result<Verdict> {
    let disk = RealDisk::default();
    disk.guard(layout.folder(), Manner::default());
    let mut verdict = Verdict::default();
    // The hint is read before the length: a writer in between makes the log longer, never the hint wrong.
    let hint = read_hint(&disk, layout)?;
    let Some(log) = open_log(&disk, layout)? else {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no events.wal here"));
    };
    let length = log.length()?;
    let hint = hint_for(hint, &*log, length)?;
    let (_, tail) = verdict.check_segment(LOG, &*log, hint)?;
    verdict.tail = tail;
    let mut origin = beginning_of(&*log, length)?.origin;
    let mut way = WayBack::default();
    while let Origin::Ours(sentinel) = origin {
        verdict.check_base(&disk, layout, &sentinel)?;
        way.pass(&sentinel);
        match verdict.check_archive(&disk, layout, &sentinel)? {
            Some(before) => origin = before,
            None => return Ok(verdict),
        }
        way.resolve_origin(&mut origin);
    }
    if origin == Origin::Foreign {
        verdict
            .notes
            .push("history unavailable: another tool compacted the log".to_owned());
    }
    Ok(verdict)
}

impl Verdict {
    /// Walks one log; returns the hash of its last event and what follows its committed end.
    fn check_segment(&mut self, name: &str, log: &dyn DiskFile, hint: Hint) -> io::Result<(String, Option<Tail>)> {
        let length = log.length()?;
        let synced = match hint {
            Hint::Synced(offset) => Some(offset),
            _ => None,
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(8);
        let reading = Reading {
            trusted_until: 0,
            threads,
        };
        let mut walk = Walk::new(synced).promised(hint.promised());
        let tail = walk.go(log, length, reading, &mut NoSink, &mut |_, _| {})?;
        let in_segment = |damage: &Damage| Damage {
            path: name.to_owned(),
            ..damage.clone()
        };
        self.damage.extend(walk.follower.damage.iter().map(in_segment));
        let mark = walk.mark();
        if let Hint::Contradicted(synced) = hint {
            let reason = format!(
                "the log was synced up to event {}, and does not hold it any more",
                synced.seq
            );
            match mark.events {
                0 => self.damage.push(finding(name, DamageKind::LogMissing, reason)),
                _ => self.notes.push(reason),
            }
        }
        let head = mark.head.map(|head| head.text().to_owned()).unwrap_or_default();
        let redacted = match walk.redacted.count {
            0 => String::new(),
            count => format!(", {count} redacted"),
        };
        let first = mark.first_seq.unwrap_or(0);
        let line = format!(
            "{name}: {} events, seq {first} to {}{redacted}, head {head}",
            mark.events, mark.last_seq
        );
        self.segments.push(line);
        Ok((head, tail))
    }

    fn check_base(&mut self, disk: &dyn Disk, layout: &Layout, sentinel: &Sentinel) -> io::Result<()> {
        let Some(sha256) = sentinel.base_sha256 else {
            return Ok(());
        };
        match open_base(disk, layout, &sha256)? {
            Some((name, base)) => {
                let found = file_digest(&*base.log)?;
                if found != sha256 {
                    let reason = format!("its SHA-256 is {}", found.text());
                    self.damage.push(finding(&name, DamageKind::BaseAltered, reason));
                }
            }
            // Only the base of the live log must be there: the history before an older one adds up to it.
            None if self.segments.len() == 1 => {
                let reason = "the log starts from it";
                self.damage
                    .push(finding(&base_name(sha256.text()), DamageKind::BaseMissing, reason));
            }
            None => {}
        }
        Ok(())
    }

    /// Checks the archive that a sentinel names; returns what that log starts from, or `None` at the end of kept history.
    fn check_archive(&mut self, disk: &dyn Disk, layout: &Layout, after: &Sentinel) -> io::Result<Option<Origin>> {
        let Some((name, digest)) = after.safe_archive() else {
            self.notes
                .push("history unavailable: a compaction did not keep it".to_owned());
            return Ok(None);
        };
        let archive = match archive::open(disk, &layout.inside(name)) {
            Ok(archive) => archive,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => {
                self.notes.push(format!("history unavailable: {name} is not there"));
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let found = file_digest(&*archive.packed)?;
        if found.text() != digest {
            let reason = format!("its SHA-256 is {}", found.text());
            self.damage.push(finding(name, DamageKind::ArchiveAltered, reason));
            return Ok(None);
        }
        let (head, _) = self.check_segment(name, &*archive.log, Hint::None)?;
        if head != after.previous_head {
            let reason = "its last event is not the one that the next log names";
            self.damage.push(finding(name, DamageKind::ArchiveAltered, reason));
        }
        let origin = beginning_of(&*archive.log, archive.log.length()?)?.origin;
        Ok(Some(origin))
    }
}

/// Prints a verdict; returns whether the chain is valid.
fn print(verdict: &Verdict) -> io::Result<bool> {
    let mut out = io::stdout().lock();
    for segment in &verdict.segments {
        writeln!(out, "{segment}")?;
    }
    for damage in &verdict.damage {
        writeln!(out, "damage: {damage}")?;
    }
    if let Some(tail) = &verdict.tail {
        writeln!(
            out,
            "tail: {} bytes at byte {}: {}",
            tail.length, tail.offset, tail.reason
        )?;
    }
    for note in &verdict.notes {
        writeln!(out, "note: {note}")?;
    }
    let is_valid = verdict.damage.is_empty();
    writeln!(out, "{}", if is_valid { "chain ok" } else { "corrupt" })?;
    Ok(is_valid)
}
