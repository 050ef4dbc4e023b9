//! Finds the events of an archive that speak of a record, by an index that lies beside it.
//!
//! Beside each archive that was ever asked lies an index: for every event the hash of the ids that it speaks of and its place, sorted.
//! It is derived: it names the digest of its archive and ends with its own, and whatever is wrong with it, it is made anew.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use chronolog::archive::{self, Archive, damage_in};
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::{Hasher, Hex, sha256};
use chronolog::disk::{Access, Bytes, Disk, DiskFile, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::Known;
use chronolog::event::act::each_subject;
use chronolog::layout::{Layout, own_draft};
use chronolog::origin::{Beginning, Sentinel, beginning_of};
use chronolog::verify::{Counted, Walk, finding};
use chronolog::wal::reader::Reading;

/// The first bytes of an index; the last one is the version.
const MAGIC: &[u8; 8] = b"CMHIST\x00\x02";
/// Magic, the digest of the archive, the number of entries.
const HEADER_BYTES: usize = 48;
const COUNT_AT: usize = 40;
/// The hash of an id, and an offset.
const ENTRY_BYTES: usize = 16;
const DIGEST_BYTES: usize = 32;
const BUFFER_BYTES: u64 = 1024 * 1024;

/// An archive that is the one the log names, with its index once that was needed.
pub(in crate::store) struct IndexedArchive {
    /// Its name, relative to the store's folder.
    pub name: String,
    pub archive: Archive,
    pub length: u64,
    pub beginning: Beginning,
    sha256: Hex,
    index: Mutex<Option<EventIndex>>,
}

/// The archives that were asked so far. What was checked once is not checked again: the handle stays on the same file.
#[derive(Default)]
pub(in crate::store) struct ArchiveCache(Mutex<HashMap<String, Arc<IndexedArchive>>>);

impl ArchiveCache {
    /// The archive of this name, which must have this digest; `None` if it is not there.
    pub fn find(
        &self,
        disk: &dyn Disk,
        layout: &Layout,
        name: &str,
        digest: &str,
    ) -> Result<Option<Arc<IndexedArchive>>> {
        let path = layout.inside(name);
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned();
        if let Some(indexed) = known.filter(|indexed| indexed.sha256.text() == digest && is_at(disk, &path, indexed)) {
            return Ok(Some(indexed));
        }
        let archive = match archive::open(disk, &path) {
            Ok(archive) => archive,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault).or_damage(name),
        };
        let sha256 = check_digest(&*archive.packed, name, digest)?;
        let length = archive.log.length().or_damage(name)?;
        let indexed = Arc::new(IndexedArchive {
            name: name.to_owned(),
            beginning: beginning_of(&*archive.log, length).or_damage(name)?,
            archive,
            length,
            sha256,
            index: Mutex::default(),
        });
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(name.to_owned(), Arc::clone(&indexed));
        Ok(Some(indexed))
    }

    /// Gives back the memory that reading took.
    pub fn rest(&self) {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.values().for_each(|indexed| indexed.archive.rest());
    }
}

fn is_at(disk: &dyn Disk, path: &Path, indexed: &IndexedArchive) -> bool {
    let (here, there) = (indexed.archive.packed.identity(), disk.status(path));
    matches!((here, there), (Ok(here), Ok(there)) if here == there.identity)
}

impl IndexedArchive {
    /// Where the lines begin that may be about a record, in order; other ids may have the same hash.
    pub fn places(&self, disk: &dyn Disk, layout: &Layout, threads: usize, id: &[u8]) -> Result<Vec<u64>> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let entries = match &*index {
            Some(entries) => entries.clone(),
            None => {
                let path = layout.history_index(&self.name);
                let entries = match EventIndex::open(disk, &path, &self.sha256).ok().flatten() {
                    Some(stored) => stored,
                    None => {
                        let made = encoded(&self.sha256, &self.make_index(threads)?);
                        // It is derived: if it cannot be written, it is made again next time.
                        let _ = write(disk, layout, &self.name, &made);
                        EventIndex {
                            count: number(&made, COUNT_AT),
                            file: Arc::new(Bytes(made)),
                        }
                    }
                };
                index.insert(entries).clone()
            }
        };
        drop(index);
        let hash = hash_of(id);
        let mut places = Vec::new();
        let mut at = entries.first_of(hash).or_damage(&self.name)?;
        while let Some((_, place)) = entries
            .get(at)
            .or_damage(&self.name)?
            .filter(|(found, _)| *found == hash)
        {
            places.push(place);
            at += 1;
        }
        Ok(places)
    }

    fn make_index(&self, threads: usize) -> Result<Vec<(u64, u64)>> {
        let mut mentions = Mentions::default();
        let mut walk = Walk::new(None);
        let mut sink = Counted::by(|known| mentions.take(known));
        walk.go(&*self.archive.log, self.length, Reading::new(threads), &mut sink)
            .or_damage(&self.name)?;
        if let Some(first) = walk.follower.damage.first() {
            return Err(damaged(&self.name, first));
        }
        Ok(mentions.sorted())
    }
}

/// The hash of an id as it stands between quotes.
fn hash_of(id: &[u8]) -> u64 {
    let raw = sha256(id).raw();
    raw[..8].iter().fold(0, |sum, b| sum << 8 | u64::from(*b))
}

/// Sorted pairs of hash and offset, in a file whose digest was right when it was opened, or in memory.
#[derive(Clone)]
struct EventIndex {
    file: Arc<dyn DiskFile>,
    count: u64,
}

impl EventIndex {
    /// Opens an index; `None` if it is not there, of another version, of another archive, or not whole.
    fn open(disk: &dyn Disk, path: &Path, archive: &Hex) -> io::Result<Option<Self>> {
        let file = match disk.open(path, Access::Read) {
            Ok(file) => file,
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        };
        let mut header = Vec::new();
        read_upto(&*file, &mut header, 0, HEADER_BYTES)?;
        let count = number(&header, COUNT_AT);
        let wanted = count
            .checked_mul(ENTRY_BYTES as u64)
            .and_then(|bytes| bytes.checked_add(HEADER_BYTES as u64));
        let fits = header.get(..8) == Some(MAGIC) && header.get(8..40) == Some(&archive.raw());
        let (true, Some(body)) = (fits, wanted) else {
            return Ok(None);
        };
        if file.length()? != body + DIGEST_BYTES as u64 {
            return Ok(None);
        }
        let mut hasher = Hasher::default();
        let mut buffer = Vec::new();
        let mut offset = 0;
        while offset < body {
            buffer.clear();
            let step = (body - offset).min(BUFFER_BYTES) as usize;
            if read_upto(&*file, &mut buffer, offset, step)? == 0 {
                return Ok(None);
            }
            hasher.update(&buffer);
            offset += buffer.len() as u64;
        }
        buffer.clear();
        read_upto(&*file, &mut buffer, body, DIGEST_BYTES)?;
        Ok((buffer == hasher.finish().raw()).then_some(Self { file, count }))
    }

    fn get(&self, index: u64) -> io::Result<Option<(u64, u64)>> {
        if index >= self.count {
            return Ok(None);
        }
        let mut entry = Vec::with_capacity(ENTRY_BYTES);
        let offset = HEADER_BYTES as u64 + index * ENTRY_BYTES as u64;
        read_upto(&*self.file, &mut entry, offset, ENTRY_BYTES)?;
        Ok(Some((number(&entry, 0), number(&entry, 8))))
    }

    /// The first entry whose hash is not less.
    fn first_of(&self, hash: u64) -> io::Result<u64> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(middle)?.is_some_and(|(found, _)| found < hash) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok(low)
    }
}

fn number(bytes: &[u8], at: usize) -> u64 {
    let digits = bytes.get(at..at + 8).unwrap_or_default();
    digits.iter().rev().fold(0, |sum, b| sum << 8 | u64::from(*b))
}

fn encoded(archive: &Hex, entries: &[(u64, u64)]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + entries.len() * ENTRY_BYTES + DIGEST_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&archive.raw());
    bytes.extend_from_slice(&(entries.len() as u64).to_le_bytes());
    for (hash, offset) in entries {
        bytes.extend_from_slice(&hash.to_le_bytes());
        bytes.extend_from_slice(&offset.to_le_bytes());
    }
    let own = sha256(&bytes).raw();
    bytes.extend_from_slice(&own);
    bytes
}

/// Writes an index under a draft name and renames it. It is not synced: a torn index is rebuilt.
fn write(disk: &dyn Disk, layout: &Layout, name: &str, bytes: &[u8]) -> io::Result<()> {
    let path = &layout.history_index(name);
    disk.create_dir(&layout.indexes())?;
    let draft = own_draft(path);
    let written = disk.create(&draft).and_then(|file| file.write_at(bytes, 0));
    // INVARIANT: an erasure removes archives before drafts, so no index outlives its archive.
    let named = written.and_then(|()| disk.status(&layout.inside(name)).map(|_| ()));
    named.and_then(|()| disk.rename(&draft, path)).inspect_err(|_| {
        // One that stays is taken away by the next compaction.
        let _ = disk.remove(&draft);
    })
}

/// Whether an index that would be believed says something else than the archive; false if there is none.
pub(in crate::store) fn is_forged(disk: &dyn Disk, path: &Path, archive: &Hex, mentions: Mentions) -> io::Result<bool> {
    let Some(stored) = EventIndex::open(disk, path, archive)? else {
        return Ok(false);
    };
    let right = mentions.sorted();
    if stored.count != right.len() as u64 {
        return Ok(true);
    }
    let mut offset = HEADER_BYTES as u64;
    let mut buffer = Vec::new();
    for part in right.chunks(BUFFER_BYTES as usize / ENTRY_BYTES) {
        buffer.clear();
        read_upto(&*stored.file, &mut buffer, offset, part.len() * ENTRY_BYTES)?;
        offset += buffer.len() as u64;
        let entries =
            (0..part.len()).map(|at| (number(&buffer, at * ENTRY_BYTES), number(&buffer, at * ENTRY_BYTES + 8)));
        if !entries.eq(part.iter().copied()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Where the events stand that speak of records, by the hash of the id.
#[derive(Default)]
pub(in crate::store) struct Mentions(Vec<(u64, u64)>);

impl Mentions {
    pub fn take(&mut self, known: Known<'_>) {
        each_subject(known.op, known.id, known.record, |id| {
            self.0.push((hash_of(id), known.offset))
        });
    }

    fn sorted(mut self) -> Vec<(u64, u64)> {
        self.0.sort_unstable();
        self.0
    }
}

/// What an archive holds may be wrong: that is damage, and no failure of the disk.
pub(in crate::store) trait OrDamage<T> {
    fn or_damage(self, name: &str) -> Result<T>;
}

impl<T> OrDamage<T> for std::io::Result<T> {
    fn or_damage(self, name: &str) -> Result<T> {
        self.map_err(|fault| match damage_in(&fault) {
            Some(reason) => archive_altered(name, reason),
            None => Error::io(Path::new(name), fault),
        })
    }
}

/// That an archive is not what it was.
pub(in crate::store) fn archive_altered(name: &str, reason: String) -> Error {
    Error::Corrupted(Box::new(finding(name, DamageKind::ArchiveAltered, reason)))
}

/// What was found in the log that an archive holds.
pub(in crate::store) fn damaged(name: &str, found: &Damage) -> Error {
    Error::Corrupted(Box::new(Damage {
        path: name.to_owned(),
        ..found.clone()
    }))
}

/// An archive is believed only if it is the one that the log names.
pub(in crate::store) fn check_digest(packed: &dyn DiskFile, name: &str, digest: &str) -> Result<Hex> {
    let found = archive::file_digest(packed).at(Path::new(name))?;
    if found.text() == digest {
        Ok(found)
    } else {
        Err(archive_altered(name, format!("its SHA-256 is {}", found.text())))
    }
}

/// Why the events before a sentinel cannot be told.
pub(in crate::store) fn not_kept(sentinel: &Sentinel) -> Error {
    Error::HistoryUnavailable {
        first_seq: sentinel.last_seq + 1,
        reason: why_not_kept(sentinel),
    }
}

pub(in crate::store) fn why_not_kept(sentinel: &Sentinel) -> String {
    match sentinel.safe_archive() {
        Some((name, _)) => format!("{name} is not there"),
        None => "the log was compacted there and its history not kept".to_owned(),
    }
}
