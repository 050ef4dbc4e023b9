//! Finds the base that a log started from when the line that names it is lost.
//!
//! A base is called by its digest and says which event was its last; an archive is called by the events that it holds. The
//! lines that are left of the log tell which of them may have come before. A digest that can still be read in what is left of
//! the lost line settles it. Otherwise the newest counts: one with an archive that ends where it does, if nothing is missing
//! between it and the first line but the lines that are damaged; any other only fits.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use memchr::memmem;

use chronolog::archive;
use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Naming, read_upto};
use chronolog::json::MAX_LINE_BYTES;
use chronolog::layout::{Layout, SNAPSHOT, digest_in_base_name, is_unpacked_base, last_seq_in_archive_name};
use chronolog::log::files::{is_folder, open_inside};
use chronolog::origin::{ALONE, Beginning, Sentinel};
use chronolog::wal::reader::read_pieces;
use chronolog::wal::synced::Synced;
use chronomemory_state::snapshot::Header;

use super::found::{Traces, head_of, header_of};
use crate::store::files::proofs::{other_folders, shown};

/// So many digits at its beginning or its end tell a digest from all others.
const ENOUGH_DIGITS: usize = 32;
/// What a line says that names a base, or adopts one.
const NAMING: [&[u8]; 3] = [b"base_sha256", b"__compact__", b"__adopt__"];

/// What is left of a log whose first line is lost.
#[derive(Debug, Default)]
pub(super) struct Left {
    /// The seq of the first event that can be read.
    pub first: Option<u64>,
    /// Without one: the base came before this seq, if that is known.
    pub before: Option<u64>,
    /// How many lines cannot be read before that event, one at least.
    pub lines: u64,
    /// What damaged lines still spell of digests.
    spelled: Vec<Vec<u8>>,
    /// A damaged line seems to be one that names a base.
    pub seems_compacted: bool,
}

impl Left {
    /// Of a log that has lines.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of_log(log: &dyn DiskFile, length: u64, beginning: &Beginning, synced: Option<&Synced>) -> io::Result<Self> {
        let end = beginning.seq.map_or(length, |_| beginning.offset);
        let mut left = Self {
            first: beginning.seq,
            before: synced.map(|synced| synced.seq),
            ..Self::default()
        };
        left.spell(log, length, end)?;
        // An event that follows another was not the first, even if nothing stands before it.
        left.lines = left.lines.max(1);
        Ok(left)
    }

    /// Of a log that is gone: the hint may speak of the one before the last compaction, or of a single line.
    pub fn of_nothing(synced: Option<&Synced>) -> Self {
        Self {
            before: synced.map(|synced| synced.seq.saturating_add(1)),
            lines: 2,
            ..Self::default()
        }
    }

    /// Reads what damaged lines spell: those before `end` are counted, those behind it may have adopted a base.
    fn spell(&mut self, log: &dyn DiskFile, length: u64, end: u64) -> io::Result<()> {
        let mut known = 0;
        read_pieces(log, 0..length, ALONE, |piece| {
            for line in piece.lines.iter().filter(|line| line.event.is_err()) {
                self.look_at(piece.text(line), line.offset < end);
            }
            known = piece.end.unwrap_or(known);
            io::Result::Ok(true)
        })?;
        let mut rest = Vec::new();
        let left = usize::try_from(length - known).unwrap_or(usize::MAX);
        read_upto(log, &mut rest, known, left.min(MAX_LINE_BYTES))?;
        if !rest.is_empty() {
            self.look_at(&rest, known < end);
        }
        Ok(())
    }

    fn look_at(&mut self, text: &[u8], is_before: bool) {
        let is_naming = NAMING.iter().any(|word| memmem::find(text, word).is_some());
        self.lines += u64::from(is_before);
        self.seems_compacted |= is_naming;
        if is_before || is_naming {
            let runs = text.split(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
            let long = runs.filter(|run| run.len() >= ENOUGH_DIGITS);
            self.spelled.extend(long.map(<[u8]>::to_vec));
        }
    }

    /// Whether a damaged line still spells this digest, or half of it: no other one begins or ends alike.
    fn spells(&self, digest: &Hex) -> bool {
        let (begin, end) = digest.bytes().split_at(ENOUGH_DIGITS);
        let holds = |run: &Vec<u8>| memmem::find(run, begin).is_some() || memmem::find(run, end).is_some();
        self.spelled.iter().any(holds)
    }

    /// Whether a state that ends with this event may be what the log started from: a line that names it came between.
    fn admits(&self, seq: u64) -> bool {
        match (self.first, self.before) {
            (Some(first), _) => seq.saturating_add(2) <= first,
            (None, Some(before)) => seq < before,
            (None, None) => true,
        }
    }

    /// Whether no more events are missing behind it than there are damaged lines.
    fn meets(&self, seq: u64) -> bool {
        match (self.first, self.before) {
            (Some(first), _) => first - 1 - seq <= self.lines,
            (None, Some(before)) => before - seq <= self.lines,
            (None, None) => true,
        }
    }

    /// How many events came before the first that can be read, if more than there are damaged lines: the log did not begin
    /// with them, or some of them are gone.
    pub fn unaccounted(&self) -> Option<u64> {
        let first = self.first?;
        (first.saturating_sub(1) > self.lines).then_some(first)
    }
}

/// A state that a log may have started from.
pub(super) struct Choice {
    /// Where it lies, from the store's folder on.
    pub name: String,
    /// The base; `None` if only the archive is there that it was made of.
    pub file: Option<Arc<dyn DiskFile>>,
    /// The archive that ends with the same event, as a sentinel would name it.
    pub before: Option<Sentinel>,
    /// A damaged line still names it.
    pub is_spelled: bool,
    /// Nothing else can have come between it and the lines that are left.
    pub is_met: bool,
}

/// A base in the folder.
struct BaseCandidate {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    digest: Hex,
    seq: u64,
    last_hash: String,
    /// It lies where bases of this log lie, and not in a copy.
    is_own: bool,
}

impl BaseCandidate {
    fn is_whole(&self) -> bool {
        chronolog::archive::file_digest(&*self.file).is_ok_and(|found| found == self.digest)
    }
}

/// Finds what a log started from; `None` if nothing in the folder fits.
///
/// # Errors
/// What the disk says.
pub(super) fn find(disk: &dyn Disk, layout: &Layout, traces: &Traces, left: &Left) -> io::Result<Option<Choice>> {
    let (mut candidates, mut is_newest) = candidates(disk, layout, left)?;
    let is_named = |one: &&BaseCandidate| left.spells(&one.digest) && one.is_whole();
    if let Some(named) = candidates.iter().rev().find(is_named) {
        return choice(disk, layout, traces, named, true, true).map(Some);
    }
    let past = traces.archives.iter().filter_map(|name| last_seq_in_archive_name(name));
    let newest_known = past.filter(|seq| left.admits(*seq)).max();
    let mut best = None;
    while let Some(one) = candidates.pop() {
        if one.is_whole() {
            best = Some(one);
            break;
        }
        // It may have been the one.
        is_newest &= !one.is_own;
    }
    let known = best.as_ref().map(|one| one.seq);
    if newest_known > known
        && let Some(found) = archived(disk, layout, traces, left, known)?
    {
        return Ok(Some(found));
    }
    let Some(best) = best else { return Ok(None) };
    let is_other =
        |one: &BaseCandidate| one.is_own && one.seq == best.seq && one.digest != best.digest && one.is_whole();
    let is_alone = !candidates.iter().any(is_other);
    let is_met = is_newest && is_alone && best.is_own && newest_known <= Some(best.seq) && left.meets(best.seq);
    choice(disk, layout, traces, &best, false, is_met).map(Some)
}

fn choice(
    disk: &dyn Disk,
    layout: &Layout,
    traces: &Traces,
    one: &BaseCandidate,
    is_spelled: bool,
    is_met: bool,
) -> io::Result<Choice> {
    Ok(Choice {
        name: shown(layout, &one.path),
        file: Some(Arc::clone(&one.file)),
        before: traces.archive_before(disk, layout, one.seq, &one.last_hash)?,
        is_spelled,
        is_met,
    })
}

/// The bases that may be meant, the best last: newer ones, and the store's own before copies. Says whether those are all.
fn candidates(disk: &dyn Disk, layout: &Layout, left: &Left) -> io::Result<(Vec<BaseCandidate>, bool)> {
    let others = other_folders(disk, layout).into_iter().map(|other| other.bases());
    let folders = std::iter::once(layout.bases()).chain(others);
    let (mut found, mut are_all) = (Vec::new(), true);
    for (number, folder) in folders.enumerate() {
        if !is_folder(disk, &folder) {
            continue;
        }
        for name in disk
            .list(&folder)
            .naming(&folder)?
            .into_iter()
            .filter(|name| is_unpacked_base(name))
        {
            let path = folder.join(&name);
            let digest = digest_in_base_name(&name).and_then(|digits| Hex::read(digits.as_bytes()));
            let (Ok(file), Some(digest)) = (disk.open(&path, Access::Read), digest) else {
                continue;
            };
            let header = header_of(&*file).naming(&path)?;
            are_all &= header.is_some() || number > 0;
            if let Some(header) = header.filter(|header| left.admits(header.seq)) {
                found.push(BaseCandidate {
                    path,
                    file,
                    digest,
                    seq: header.seq,
                    last_hash: header.last_hash,
                    is_own: number == 0,
                });
            }
        }
    }
    found.sort_by_key(|one: &BaseCandidate| (one.seq, one.is_own));
    Ok((found, are_all))
}

/// The newest archive behind a seq that may be what came before the log: what it adds up to was the base.
fn archived(
    disk: &dyn Disk,
    layout: &Layout,
    traces: &Traces,
    left: &Left,
    behind: Option<u64>,
) -> io::Result<Option<Choice>> {
    let with_seq = |name: &String| Some((last_seq_in_archive_name(name)?, name.clone()));
    let mut archives: Vec<(u64, String)> = traces.archives.iter().filter_map(with_seq).collect();
    archives.retain(|(seq, _)| Some(*seq) > behind && left.admits(*seq));
    archives.sort();
    let newest = archives.last().map(|(seq, _)| *seq);
    while let Some((seq, name)) = archives.pop() {
        let Ok(archive) = archive::open(disk, &layout.archives().join(&name)) else {
            continue;
        };
        let digest = chronolog::archive::file_digest(&*archive.packed)?;
        let Some(head) = head_of(&*archive.log).unwrap_or_default() else {
            continue;
        };
        // Its name holds the beginning of its digest.
        if name
            .split(['-', '.'])
            .nth(2)
            .is_none_or(|short| !digest.text().starts_with(short))
        {
            continue;
        }
        return Ok(Some(Choice {
            name: format!("archive/{name}"),
            file: None,
            before: Some(Sentinel {
                last_seq: seq,
                previous_head: head.text().to_owned(),
                archive: Some((format!("archive/{name}"), digest.text().to_owned())),
                ..Sentinel::default()
            }),
            is_spelled: false,
            is_met: newest == Some(seq) && left.meets(seq),
        }));
    }
    Ok(None)
}

/// A base, with its name and header.
type Adopted = (String, Header, Arc<dyn DiskFile>);

/// The base that a line adopted which is lost, with its name and header: the one of `base/` that ends where a compaction of
/// another tool begins, or that a damaged line still names. `None` if there is none, or if the snapshot is the same.
///
/// # Errors
/// What the disk says.
pub(super) fn adopted(
    disk: &dyn Disk,
    layout: &Layout,
    log: &dyn DiskFile,
    length: u64,
    first_seq: Option<u64>,
) -> io::Result<Option<Adopted>> {
    let (candidates, _) = candidates(disk, layout, &Left::default())?;
    let mut own = candidates
        .into_iter()
        .filter(|one| one.is_own && one.is_whole())
        .peekable();
    if own.peek().is_none() {
        return Ok(None);
    }
    let mut left = Left::default();
    left.spell(log, length, 0)?;
    let is_it = |one: &BaseCandidate| left.spells(&one.digest) || Some(one.seq + 1) == first_seq;
    let found: Vec<BaseCandidate> = own.filter(is_it).collect();
    let is_spelled = |one: &&BaseCandidate| left.spells(&one.digest);
    let one = match (found.iter().find(is_spelled), &found[..]) {
        (Some(one), _) => one,
        (None, [one]) => one,
        _ => return Ok(None),
    };
    let snapshot = open_inside(disk, layout, SNAPSHOT)?;
    if snapshot.is_some_and(|file| chronolog::archive::file_digest(&*file).is_ok_and(|found| found == one.digest)) {
        return Ok(None);
    }
    let header = header_of(&*one.file)?;
    Ok(header.map(|header| (shown(layout, &one.path), header, Arc::clone(&one.file))))
}
