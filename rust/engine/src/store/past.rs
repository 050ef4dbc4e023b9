//! What was said before, and what was known then?

use std::sync::Arc;

use crate::archive::{self, damage_in};
use crate::chain::Held;
use crate::disk::{DiskFile, read_upto};
use crate::error::{At, Error, Result};
use crate::event::faces::face_of;
use crate::event::line::{Event, Trust};
use crate::event::{Known, Op};
use crate::layout::LOG;
use crate::origin::{ALONE, Beginning, Origin, beginning_of, origin_of};
use crate::state::{Query, State, spelled, unspelled};
use crate::verify::{BaseState, Sink, Walk};

use super::load::{Look, examine, settled_seq};
use super::loader::{Loader, Moment};
use super::{Checking, Store};

/// How much is read at once when neighbouring events are asked for.
const WINDOW_BYTES: usize = 256 * 1024;

/// The store as it was at some event; nothing can be written through it.
pub struct View {
    state: State,
    seq: u64,
}

impl View {
    /// The last event that it knows.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<&[u8]> {
        self.state.get(id)
    }

    /// The canonical records that a query asks for.
    pub fn query(&self, query: &Query) -> Vec<&[u8]> {
        self.state.query(query)
    }

    /// How many records a query would find.
    pub fn count(&self, query: &Query) -> u64 {
        self.state.count(query)
    }
}

impl Store {
    /// The lines that speak of a record, oldest first: those of the archives, then those of the live log. The live log
    /// has an index; each archive is looked through.
    ///
    /// # Errors
    /// `Corrupted` if an archive is damaged, `Io`.
    pub fn history(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        for (name, segment) in self.archives()?.into_iter().rev() {
            lines.extend(mentions(&*segment, &name, id)?);
        }
        for index in self.state.history(id) {
            lines.push(self.line_at(index as usize)?);
        }
        Ok(lines)
    }

    /// The archives that are there, newest first.
    fn archives(&self) -> Result<Vec<(String, Arc<dyn DiskFile>)>> {
        let mut found = Vec::new();
        let mut origin = self.log.as_ref().map(|log| log.origin.clone());
        while let Some(Origin::Ours(sentinel)) = origin {
            let Some((name, digest)) = sentinel.safe_archive() else {
                break;
            };
            let path = self.layout.inside(name);
            let archive = match archive::open(&*self.disk, &path) {
                Ok(archive) => archive,
                Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => break,
                Err(fault) => return Err(Error::io(&path, fault)),
            };
            check_digest(&*archive.packed, name, digest)?;
            let length = archive.log.length().or_damage(name)?;
            origin = Some(origin_of(&*archive.log, length).or_damage(name)?);
            found.push((name.to_owned(), archive.log));
        }
        Ok(found)
    }

    /// Every line of the live log whose seq is at least `from_seq`.
    ///
    /// # Errors
    /// `Io`.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        for range in self.state.timeline().since(from_seq) {
            self.each_line(range, |line| lines.push(line.to_vec()))?;
        }
        Ok(lines)
    }

    /// The ids of the records that were upserted or patched at `seq` or later, each once, in order of their first change;
    /// those of the faces only if asked for.
    ///
    /// # Errors
    /// `Io`.
    pub fn changed_since(&self, seq: u64, faces: bool) -> Result<Vec<String>> {
        let mut seen = std::collections::HashSet::new();
        let mut ids = Vec::new();
        for range in self.state.timeline().since(seq) {
            self.each_line(range, |line| {
                if let Ok(event) = Event::read(line, Trust::Hashes) {
                    let id = event.record_id(line);
                    let asked_for =
                        matches!(event.op, Op::Upsert | Op::Migrate | Op::Patch) && (faces || face_of(id).is_none());
                    if asked_for && seen.insert(id.to_vec()) {
                        ids.push(unspelled(id));
                    }
                }
            })?;
        }
        Ok(ids)
    }

    /// The store as it was at a moment, in the live log or in an archive.
    ///
    /// # Errors
    /// `HistoryUnavailable` if no kept segment reaches back so far, `Corrupted` if the one that does is damaged, `Io`.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        let Some(log) = &self.log else {
            return Ok(View {
                state: State::default(),
                seq: 0,
            });
        };
        let (name, segment) = self.segment_at(&log.file, moment)?;
        let is_live = Arc::ptr_eq(&segment, &log.file);
        let look = Look {
            threads: self.options.threads,
            checking: if is_live { Checking::Quick } else { Checking::Full },
            archives: false,
        };
        let mut loader = Loader::up_to(moment);
        let found =
            examine(&*self.disk, &self.layout, &*segment, look, &mut loader, &mut |_, _| {}).or_damage(&name)?;
        // Damage in the live log was reported at open, and every good line counts; a past without its base would be a lie.
        let has_base = !matches!(found.report.base, BaseState::Missing | BaseState::Damaged);
        if let Some(damage) = found.report.damage.first().filter(|_| !is_live || !has_base) {
            let mut damage = found
                .report
                .damage
                .iter()
                .find(|found| found.path != LOG)
                .unwrap_or(damage)
                .clone();
            if damage.path == LOG {
                damage.path = name;
            }
            return Err(Error::Corrupted(Box::new(damage)));
        }
        Ok(View {
            seq: loader.last_seq,
            state: loader.state.unwrap_or_default(),
        })
    }

    /// The segment of the log that a moment falls into: the live one, or one of those it names as its past.
    fn segment_at(&self, live: &Arc<dyn DiskFile>, moment: Moment) -> Result<(String, Arc<dyn DiskFile>)> {
        let mut segment = Arc::clone(live);
        let mut segment_name = LOG.to_owned();
        loop {
            let length = segment.length().or_damage(&segment_name)?;
            let Beginning { origin, ts: began, .. } = beginning_of(&*segment, length).or_damage(&segment_name)?;
            let first_seq = match &origin {
                Origin::Nothing => return Ok((segment_name, segment)),
                Origin::Ours(sentinel) => sentinel.last_seq,
                Origin::Foreign => {
                    settled_seq(&*self.disk, &self.layout, &*segment, length).or_damage(&segment_name)?
                }
            };
            let reaches = match moment {
                Moment::Seq(seq) => seq >= first_seq,
                Moment::Time(micros) => micros >= began,
            };
            if reaches {
                return Ok((segment_name, segment));
            }
            let archive = match &origin {
                Origin::Ours(sentinel) => sentinel.safe_archive(),
                _ => None,
            };
            let unavailable = |reason: String| Error::HistoryUnavailable { first_seq, reason };
            let Some((name, digest)) = archive else {
                return Err(unavailable(
                    "the log was compacted there and its history not kept".to_owned(),
                ));
            };
            segment_name = name.to_owned();
            let archive = archive::open(&*self.disk, &self.layout.inside(name))
                .map_err(|fault| unavailable(format!("{name}: {fault}")))?;
            // The digest also keeps an archive from leading back to itself.
            check_digest(&*archive.packed, name, digest)?;
            segment = archive.log;
        }
    }

    fn line_at(&self, index: usize) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.each_line(index..index + 1, |line| found = line.to_vec())?;
        Ok(found)
    }

    /// Shows the lines of consecutive events, reading the log in large steps.
    fn each_line(&self, range: std::ops::Range<usize>, mut show: impl FnMut(&[u8])) -> Result<()> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let path = self.layout.log().to_owned();
        let timeline = self.state.timeline();
        let end_of = |index: usize| timeline.offset(index + 1).unwrap_or(log.walk.end);
        let mut window: Vec<u8> = Vec::new();
        let mut window_start = 0;
        for index in range.clone() {
            let Some(start) = timeline.offset(index) else { break };
            let end = end_of(index);
            if start < window_start || end > window_start + window.len() as u64 {
                let far = end_of(range.end.saturating_sub(1).max(index)).min(start + WINDOW_BYTES as u64);
                window.clear();
                window_start = start;
                read_upto(&*log.file, &mut window, start, (far.max(end) - start) as usize).at(&path)?;
            }
            let from = (start - window_start) as usize;
            let Some(text) = window.get(from..(end - window_start) as usize) else {
                return Err(Error::io(&path, std::io::ErrorKind::UnexpectedEof.into()));
            };
            let line = memchr::memchr(b'\n', text).map_or(text, |newline| &text[..newline]);
            show(line.strip_suffix(b"\r").unwrap_or(line));
        }
        Ok(())
    }
}

/// What an archive holds may be wrong: that is damage, and no failure of the disk.
trait OrDamage<T> {
    fn or_damage(self, name: &str) -> Result<T>;
}

impl<T> OrDamage<T> for std::io::Result<T> {
    fn or_damage(self, name: &str) -> Result<T> {
        self.map_err(|fault| match damage_in(&fault) {
            Some(reason) => {
                let damage = crate::verify::finding(name, crate::damage::DamageKind::ArchiveAltered, reason);
                Error::Corrupted(Box::new(damage))
            }
            None => Error::io(std::path::Path::new(name), fault),
        })
    }
}

/// An archive is believed only if it is the one that the log names.
fn check_digest(segment: &dyn DiskFile, name: &str, digest: &str) -> Result<()> {
    let found = crate::snapshot::digest(segment).at(std::path::Path::new(name))?;
    if found.text() == digest {
        return Ok(());
    }
    let reason = format!("its SHA-256 is {}", found.text());
    let damage = crate::verify::finding(name, crate::damage::DamageKind::ArchiveAltered, reason);
    Err(Error::Corrupted(Box::new(damage)))
}

/// The lines of an archive that speak of a record.
fn mentions(segment: &dyn DiskFile, name: &str, id: &str) -> Result<Vec<Vec<u8>>> {
    let length = segment.length().or_damage(name)?;
    let mut found = Mentions {
        id: spelled(id),
        ..Mentions::default()
    };
    let mut walk = Walk::new(None);
    walk.go(segment, length, ALONE, &mut found, &mut |_, _| {})
        .or_damage(name)?;
    if let Some(damage) = walk.follower.damage.first() {
        let damage = crate::damage::Damage {
            path: name.to_owned(),
            ..damage.clone()
        };
        return Err(Error::Corrupted(Box::new(damage)));
    }
    found
        .offsets
        .iter()
        .map(|&offset| line_from(segment, offset, length).or_damage(name))
        .collect()
}

/// Where the events stand that speak of one record.
#[derive(Default)]
struct Mentions {
    id: Vec<u8>,
    offsets: Vec<u64>,
    held: Vec<u64>,
}

impl Sink for Mentions {
    fn count(&mut self, known: Known<'_>, _: i64) {
        if known.id == self.id {
            self.offsets.push(known.offset);
        }
    }

    fn hold(&mut self, known: Known<'_>, _: i64) {
        if known.id == self.id {
            self.held.push(known.offset);
        }
    }

    fn settle(&mut self, held: Held) {
        if held == Held::Count {
            self.offsets.append(&mut self.held);
        }
        self.held.clear();
    }
}

fn line_from(file: &dyn DiskFile, offset: u64, length: u64) -> std::io::Result<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let known = line.len();
        let room = (length - offset - known as u64).min(4096) as usize;
        let got = read_upto(file, &mut line, offset + known as u64, room)?;
        if let Some(newline) = memchr::memchr(b'\n', &line[known..]) {
            line.truncate(known + newline);
            return Ok(line);
        }
        if got == 0 {
            return Ok(line);
        }
    }
}
