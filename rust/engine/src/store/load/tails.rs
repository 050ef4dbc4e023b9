//! Finds whole events, and knowledge of some, in what was cut away from logs.
//!
//! Unsynced bytes that are not whole are a tail, and the next writer moves them to `quarantine/`. An interrupted write is worthless,
//! but behind an altered byte there may be whole lines that were acknowledged.

use std::io;
use std::ops::Range;

use chronolog::damage::{Damage, DamageKind, Tail};
use chronolog::digest::Hex;
use chronolog::disk::{Access, Bytes, Disk, DiskFile, is_same, read_over, read_whole};
use chronolog::error::{At, Error, Result};
use chronolog::event::line::{Event, Trust};
use chronolog::event::mend::{Budget, Neighbours, mend};
use chronolog::event::stamp;
use chronolog::hint::{Hint, Synced, first_line, hint_for, line_before, line_from, read_hint};
use chronolog::json::MAX_LINE_BYTES;
use chronolog::layout::{LOG, Layout, is_kept_hint, offset_of_tail};
use chronolog::log::files::{copy_range, free_name};
use chronolog::log::{Log, OpenLog, Site};
use chronolog::origin::ALONE;
use chronolog::verify::{NoSink, Walk};
use chronolog::wal::reader::read_pieces;

/// Why a tail does not come back any more.
pub const WHY_NOT_RESTORABLE: &str =
    "the log that it was cut from is not the present one, which a compaction, a repair or a restore began";

/// So much may be hashed in search of a byte that the only line of a tail has lost.
pub(in crate::store) const MENDING_BLOCKS: u64 = 5_000_000;

/// What lies in `quarantine/` and is not a store of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quarantined {
    /// Lines that were cut off as a tail and hold whole events.
    Tail {
        /// Where it lies, from the store's folder on.
        path: String,
        /// Where in the log it stood.
        offset: u64,
        /// How many whole events it holds.
        events: u64,
        /// The seq of the first of them.
        first_seq: u64,
        /// The log still leads to it: `restore` takes it back.
        is_next: bool,
    },
    /// A hint about the last sync that the log did not live up to.
    Hint {
        /// Where it lies, from the store's folder on.
        path: String,
        /// How long the log was.
        offset: u64,
        /// And its last event.
        seq: u64,
        /// The log is the one that it speaks of, and still does not hold that event.
        is_missed: bool,
    },
}

impl Quarantined {
    /// For people, if it is news.
    fn tell(&self) -> Option<String> {
        match self {
            Self::Tail {
                path,
                events,
                first_seq,
                is_next: true,
                ..
            } => Some(format!(
                "{path} holds {events} whole events from seq {first_seq} on, which were cut off unsynced: restore takes them back, \
                 and sets aside what was written since"
            )),
            Self::Tail {
                path,
                events,
                first_seq,
                is_next: false,
                ..
            } => Some(format!(
                "{path} holds {events} whole events from seq {first_seq} on, which were cut off unsynced and cannot be \
                 restored: {WHY_NOT_RESTORABLE}"
            )),
            Self::Hint {
                path,
                offset,
                seq,
                is_missed: true,
            } => Some(format!(
                "the log was cut before somebody went on writing: {path} knows it with {offset} bytes and seq {seq}"
            )),
            _ => None,
        }
    }
}

/// What is whole behind the fault that makes a tail of lines.
pub(in crate::store) struct Whole {
    pub events: u64,
    first_seq: u64,
}

/// Counts the whole events of a tail, if it is more than an interrupted write: lines stand behind its first fault, or its only
/// line can be mended. An unfinished batch was never acknowledged, damaged or not.
pub(in crate::store) fn whole_events(
    log: &dyn DiskFile,
    range: Range<u64>,
    head: Option<Hex>,
    budget: u64,
) -> io::Result<Option<Whole>> {
    let mut walk = Walk::new(None);
    walk.end = range.start;
    (walk.follower.mark.head, walk.follower.mark.gap) = (head, head.is_none());
    walk.go(log, range.end, ALONE, &mut NoSink)?;
    // What a tail followed may not be known any more. Then its first event is as doubtful as one that follows another, unless it
    // is an unfinished batch.
    let unknown = Some(range.start).filter(|start| head.is_none() && walk.end > *start);
    let follower = &walk.follower;
    let is_batch = |damage: &&Damage| damage.kind == DamageKind::BrokenBatch;
    let faults = follower.damage.iter().filter(|damage| !is_batch(damage));
    let Some(first) = faults.map(|damage| damage.offset).chain(unknown).min() else {
        return Ok(None);
    };
    let batches: Vec<u64> = follower
        .damage
        .iter()
        .filter(is_batch)
        .map(|batch| batch.offset)
        .collect();
    let is_scarred = follower.scarred.iter().any(|(begin, _)| *begin == range.start);
    if follower.claimed > 0 && batches == [range.start] && !is_scarred {
        return Ok(None);
    }
    let (mut events, mut behind, mut first_seq, mut lines) = (0, 0_u64, None, 0_u64);
    read_pieces(log, range.clone(), ALONE, |piece| {
        for line in &piece.lines {
            lines += 1;
            if let Ok(event) = &line.event {
                events += 1;
                first_seq.get_or_insert(event.spans.seq);
                // An event that does not follow from the one before it is whole itself.
                behind += u64::from(line.offset >= first);
            }
        }
        io::Result::Ok(true)
    })?;
    if let (true, Some(first_seq)) = (behind > 0, first_seq) {
        return Ok(Some(Whole { events, first_seq }));
    }
    let line = line_from(log, first, range.end)?;
    let neighbours = Neighbours {
        before: Some(head),
        after: None,
    };
    let mended = Some(line)
        .filter(|_| lines == 1 && head.is_some() && budget > 0)
        .and_then(|line| mend(&line, neighbours, &mut Budget::of(budget)));
    let event = mended.and_then(|line| {
        let whole = line.split(|byte| *byte == b'\n').next()?.to_vec();
        Event::read(&whole, Trust::Nothing).ok()
    });
    Ok(event.map(|event| Whole {
        events: 1,
        first_seq: event.spans.seq,
    }))
}

/// Whether behind its last newline a tail has a whole event, which lost no more than that newline.
pub(in crate::store) fn ends_with_event(log: &dyn DiskFile, tail: &Tail) -> io::Result<bool> {
    let (start, end) = (tail.offset, tail.offset + tail.length);
    let mut text = Vec::new();
    let wanted = tail.length.min(2 * MAX_LINE_BYTES as u64);
    read_over(log, &mut text, start.max(end - wanted), wanted as usize)?;
    let line = text.rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    Ok(Event::read(line, Trust::Nothing).is_ok_and(|event| !event.injected))
}

/// The hash of the event whose line ends at a place of a log, and its seq.
pub(in crate::store) fn event_before(log: &dyn DiskFile, end: u64) -> io::Result<Option<(Hex, u64)>> {
    if end == 0 || end > log.length()? {
        return Ok(None);
    }
    let line = line_before(log, end)?;
    Ok(line.and_then(|line| {
        let event = Event::read(&line, Trust::Nothing).ok()?;
        Some((event.hash(&line), event.spans.seq))
    }))
}

/// Whether a log leads to a tail: the first line of it names the last event before its place, or the first whole one comes at
/// least as many events later as lines stand between: more, if lines are lost.
pub(in crate::store) fn leads_to(tail: &dyn DiskFile, length: u64, before: (Hex, u64)) -> io::Result<bool> {
    let line = line_from(tail, 0, length)?;
    if memchr::memmem::find(&line, before.0.text().as_bytes()).is_some() {
        return Ok(true);
    }
    let (mut lines, mut fits) = (0, None);
    read_pieces(tail, 0..length, ALONE, |piece| {
        for line in &piece.lines {
            lines += 1;
            if let Ok(event) = &line.event {
                fits = Some(event.spans.seq >= before.1 + lines);
                return io::Result::Ok(false);
            }
        }
        Ok(true)
    })?;
    Ok(fits.unwrap_or(false))
}

/// Whether a log holds the lines of a tail where they were cut: they were put back.
fn is_in_place(log: &dyn DiskFile, tail: &dyn DiskFile, length: u64, offset: u64) -> io::Result<bool> {
    let has_room = length > 0 && log.length()? >= offset.saturating_add(length);
    Ok(has_room && is_same((log, offset), (tail, 0), length)?)
}

/// What was kept in `quarantine/`, oldest first.
///
/// # Errors
/// Those of the disk; what cannot be read in `quarantine/` is skipped.
pub(in crate::store) fn kept(
    disk: &dyn Disk,
    layout: &Layout,
    log: Option<&dyn DiskFile>,
) -> io::Result<Vec<Quarantined>> {
    let quarantine = layout.quarantine();
    let mut found = Vec::new();
    for name in disk.list(&quarantine).unwrap_or_default() {
        let path = format!("quarantine/{name}");
        if let Some(offset) = offset_of_tail(&name) {
            let Ok(tail) = disk.open(&quarantine.join(&name), Access::Read) else {
                continue;
            };
            let length = tail.length()?;
            if log.map(|log| is_in_place(log, &*tail, length, offset)).transpose()? == Some(true) {
                continue;
            }
            let before = log.map(|log| event_before(log, offset)).transpose()?.flatten();
            let before = match before {
                Some(before) if leads_to(&*tail, length, before)? => Some(before),
                _ => None,
            };
            let head = before.map(|(head, _)| head);
            if let Some(whole) = whole_events(&*tail, 0..length, head, MENDING_BLOCKS)? {
                found.push(Quarantined::Tail {
                    path,
                    offset,
                    events: whole.events,
                    first_seq: whole.first_seq,
                    is_next: before.is_some(),
                });
            }
        } else if is_kept_hint(&name)
            && let Ok(Some(bytes)) = read_whole(disk, &quarantine.join(&name))
            && let Some(hint) = Synced::read(&bytes)
        {
            let of_log = log.map(|log| is_missed(&hint, log)).transpose()?;
            found.push(Quarantined::Hint {
                path,
                offset: hint.offset,
                seq: hint.seq,
                is_missed: of_log == Some(true),
            });
        }
    }
    Ok(found)
}

/// Whether a log is the one that a hint speaks of, and does not hold what it names.
fn is_missed(hint: &Synced, log: &dyn DiskFile) -> io::Result<bool> {
    let length = log.length()?;
    let is_its = first_line(log, length)?.is_some_and(|line| hint.fits_first(&line));
    Ok(is_its && matches!(hint_for(Some(*hint), log, length)?, Hint::Contradicted(_)))
}

pub(in crate::store) fn notes(disk: &dyn Disk, layout: &Layout, log: &dyn DiskFile) -> io::Result<Vec<String>> {
    Ok(kept(disk, layout, Some(log))?
        .iter()
        .filter_map(Quarantined::tell)
        .collect())
}

/// Under the lock, before the hint is written anew: one that knows more of this log than the log holds is kept.
pub(in crate::store) fn keep_hint(site: &Site, log: &OpenLog, now: i64) -> Result<()> {
    let path = site.layout.synced();
    let hint = read_hint(&*site.disk, &site.layout).at(&path)?;
    let length = log.file.length().at(&path)?;
    match hint_for(hint, &*log.file, length).at(&path)? {
        Hint::Contradicted(hint) => keep_missed(site, &hint, now),
        _ => Ok(()),
    }
}

/// Keeps a hint that knows more of this log than the log holds, unless it is kept already.
pub(in crate::store) fn keep_missed(site: &Site, hint: &Synced, now: i64) -> Result<()> {
    let quarantine = site.layout.quarantine();
    let bytes = hint.spell().to_vec();
    let names = site.disk.list(&quarantine).unwrap_or_default();
    let is_it = |name: &String| {
        is_kept_hint(name)
            && read_whole(&*site.disk, &quarantine.join(name)).is_ok_and(|kept| kept.as_ref() == Some(&bytes))
    };
    if names.iter().any(is_it) {
        return Ok(());
    }
    site.make_folder(&quarantine, site.layout.folder())?;
    let target = free_name(&*site.disk, &quarantine, &format!("{}-synced", stamp::spell_name(now)))?;
    let length = bytes.len() as u64;
    copy_range(&*site.disk, &Bytes(bytes), 0..length, &target, None)?;
    site.disk.sync_dir(&quarantine).at(&quarantine)
}

/// Before a compaction: a tail with whole events at the end of the log, or one that `restore` still takes back, could
/// never be taken back again.
///
/// # Errors
/// `Refused` if there is one; `Io`.
pub(in crate::store) fn check_no_tail_is_left(site: &Site, log: &Log) -> Result<()> {
    if let Some(tail) = log.report.tail.as_ref().filter(|tail| tail.events > 0) {
        return Err(Error::Refused {
            path: LOG.to_owned(),
            reason: format!(
                "behind a fault at byte {} it ends with {} whole events that nobody synced, which a compaction would \
                 leave without a way back",
                tail.offset, tail.events
            ),
            instead: "repair() takes them back, before the next write moves them to quarantine/.".to_owned(),
        });
    }
    for kept in kept_beside(site, log)? {
        if let Quarantined::Tail {
            path,
            events,
            is_next: true,
            ..
        } = kept
        {
            let reason = format!(
                "it holds {events} whole events that were cut off the log, which a compaction would leave without a way \
                 back"
            );
            let instead = format!(
                "restore() of {path} takes them back, and sets aside what was written since; if nobody needs them, move \
                 the file out of quarantine/."
            );
            return Err(Error::Refused { path, reason, instead });
        }
    }
    Ok(())
}

/// What lies in `quarantine/` beside a log that is open.
pub(in crate::store) fn kept_beside(site: &Site, log: &Log) -> Result<Vec<Quarantined>> {
    let log = log.open().map(|log| &*log.file);
    kept(&*site.disk, &site.layout, log).at(&site.layout.quarantine())
}
