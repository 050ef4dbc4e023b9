//! Finds the events of an archive that speak of a record, by an index that lies beside it.
//!
//! Beside each archive that was ever asked lies an index: for every event the hash of the ids that it speaks of and its place, sorted.
//! It is derived: a container that names the digest of its archive. It is mapped, and made anew where a check of it fails.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronolog::archive::{self, Archive, damage_in};
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::{Hex, sha256};
use chronolog::disk::{Disk, DiskFile, Mapping, MemoryFile, open_if_there};
use chronolog::error::{At, Error, Result};
use chronolog::event::Known;
use chronolog::event::act::each_subject;
use chronolog::layout::{Layout, own_draft};
use chronolog::origin::{Beginning, Sentinel, beginning_of};
use chronolog::verify::{Counted, Walk, finding};
use chronolog::wal::reader::Reading;
use chronomemory_state::segment::{Column, Container, ContainerWriter, SectionId};

const MAGIC: &[u8; 8] = b"CMHIST\x00\x03";
const HASHES: SectionId = 1;
const PLACES: SectionId = 2;

/// An archive that is the one the log names, with its index once that was needed.
pub(in crate::store) struct IndexedArchive {
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
        let known = self.known().get(name).cloned();
        let is_current = |indexed: &Arc<IndexedArchive>| {
            let (here, there) = (indexed.archive.packed.identity(), disk.status(&path));
            let is_there = matches!((here, there), (Ok(here), Ok(there)) if here == there.identity);
            is_there && indexed.sha256.text() == digest
        };
        if let Some(indexed) = known.filter(is_current) {
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
        self.known().insert(name.to_owned(), Arc::clone(&indexed));
        Ok(Some(indexed))
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, Arc<IndexedArchive>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn rest(&self) {
        self.known().values().for_each(|indexed| indexed.archive.rest());
    }
}

impl IndexedArchive {
    /// Where the lines begin that may be about a record, in order; other ids may have the same hash.
    pub fn places(&self, disk: &dyn Disk, layout: &Layout, threads: usize, id: &[u8]) -> Result<Vec<u64>> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        let (path, hash) = (layout.history_index(&self.name), hash_of(id));
        if index.is_none() {
            *index = EventIndex::stored(disk, &path, &self.sha256).ok().flatten();
        }
        if let Some(places) = index.as_ref().and_then(|known| known.places(hash)) {
            return Ok(places);
        }
        let entries = self.make_index(threads)?;
        *index = write(disk, layout, &self.name, &self.sha256, &entries).ok().flatten();
        if index.is_none() {
            // It could not be written: it stays in memory and is made again next time.
            *index = Some(EventIndex::in_memory(&self.sha256, &entries).at(&path)?);
        }
        let places = entries.iter().filter(|(found, _)| *found == hash);
        Ok(places.map(|(_, place)| *place).collect())
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

fn hash_of(id: &[u8]) -> u64 {
    let raw = sha256(id).raw();
    raw[..8].iter().fold(0, |sum, b| sum << 8 | u64::from(*b))
}

/// The hashes of ids and the places of the events that speak of them, sorted by both, in a container.
struct EventIndex {
    file: Arc<Container>,
    hashes: Column<u64>,
    places: Column<u64>,
}

impl EventIndex {
    /// Opens an index; `None` if it is not there, of another version, of another archive, or not whole.
    fn stored(disk: &dyn Disk, path: &Path, archive: &Hex) -> io::Result<Option<Self>> {
        let mapped = open_if_there(disk, path)?.map(|file| file.map(u64::MAX));
        Ok(mapped.transpose()?.and_then(|bytes| Self::open(bytes, archive)))
    }

    fn in_memory(archive: &Hex, entries: &[(u64, u64)]) -> io::Result<Self> {
        let file = Arc::new(MemoryFile::default());
        encode(file.clone(), archive, entries)?;
        Self::open(file.map(u64::MAX)?, archive).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn open(bytes: Mapping, archive: &Hex) -> Option<Self> {
        let file = Arc::new(Container::open(bytes, &Arc::default())?);
        let (hashes, places) = (Column::of(&file, HASHES)?, Column::of(&file, PLACES)?);
        let fits = hashes.len() == places.len() && file.meta() == meta_of(archive);
        fits.then_some(Self { file, hashes, places })
    }

    /// The places beside a hash; `None` if a page fails its check.
    fn places(&self, hash: u64) -> Option<Vec<u64>> {
        let (mut low, mut high) = (0, self.hashes.len());
        while low < high {
            let middle = low.midpoint(high);
            match self.hashes.get(middle) < hash {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let its = (low..self.hashes.len()).take_while(|&at| self.hashes.get(at) == hash);
        let places = its.map(|at| self.places.get(at)).collect();
        (!self.file.has_failed()).then_some(places)
    }
}

fn meta_of(archive: &Hex) -> Vec<u8> {
    [&MAGIC[..], &archive.raw()].concat()
}

fn encode(file: Arc<dyn DiskFile>, archive: &Hex, entries: &[(u64, u64)]) -> io::Result<()> {
    let mut out = ContainerWriter::new(file);
    out.begin(HASHES)?;
    entries.iter().try_for_each(|(hash, _)| out.add(&hash.to_le_bytes()))?;
    out.begin(PLACES)?;
    let mut places = entries.iter().map(|(_, place)| place.to_le_bytes());
    places.try_for_each(|place| out.add(&place))?;
    out.finish(&meta_of(archive)).map(drop)
}

/// Writes an index under a draft name, renames it and opens it. It is not synced: a torn index is rebuilt.
fn write(
    disk: &dyn Disk,
    layout: &Layout,
    name: &str,
    archive: &Hex,
    entries: &[(u64, u64)],
) -> io::Result<Option<EventIndex>> {
    let path = &layout.history_index(name);
    disk.create_dir(&layout.indexes())?;
    let draft = own_draft(path);
    let written = disk.create(&draft).and_then(|file| encode(file, archive, entries));
    // INVARIANT: an erasure removes archives before drafts, so no index outlives its archive.
    let named = written.and_then(|()| disk.status(&layout.inside(name)).map(|_| ()));
    named.and_then(|()| disk.rename(&draft, path)).inspect_err(|_| {
        // One that stays is taken away by the next compaction.
        let _ = disk.remove(&draft);
    })?;
    EventIndex::stored(disk, path, archive)
}

/// Whether an index that would be believed says something else than the archive; false if there is none.
pub(in crate::store) fn is_forged(disk: &dyn Disk, path: &Path, archive: &Hex, mentions: Mentions) -> io::Result<bool> {
    let stored = EventIndex::stored(disk, path, archive)?;
    let Some(stored) = stored.filter(|stored| stored.file.check_all()) else {
        return Ok(false);
    };
    let entries = stored.hashes.all().iter().zip(stored.places.all());
    Ok(!entries.eq(mentions.sorted().iter().map(|(hash, place)| (hash, place))))
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
    match found.text() == digest {
        true => Ok(found),
        false => Err(archive_altered(name, format!("its SHA-256 is {}", found.text()))),
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
