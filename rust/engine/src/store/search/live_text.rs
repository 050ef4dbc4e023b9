//! Keeps a text index up to date with every earlier write, seals it, and keeps it in files.
//!
//! The index has a lock of its own beside the store. A search copies the changed records from the store and indexes them. When
//! much has changed, a background thread seals the index while searches go on.
//! INVARIANT: no thread waits for the index while it holds the store.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use crate::store::Store;
use crate::store::history::lines::LiveLog;
use crate::store::vectors::VectorSearch;
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::Hex;
use chronolog::disk::{Access, Disk, DiskFile, Identity};
use chronolog::error::Result;
use chronolog::event::line::{Event, Trust};
use chronolog::hint::line_from;
use chronolog::json::Span;
use chronolog::layout::{Layout, index_name, is_text_draft, text_index_seq};
use chronolog::log::Site;
use chronolog::log::files::{is_ours, remove_ours};
use chronolog::memory;
use chronolog::origin::Origin;
use chronolog::verify::finding;
use chronomemory_search::text::file::{self, Source};
use chronomemory_search::text::{CHOICE_ID, Fields, Sealed, TextFilter, TextIndex, difference, is_searched};
use chronomemory_state::state::{Class, Row, State, StateId, Watermark};

/// If more records changed at once, the index is made again: they are not copied under the lock.
const MOST_CHANGES: usize = 20_000;
/// Unless that is less than this share of them.
const LARGEST_CHANGE: usize = 10;

/// An upper bound of the memory to make an index: per record, and per byte of all records.
const RECORD_BYTES: usize = 256;
const TEXT_BYTES: usize = 2;
/// An upper bound of the memory to seal an index: as a multiple of the sealed part, and per record.
const SEALED_TIMES: usize = 3;
const SEALED_RECORD_BYTES: usize = 512;

/// Checks that there is memory to make an index of records with a number of bytes. Its lists are too many to reserve each.
pub(in crate::store) fn check_room(records: usize, bytes: usize) -> Result<()> {
    Ok(memory::could_have(records * RECORD_BYTES + bytes * TEXT_BYTES)?)
}

/// Whether there is memory to seal an index again.
pub(super) fn can_be_sealed(index: &TextIndex) -> bool {
    memory::could_have(SEALED_TIMES * index.sealed().bytes() + index.len() * SEALED_RECORD_BYTES).is_ok()
}

/// The index, and the changes of the state that it includes.
#[derive(Default)]
pub(in crate::store) struct LiveTextIndex {
    kept: RwLock<Option<KeptIndex>>,
    /// A copy from `kept`, for threads that hold the store.
    mark: Mutex<Option<IndexMark>>,
    /// Held by the thread that makes the first index.
    pub(super) building: Mutex<()>,
    /// The index should be sealed again.
    pub(super) ragged: AtomicBool,
    /// The source of the sealed part, until it is on disk. INVARIANT: set only while `kept` is locked for writing.
    unsaved: Mutex<Option<Source>>,
    /// A file failed a check, and this process opens no other.
    avoids_files: AtomicBool,
}

pub(in crate::store) struct KeptIndex {
    pub(in crate::store) index: TextIndex,
    /// The changes of the state that it includes.
    pub(in crate::store) mark: Watermark,
    /// Its source, all changes included.
    pub(super) source: Source,
}

struct IndexMark {
    known: Watermark,
    choice: Option<Vec<u8>>,
    /// Set when the file of the index fails a check.
    failed: Option<Arc<AtomicBool>>,
}

impl IndexMark {
    fn of(kept: &KeptIndex) -> Self {
        Self {
            known: kept.mark.clone(),
            choice: kept.source.choice.clone(),
            failed: kept.index.mark(),
        }
    }

    fn has_failed(&self) -> bool {
        self.failed
            .as_ref()
            .is_some_and(|failed| failed.load(Ordering::Relaxed))
    }
}

/// The changes that an index lacks.
pub(super) enum Lack {
    Nothing,
    Changes(ChangedRows),
    Everything,
}

/// Changed rows, copied out of the state, and the source that includes them.
pub(super) struct ChangedRows {
    pub mark: Watermark,
    pub rows: Vec<CopiedRow>,
    pub source: Source,
}

impl ChangedRows {
    /// The changes after a watermark; `None` if the index should be made again.
    pub fn since(log: LiveLog<'_>, known: &Watermark, choice: Option<&[u8]>) -> Option<Self> {
        let (state, changes) = (log.state, log.state.changes());
        let slots: HashSet<u32> = changes.since(known)?.iter().copied().collect();
        let few = MOST_CHANGES.max(state.slots.len() / LARGEST_CHANGE);
        (slots.len() <= few && choice == state.get(CHOICE_ID).as_deref()).then(|| Self {
            mark: changes.watermark(),
            rows: slots.into_iter().map(|slot| CopiedRow::of(state, slot)).collect(),
            source: source_of(log),
        })
    }
}

impl LiveTextIndex {
    /// Whether it should be sealed again.
    pub fn wants_sealing(&self) -> bool {
        self.ragged.load(Ordering::Relaxed)
    }

    /// The index, locked for reading. INVARIANT: of all that a thread with the store may hold, a thread with this lock waits only
    /// for the store itself.
    pub fn kept(&self) -> RwLockReadGuard<'_, Option<KeptIndex>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> MutexGuard<'_, Option<IndexMark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lack(&self, log: LiveLog<'_>) -> Lack {
        let mark = self.mark();
        let Some(mark) = mark.as_ref().filter(|mark| !mark.has_failed()) else {
            return Lack::Everything;
        };
        if !mark.known.is_behind(log.state.changes()) {
            return Lack::Nothing;
        }
        let changed = ChangedRows::since(log, &mark.known, mark.choice.as_deref());
        changed.map_or(Lack::Everything, Lack::Changes)
    }

    /// Indexes changes, and seals the index again if they became too many.
    pub(super) fn take_in(&self, changed: &ChangedRows) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let lacks = |known: &Watermark| known.is_of_same_state(&changed.mark) && known.is_before(&changed.mark);
        let Some(kept) = kept.as_mut().filter(|kept| lacks(&kept.mark)) else {
            return;
        };
        changed.rows.iter().for_each(|row| row.put_into(&mut kept.index));
        kept.mark = changed.mark.clone();
        kept.source = changed.source.clone();
        if kept.index.is_overgrown() && can_be_sealed(&kept.index) {
            kept.index.seal();
            *self.unsaved() = Some(changed.source.clone());
        }
        if let Some(mark) = self.mark().as_mut() {
            *mark = IndexMark::of(kept);
        }
        self.ragged.store(kept.index.is_ragged(), Ordering::Relaxed);
    }

    /// A sealed copy of the index, with its source, made while the index is searched.
    pub(super) fn sealed_copy(&self) -> Option<KeptIndex> {
        let (sealing, mark, source) = {
            let kept = self.kept();
            let kept = kept.as_ref().filter(|kept| kept.index.is_ragged())?;
            // Without memory for it, searches go on with the present index.
            if !can_be_sealed(&kept.index) {
                return None;
            }
            (kept.index.sealing(), kept.mark.clone(), kept.source.clone())
        };
        Some(KeptIndex {
            index: sealing.run()?,
            mark,
            source,
        })
    }

    /// Replaces the index by its sealed copy. False if the index includes later changes now; true also if it is of another state.
    pub(super) fn replace(&self, sealed: &mut KeptIndex, source: &Source) -> bool {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let Some(now) = kept.as_mut().filter(|now| now.mark.is_of_same_state(&sealed.mark)) else {
            return true;
        };
        if sealed.mark.is_before(&now.mark) {
            return false;
        }
        std::mem::swap(now, sealed);
        if let Some(mark) = self.mark().as_mut() {
            *mark = IndexMark::of(now);
        }
        *self.unsaved() = Some(source.clone());
        self.ragged.store(false, Ordering::Relaxed);
        true
    }

    fn unsaved(&self) -> MutexGuard<'_, Option<Source>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes the sealed part to disk while searches go on, and reads it from there afterwards.
    pub(super) fn save(&self, files: &TextFiles) {
        if self.unsaved().is_none() {
            return;
        }
        // The index is not locked meanwhile: writing a file takes longer than a search may wait.
        let (sealed, source) = {
            let kept = self.kept();
            let sealed = kept.as_ref().map(|kept| Arc::clone(kept.index.sealed()));
            (sealed, self.unsaved().take())
        };
        let (Some(sealed), Some(source)) = (sealed, source) else {
            return;
        };
        let Some(same) = files.keep(&source, &sealed).filter(|_| !self.avoids_files()) else {
            return;
        };
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(kept) = kept.as_mut().filter(|kept| Arc::ptr_eq(kept.index.sealed(), &sealed)) {
            kept.index.take_sealed(same);
            if let Some(mark) = self.mark().as_mut() {
                *mark = IndexMark::of(kept);
            }
        }
    }

    /// Whether a file failed a check before.
    pub(super) fn avoids_files(&self) -> bool {
        self.avoids_files.load(Ordering::Relaxed)
    }

    /// Drops an index whose file failed a check, and removes the file. It is made again from the records.
    pub(super) fn discard_failed(&self, files: &TextFiles) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        if kept.as_ref().is_some_and(|kept| kept.index.has_failed()) {
            *kept = None;
            *self.mark() = None;
            *self.unsaved() = None;
            self.avoids_files.store(true, Ordering::Relaxed);
            drop(kept);
            files.remove();
        }
    }

    /// Leaves the rows of records that have the tags of a filter. False if the index is no longer that of the state that the rows
    /// were taken from, or its file failed a check.
    pub fn keep_tagged(&self, rows: &mut VectorSearch, filter: &TextFilter, state_id: &StateId) -> bool {
        if filter.tags.is_empty() {
            return true;
        }
        let kept = self.kept();
        let Some(known) = kept.as_ref().filter(|kept| kept.mark.is_of(state_id)) else {
            return false;
        };
        let question = known.index.question(&[], filter);
        rows.keep(&|slot| known.index.doc_of(slot).is_some_and(|doc| question.passes(doc)));
        !known.index.has_failed()
    }

    /// Sets the index; `unsaved` is the source of its sealed part if that is not on disk.
    pub(super) fn keep(&self, new: KeptIndex, unsaved: Option<Source>) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        *self.mark() = Some(IndexMark::of(&new));
        *self.unsaved() = unsaved;
        self.ragged.store(new.index.is_ragged(), Ordering::Relaxed);
        *kept = Some(new);
    }
}

/// The source of an index of this state.
pub(super) fn source_of(log: LiveLog<'_>) -> Source {
    Source {
        origin: log.numbered_from(),
        events: log.state.timeline().len() as u32,
        seq: log.last_seq(),
        head: log.head(),
        choice: log.state.get(CHOICE_ID).map(Cow::into_owned),
    }
}

/// A copied row; `held` is `None` if the slot has no record to search.
pub(in crate::store) struct CopiedRow {
    slot: u32,
    held: Option<HeldRow>,
}

/// The copy of the row.
struct HeldRow {
    id_span: Span,
    record: Vec<u8>,
    class: Class,
    confidence: f64,
    seq: u64,
}

impl CopiedRow {
    /// The row in a slot.
    pub fn of(state: &State, slot: u32) -> Self {
        let held = state.row(slot).filter(|row| is_searched(row.id())).map(|row| HeldRow {
            id_span: row.id_span,
            record: row.record.into_owned(),
            class: row.class.clone(),
            confidence: row.confidence,
            seq: row.seq,
        });
        Self { slot, held }
    }

    /// Puts it into an index.
    pub fn put_into(&self, index: &mut TextIndex) {
        match &self.held {
            Some(held) => index.put(&Row {
                slot: self.slot,
                id_span: held.id_span,
                record: Cow::Borrowed(&held.record),
                class: &held.class,
                confidence: held.confidence,
                seq: held.seq,
            }),
            None => index.drop_slot(self.slot),
        }
    }
}

/// A smaller index is not written to a file: it is made again fast.
const FEWEST_DOCS: usize = 20_000;
/// If more than this share of the records changed since, the index is made again.
const LARGEST_CHANGE_OF_FILE: usize = 4;

/// Where the files of a store's text index are.
pub(in crate::store) struct TextFiles {
    site: Arc<Site>,
    /// The log when this was made.
    log: Option<Identity>,
}

impl TextFiles {
    /// Those in the folder of a store, for an index of the state that it has now.
    pub fn of(store: &Store) -> Self {
        Self {
            site: Arc::clone(&store.site),
            log: store.log.open().map(|log| log.identity),
        }
    }

    /// The newest file that is whole.
    pub fn newest(&self) -> Option<(Source, Sealed)> {
        let folder = self.site.layout.text_indexes();
        let names = text_names(&*self.site.disk, &self.site.layout);
        names.iter().find_map(|name| open(&*self.site.disk, &folder.join(name)))
    }

    /// Removes all files.
    fn remove(&self) {
        // Other processes find the damage of a file that cannot be removed as well.
        let _ = remove_ours(&*self.site.disk, &self.site.layout.text_indexes(), |name| {
            text_index_seq(name).is_some()
        });
    }

    /// Writes a file and opens it, unless it would be small or another process writes one. It is derived: if it cannot be written, the
    /// index is made again next time; if a power failure tears it, its checksums say so.
    pub fn keep(&self, source: &Source, sealed: &Sealed) -> Option<Sealed> {
        if sealed.len() < FEWEST_DOCS {
            return None;
        }
        let path = self.write(source, sealed).ok()??;
        let (found, same) = open(&*self.site.disk, &path)?;
        (found == *source && same.len() == sealed.len()).then_some(same)
    }

    fn write(&self, source: &Source, sealed: &Sealed) -> io::Result<Option<PathBuf>> {
        let folder = self.site.layout.text_indexes();
        self.site.disk.create_dir(&folder)?;
        let lock = self.site.disk.lock_file(&self.site.layout.text_lock())?;
        if !lock.acquire(Duration::ZERO)? {
            return Ok(None);
        }
        let path = self.site.layout.text_index(source.seq, &source.head);
        let draft = path.with_extension("tmp");
        let written = self.site.disk.create(&draft);
        let written = written.and_then(|file| file::write(file, source, sealed));
        // INVARIANT: the log is checked after the draft exists, and an erasure removes drafts before files, so that erased text does
        // not return.
        let is_current = self.site.disk.status(self.site.log());
        let is_current = is_current.is_ok_and(|now| Some(now.identity) == self.log);
        let outcome = match written {
            Ok(()) if is_current => self.site.disk.rename(&draft, &path),
            Ok(()) => self.site.disk.remove(&draft).and(Err(io::ErrorKind::NotFound.into())),
            Err(fault) => self.site.disk.remove(&draft).and(Err(fault)),
        };
        if outcome.is_ok() {
            for name in self.site.disk.list(&folder)? {
                let other = folder.join(&name);
                let is_named_so = text_index_seq(&name).is_some() || is_text_draft(&name);
                if is_named_so && other != path && is_ours(&*self.site.disk, &other) {
                    self.site.disk.remove(&other)?;
                }
            }
        }
        let _ = lock.release();
        outcome.map(|()| Some(path))
    }
}

fn open(disk: &dyn Disk, path: &Path) -> Option<(Source, Sealed)> {
    let file = disk.open(path, Access::Read).ok()?;
    file::open(file.map(u64::MAX).ok()?)
}

/// An index of a file's documents, and the rows that changed since.
pub(in crate::store) struct Attached {
    pub index: TextIndex,
    pub changed: Vec<CopiedRow>,
    /// The source of the documents in this log, if the file names another log and they can be written again.
    pub unsaved: Option<Source>,
    /// The file has documents whose records are gone.
    pub has_gone: bool,
}

/// Attaches a file's documents to a state, if they are of the same history.
pub(in crate::store) fn attach(live: LiveLog<'_>, source: &Source, mut sealed: Sealed) -> Option<Attached> {
    let (state, log) = (live.state, live.open?);
    let text_log = TextLog {
        file: &*log.file,
        end: log.walk.end,
        origin: &log.origin,
        numbers: live.numbered_from(),
        state,
    };
    let place = text_log.place_of(source, &sealed)?;
    let (mut unsaved, mut has_gone) = (None, false);
    if !place.is_numbered {
        sealed.renumber(|slot, id| match state.slots.is_of(slot, id) {
            true => Some(slot),
            false => state.slots.of_spelled(id),
        });
        // Documents can be written as they are only if none is gone.
        has_gone = sealed.has_gone();
        unsaved = (!has_gone).then(|| text_log.renamed(source, &place)).flatten();
    }
    let index = TextIndex::new(Fields::chosen(source.choice.as_deref()), sealed);
    let slots: HashSet<u32> = if place.is_numbered {
        state.timeline().slots_from(place.events).collect()
    } else {
        let is_new = |slot: &u32| {
            let seq = state.last_seq_of(*slot);
            seq.is_some_and(|seq| seq > source.seq || index.doc_of(*slot).is_none())
        };
        let news = (0..state.slots.len() as u32).filter(is_new);
        news.filter(|slot| is_searched(&state.slots.id(*slot))).collect()
    };
    if slots.len() > FEWEST_DOCS.max(state.len() / LARGEST_CHANGE_OF_FILE) {
        return None;
    }
    let changed = slots.into_iter().map(|slot| CopiedRow::of(state, slot)).collect();
    Some(Attached {
        index,
        changed,
        unsaved,
        has_gone,
    })
}

/// A log that a file may be of.
pub(in crate::store) struct TextLog<'a> {
    pub file: &'a dyn DiskFile,
    pub end: u64,
    pub origin: &'a Origin,
    /// The hash of its first event, if records have the numbers that they have in every process.
    pub numbers: Option<[u8; 32]>,
    pub state: &'a State,
}

/// Where a file's documents were made.
struct SourcePlace {
    /// How many events of the log they know.
    events: u32,
    /// Records have the numbers in the file.
    is_numbered: bool,
}

impl TextLog<'_> {
    /// Where the documents of a file were made, if the log holds the event that the file ends with, or begins right after it, and fields
    /// are chosen as they were.
    fn place_of(&self, source: &Source, sealed: &Sealed) -> Option<SourcePlace> {
        let timeline = self.state.timeline();
        if source.choice.as_deref() != self.state.get(CHOICE_ID).as_deref() || !timeline.is_rising() {
            return None;
        }
        let is_numbered =
            source.origin.is_some() && source.origin == self.numbers && sealed.slot_count() <= self.state.slots.len();
        if let Origin::Ours(sentinel) = self.origin
            && (sentinel.last_seq, &sentinel.previous_head) == (source.seq, &source.head)
        {
            return Some(SourcePlace {
                events: 1,
                is_numbered: false,
            });
        }
        let index = match is_numbered {
            true => source.events.checked_sub(1)?,
            false => timeline.index_of(source.seq)?,
        };
        let line = line_from(self.file, timeline.offset(index as usize)?, self.end).ok()?;
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let event = Event::read(line, Trust::Hashes).ok()?;
        (event.spans.seq == source.seq && event.hash(line).text() == source.head).then_some(SourcePlace {
            events: index + 1,
            is_numbered,
        })
    }

    /// What documents were made of, as this log names it.
    fn renamed(&self, source: &Source, place: &SourcePlace) -> Option<Source> {
        let origin = self.numbers?;
        let timeline = self.state.timeline();
        let index = place.events.checked_sub(1)?;
        Some(Source {
            origin: Some(origin),
            events: place.events,
            seq: timeline.seq(index),
            head: match index {
                0 => Hex::spell(&origin).text().to_owned(),
                _ => source.head.clone(),
            },
            choice: source.choice.clone(),
        })
    }
}

/// The files in which a sealed text index may lie, the newest first.
pub(in crate::store) fn text_names(disk: &dyn Disk, layout: &Layout) -> Vec<String> {
    let mut names = disk.list(&layout.text_indexes()).unwrap_or_default();
    names.retain(|name| text_index_seq(name).is_some());
    names.sort_by_key(|name| std::cmp::Reverse(text_index_seq(name)));
    names
}

/// Compares every file that would be used with what the records of a state say.
pub(in crate::store) fn altered_texts(
    disk: &dyn Disk,
    layout: &Layout,
    log: &TextLog<'_>,
    threads: usize,
) -> Vec<Damage> {
    let mut found = Vec::new();
    for name in text_names(disk, layout) {
        let path = layout.text_indexes().join(&name);
        let Some((source, sealed)) = open(disk, &path) else {
            continue;
        };
        let Some(place) = log.place_of(&source, &sealed) else {
            continue;
        };
        let fields = Fields::chosen(source.choice.as_deref());
        if let Some(reason) = difference(&sealed, log.state, &fields, source.seq, place.is_numbered, threads) {
            found.push(finding(&index_name(&path), DamageKind::IndexAltered, reason));
        }
    }
    found
}
