//! Keeps a text index up to date with every write before the question, seals it, and keeps it in files.
//!
//! It lies beside the store under a lock of its own. Whoever searches asks the store what changed and takes that in. When
//! much has changed, a thread that nobody waits for seals it again beside the searches.
//! INVARIANT: nobody waits for the index while holding the store.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

use crate::store::Store;
use crate::store::history::lines::LiveLog;
use crate::store::vectors::{Narrowed, Nearby, Recent};
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Disk, DiskFile, Identity, read_whole};
use chronolog::error::Result;
use chronolog::event::line::{Event, Trust};
use chronolog::hint::line_from;
use chronolog::json::Span;
use chronolog::layout::{Layout, index_name, is_text_draft, text_index_seq};
use chronolog::log::Site;
use chronolog::log::files::is_ours;
use chronolog::memory;
use chronolog::origin::Origin;
use chronolog::verify::finding;
use chronomemory_search::text::file::{self, Source};
use chronomemory_search::text::{CHOICE_ID, Fields, Sealed, TextFilter, TextIndex, difference, is_searched};
use chronomemory_state::state::{Class, Row, State, StateId, Watermark};

/// If more records changed at once, all are taken in again rather than copied out under the lock.
const MOST_CHANGES: usize = 20_000;
/// Unless that is less than this share of them.
const LARGEST_CHANGE: usize = 10;

/// What an index takes while it is made, for each record and for each byte of all records, and more.
const RECORD_BYTES: usize = 256;
const TEXT_BYTES: usize = 2;
/// What sealing takes of what is sealed already, and for each record, and more.
const SEALED_TIMES: usize = 3;
const SEALED_RECORD_BYTES: usize = 512;

/// Whether there is memory to make an index of so many records with so many bytes. Its lists are far too many to ask for
/// each of them.
pub(in crate::store) fn check_room(records: usize, bytes: usize) -> Result<()> {
    Ok(memory::could_have(records * RECORD_BYTES + bytes * TEXT_BYTES)?)
}

/// Whether there is memory to seal an index again.
pub(super) fn can_be_sealed(index: &TextIndex) -> bool {
    memory::could_have(SEALED_TIMES * index.sealed().bytes() + index.len() * SEALED_RECORD_BYTES).is_ok()
}

/// The index, and how far it knows the state.
#[derive(Default)]
pub(in crate::store) struct LiveTextIndex {
    kept: RwLock<Option<KeptIndex>>,
    /// The same as in `kept`, for those who hold the store.
    mark: Mutex<Option<IndexMark>>,
    /// One makes the first index, the others wait for it.
    pub(super) building: Mutex<()>,
    /// So much has changed that the index should be sealed again.
    pub(super) ragged: AtomicBool,
    /// What the sealed part was made of, until it is on disk. INVARIANT: set only by those who may write `kept`.
    unsaved: Mutex<Option<Source>>,
    pub narrowed: Narrowed,
}

pub(in crate::store) struct KeptIndex {
    pub(in crate::store) index: TextIndex,
    /// How far it knows the state.
    pub(in crate::store) mark: Watermark,
    /// What it was made of, all changes included.
    pub(super) source: Source,
}

struct IndexMark {
    known: Watermark,
    choice: Option<Vec<u8>>,
}

/// What an index lacks.
pub(super) enum Lack {
    Nothing,
    Changes(ChangedRows),
    Everything,
}

/// Rows that changed, copied out of the state, and what the log says then.
pub(super) struct ChangedRows {
    pub mark: Watermark,
    pub rows: Vec<CopiedRow>,
    pub source: Source,
}

impl ChangedRows {
    /// What an index does not know that knows so much; `None` if all should be taken in again.
    pub fn since(log: LiveLog<'_>, known: &Watermark, choice: Option<&[u8]>) -> Option<Self> {
        let (state, changes) = (log.state, log.state.changes());
        let slots: HashSet<u32> = changes.since(known)?.iter().copied().collect();
        let few = MOST_CHANGES.max(state.slot_count() / LARGEST_CHANGE);
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

    /// The index, held as it is. INVARIANT: whoever holds it waits for nothing that the holder of a store may hold,
    /// unless it is the store.
    pub fn kept(&self) -> RwLockReadGuard<'_, Option<KeptIndex>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn mark(&self) -> MutexGuard<'_, Option<IndexMark>> {
        self.mark.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn lack(&self, log: LiveLog<'_>) -> Lack {
        let mark = self.mark();
        let Some(mark) = mark.as_ref() else {
            return Lack::Everything;
        };
        if !mark.known.is_behind(log.state.changes()) {
            return Lack::Nothing;
        }
        let changed = ChangedRows::since(log, &mark.known, mark.choice.as_deref());
        changed.map_or(Lack::Everything, Lack::Changes)
    }

    /// Takes changes in. If that is far too much by now, all is sealed again.
    pub(super) fn take_in(&self, changed: &ChangedRows) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        let lacks = |known: &Watermark| known.is_of_same_state(&changed.mark) && known.is_before(&changed.mark);
        let Some(kept) = kept.as_mut().filter(|kept| lacks(&kept.mark)) else {
            return;
        };
        changed.rows.iter().for_each(|row| row.put_into(&mut kept.index));
        kept.mark = changed.mark.same();
        if let Some(mark) = self.mark().as_mut().filter(|mark| lacks(&mark.known)) {
            mark.known = changed.mark.same();
        }
        kept.source = changed.source.clone();
        if kept.index.is_overgrown() && can_be_sealed(&kept.index) {
            kept.index.seal();
            *self.unsaved() = Some(changed.source.clone());
        }
        self.ragged.store(kept.index.is_ragged(), Ordering::Relaxed);
    }

    /// Makes a sealed index of the present one, while it is searched; gives what it was made of.
    pub(super) fn sealed_copy(&self) -> Option<KeptIndex> {
        let (sealing, mark, source) = {
            let kept = self.kept();
            let kept = kept.as_ref().filter(|kept| kept.index.is_ragged())?;
            // Where there is no memory for it, searches go on with what there is.
            if !can_be_sealed(&kept.index) {
                return None;
            }
            (kept.index.sealing(), kept.mark.same(), kept.source.clone())
        };
        Some(KeptIndex {
            index: sealing.run(),
            mark,
            source,
        })
    }

    /// Puts a sealed copy in place of the present index, unless that knows more by now; says whether it did, or never can.
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
            mark.known = now.mark.same();
        }
        *self.unsaved() = Some(source.clone());
        self.ragged.store(false, Ordering::Relaxed);
        true
    }

    fn unsaved(&self) -> MutexGuard<'_, Option<Source>> {
        self.unsaved.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a sealed part on disk for others, while searches go on.
    pub(super) fn save(&self, files: &TextFiles) {
        if self.unsaved().is_none() {
            return;
        }
        // Not while the index is held: writing a file takes longer than others may wait for their changes.
        let (sealed, source) = {
            let kept = self.kept();
            let sealed = kept.as_ref().map(|kept| Arc::clone(kept.index.sealed()));
            (sealed, self.unsaved().take())
        };
        if let (Some(sealed), Some(source)) = (sealed, source) {
            files.keep(&source, &sealed);
        }
    }

    /// Leaves the rows of the records that pass; `None` if the index is no longer that of the state they were taken from.
    pub fn narrow(
        &self,
        mut nearby: Nearby,
        recent: &Recent,
        filter: &TextFilter,
        state_id: &StateId,
    ) -> Option<Nearby> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let known = kept.as_ref().filter(|kept| kept.mark.is_of(state_id))?;
        self.narrowed
            .narrow(&mut nearby, &known.index, &known.mark, filter, recent);
        Some(nearby)
    }

    pub(super) fn keep(&self, index: TextIndex, mark: Watermark, source: Source, is_saved: bool) {
        let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
        *self.mark() = Some(IndexMark {
            known: mark.same(),
            choice: source.choice.clone(),
        });
        *self.unsaved() = (!is_saved).then(|| source.clone());
        self.narrowed.forget();
        self.ragged.store(index.is_ragged(), Ordering::Relaxed);
        *kept = Some(KeptIndex { index, mark, source });
    }
}

/// What an index of a state is made of.
pub(super) fn source_of(log: LiveLog<'_>) -> Source {
    Source {
        seq: log.last_seq(),
        head: log.head(),
        choice: log.state.get(CHOICE_ID).map(Cow::into_owned),
    }
}

/// A row that outlives the look at the state; without anything held if there is nothing to search any more.
pub(in crate::store) struct CopiedRow {
    slot: u32,
    held: Option<HeldRow>,
}

/// What is held of it.
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

/// A smaller index is made again faster than a file is worth.
const FEWEST_DOCS: usize = 20_000;
/// If more than this share of the records changed since, all are taken in again.
const LARGEST_CHANGE_OF_FILE: usize = 4;

/// Where the files of a store's text index are.
pub(in crate::store) struct TextFiles {
    site: Arc<Site>,
    /// The log that the store knew then.
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
        let bytes = |name: &String| read_whole(&*self.site.disk, &folder.join(name)).ok().flatten();
        names.iter().filter_map(bytes).find_map(|bytes| file::read(&bytes))
    }

    /// Writes a file, unless it would be small or somebody else writes one. It is derived: if it cannot be written, the index is
    /// made again next time; if a power failure tears it, its digest says so.
    pub fn keep(&self, source: &Source, sealed: &Sealed) {
        if sealed.len() >= FEWEST_DOCS {
            let _ = self.write(source, sealed);
        }
    }

    fn write(&self, source: &Source, sealed: &Sealed) -> io::Result<()> {
        let folder = self.site.layout.text_indexes();
        self.site.disk.create_dir(&folder)?;
        let lock = self.site.disk.lock_file(&self.site.layout.text_lock())?;
        if !lock.acquire(Duration::ZERO)? {
            return Ok(());
        }
        let path = self.site.layout.text_index(source.seq, &source.head);
        let draft = path.with_extension("tmp");
        let outcome = self.site.disk.create(&draft).and_then(|file| {
            file.write_at(&file::spell(source, sealed), 0)?;
            // INVARIANT: the log is looked at when the draft is there, and whoever erases takes drafts away before files: what
            // is erased meanwhile does not come back by this hand.
            match self.site.disk.status(self.site.log()) {
                Ok(now) if Some(now.identity) == self.log => self.site.disk.rename(&draft, &path),
                _ => {
                    self.site.disk.remove(&draft)?;
                    Err(io::ErrorKind::NotFound.into())
                }
            }
        });
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
        outcome
    }
}

/// What a file's documents are worth to a state: an index that knows the file, and what changed since.
pub(in crate::store) struct Attached {
    pub index: TextIndex,
    pub changed: Vec<CopiedRow>,
}

/// Puts a file's documents beside a state, if they are of the same history.
pub(in crate::store) fn attach(live: LiveLog<'_>, source: &Source, mut sealed: Sealed) -> Option<Attached> {
    let state = live.state;
    let log = live.open?;
    if !is_in(&*log.file, log.walk.end, &log.origin, state, source) {
        return None;
    }
    let is_it = |slot: u32, id: &[u8]| state.is_id_of(slot, id);
    sealed.settle(|slot, id| {
        if is_it(slot, id) {
            Some(slot)
        } else {
            state.slot_spelled(id)
        }
    });
    let index = TextIndex::new(Fields::chosen(source.choice.as_deref()), sealed);
    let is_new = |slot: &u32| {
        let seq = state.last_seq_of(*slot);
        seq.is_some_and(|seq| seq > source.seq || index.doc_of(*slot).is_none())
    };
    let news = (0..state.slot_count() as u32).filter(is_new);
    let slots: Vec<u32> = news.filter(|slot| is_searched(&state.spelled_id(*slot))).collect();
    if slots.len() > FEWEST_DOCS.max(state.len() / LARGEST_CHANGE_OF_FILE) {
        return None;
    }
    let changed = slots.into_iter().map(|slot| CopiedRow::of(state, slot)).collect();
    Some(Attached { index, changed })
}

/// Whether a log holds the event that a file ends with, or begins right after it, and fields are chosen as they were.
fn is_in(log: &dyn DiskFile, end: u64, origin: &Origin, state: &State, source: &Source) -> bool {
    let timeline = state.timeline();
    if source.choice.as_deref() != state.get(CHOICE_ID).as_deref() || !timeline.is_rising() {
        return false;
    }
    if let Origin::Ours(sentinel) = origin
        && (sentinel.last_seq, &sentinel.previous_head) == (source.seq, &source.head)
    {
        return true;
    }
    let offset = timeline
        .index_of(source.seq)
        .and_then(|index| timeline.offset(index as usize));
    let line = offset.and_then(|offset| line_from(log, offset, end).ok());
    line.is_some_and(|line| {
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        let event = Event::read(line, Trust::Hashes);
        event.is_ok_and(|event| event.spans.seq == source.seq && event.hash(line).text() == source.head)
    })
}

/// The files in which a sealed text index may lie, the newest first.
pub(in crate::store) fn text_names(disk: &dyn Disk, layout: &Layout) -> Vec<String> {
    let mut names = disk.list(&layout.text_indexes()).unwrap_or_default();
    names.retain(|name| text_index_seq(name).is_some());
    names.sort_by_key(|name| std::cmp::Reverse(text_index_seq(name)));
    names
}

/// Compares every file that would be believed with what the records of a state say.
pub(in crate::store) fn altered_texts(
    disk: &dyn Disk,
    layout: &Layout,
    (log, end, origin): (&dyn DiskFile, u64, &Origin),
    state: &State,
    threads: usize,
) -> Vec<Damage> {
    let base_seq = match origin {
        Origin::Ours(sentinel) => sentinel.last_seq,
        Origin::Nothing | Origin::Foreign => 0,
    };
    let mut found = Vec::new();
    for name in text_names(disk, layout) {
        let path = layout.text_indexes().join(&name);
        let Some((source, sealed)) = read_whole(disk, &path)
            .ok()
            .flatten()
            .and_then(|bytes| file::read(&bytes))
        else {
            continue;
        };
        if !is_in(log, end, origin, state, &source) {
            continue;
        }
        let fields = Fields::chosen(source.choice.as_deref());
        if let Some(reason) = difference(&sealed, state, &fields, (source.seq, base_seq), threads) {
            found.push(finding(&index_name(&path), DamageKind::IndexAltered, reason));
        }
    }
    found
}
