//! Keeps a text index up to date with every write before the question, and seals it.
//!
//! It lies beside the store under a lock of its own. Whoever searches asks the store what changed and takes that in. When
//! much has changed, a thread that nobody waits for seals it again beside the searches ([`seal_text`]).
//! INVARIANT: nobody waits for the index while holding the store.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::text_files::{Attached, TextFiles, attach};
use super::text_rows::CopiedRow;
use crate::error::Result;
use crate::memory;
use crate::state::{StateId, Watermark};
use crate::store::Store;
use crate::store::live_log::LiveLog;
use crate::store::shared::Shared;
use crate::store::vectors::{Narrowed, Nearby, Recent};
use crate::text::file::Source;
use crate::text::{CHOICE_ID, Fields, Sealed, TextFilter, TextIndex};

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
fn can_be_sealed(index: &TextIndex) -> bool {
    memory::could_have(SEALED_TIMES * index.sealed().bytes() + index.len() * SEALED_RECORD_BYTES).is_ok()
}

/// The index, and how far it knows the state.
#[derive(Default)]
pub(in crate::store) struct LiveTextIndex {
    kept: RwLock<Option<KeptIndex>>,
    /// The same as in `kept`, for those who hold the store.
    mark: Mutex<Option<IndexMark>>,
    /// One makes the first index, the others wait for it.
    building: Mutex<()>,
    /// So much has changed that the index should be sealed again.
    ragged: AtomicBool,
    /// What the sealed part was made of, until it is on disk. INVARIANT: set only by those who may write `kept`.
    unsaved: Mutex<Option<Source>>,
    pub narrowed: Narrowed,
}

pub(in crate::store) struct KeptIndex {
    pub(in crate::store) index: TextIndex,
    /// How far it knows the state.
    pub(in crate::store) mark: Watermark,
    /// What it was made of, all changes included.
    source: Source,
}

struct IndexMark {
    known: Watermark,
    choice: Option<Vec<u8>>,
}

/// What an index lacks.
enum Lack {
    Nothing,
    Changes(ChangedRows),
    Everything,
}

/// Rows that changed, copied out of the state, and what the log says then.
struct ChangedRows {
    mark: Watermark,
    rows: Vec<CopiedRow>,
    source: Source,
}

impl ChangedRows {
    /// What an index does not know that knows so much; `None` if all should be taken in again.
    fn since(log: LiveLog<'_>, known: &Watermark, choice: Option<&[u8]>) -> Option<Self> {
        let (state, changes) = (log.state, log.state.changes());
        let slots: HashSet<u32> = changes.since(known)?.iter().copied().collect();
        let few = MOST_CHANGES.max(state.slot_count() / LARGEST_CHANGE);
        (slots.len() <= few && choice == state.get(CHOICE_ID)).then(|| Self {
            mark: changes.watermark(),
            rows: slots.into_iter().map(|slot| CopiedRow::of(state, slot)).collect(),
            source: source_of(log),
        })
    }
}

impl LiveTextIndex {
    /// Whether [`seal_text`] has something to do.
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

    fn lack(&self, log: LiveLog<'_>) -> Lack {
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
    fn take_in(&self, changed: &ChangedRows) {
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
    fn sealed_copy(&self) -> Option<KeptIndex> {
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
    fn replace(&self, sealed: &mut KeptIndex, source: &Source) -> bool {
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
    fn save(&self, files: &TextFiles) {
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
    pub fn narrow(&self, mut nearby: Nearby, recent: &Recent, filter: &TextFilter, life: &StateId) -> Option<Nearby> {
        let kept = self.kept.read().unwrap_or_else(PoisonError::into_inner);
        let known = kept.as_ref().filter(|kept| kept.mark.is_of(life))?;
        self.narrowed
            .narrow(&mut nearby, &known.index, &known.mark, filter, recent);
        Some(nearby)
    }

    fn keep(&self, index: TextIndex, mark: Watermark, source: Source, is_saved: bool) {
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
fn source_of(log: LiveLog<'_>) -> Source {
    Source {
        seq: log.last_seq(),
        head: log.head(),
        choice: log.state.get(CHOICE_ID).map(<[u8]>::to_vec),
    }
}

/// Brings the index to where the state is.
pub(in crate::store) fn catch_up(shared: &Shared) -> Result<Arc<LiveTextIndex>> {
    loop {
        let look = |store: &Store| {
            Ok((
                Arc::clone(&store.text),
                TextFiles::of(store),
                store.text.lack(store.live()),
            ))
        };
        let (live, files, lack) = shared.read(look)?;
        match lack {
            Lack::Nothing => return Ok(live),
            Lack::Changes(changed) => {
                live.take_in(&changed);
                live.save(&files);
            }
            Lack::Everything => make(shared, &live)?,
        }
    }
}

/// Seals the index of a store again if so much changed that it should be, while searches go on. This takes long where there
/// are many records: a thread that nobody waits for should do it.
///
/// # Errors
/// `Io`, `Closed`.
pub fn seal_text(shared: &Shared) -> Result<()> {
    let live = Arc::clone(&shared.read_guard().text);
    let Ok(_turn) = live.building.try_lock() else {
        return Ok(());
    };
    // Whoever takes in more from now on asks again.
    live.ragged.store(false, Ordering::Relaxed);
    let Some(mut sealed) = live.sealed_copy() else {
        return Ok(());
    };
    let source = sealed.source.clone();
    let files = loop {
        let (files, changed) = shared.read(|store| {
            let choice = sealed.source.choice.as_deref();
            let changed = ChangedRows::since(store.live(), &sealed.mark, choice);
            Ok((TextFiles::of(store), changed))
        })?;
        let Some(changed) = changed else { return Ok(()) };
        changed.rows.iter().for_each(|row| row.put_into(&mut sealed.index));
        (sealed.mark, sealed.source) = (changed.mark, changed.source);
        if live.replace(&mut sealed, &source) {
            break files;
        }
    };
    live.save(&files);
    Ok(())
}

/// Makes an index where there is none: from a file, or from all records.
fn make(shared: &Shared, live: &LiveTextIndex) -> Result<()> {
    let _turn = live.building.lock().unwrap_or_else(PoisonError::into_inner);
    if !matches!(
        shared.read(|store| Ok(store.text.lack(store.live())))?,
        Lack::Everything
    ) {
        return Ok(());
    }
    let found = TextFiles::of(&shared.read_guard()).newest();
    let mut store = shared.write_guard();
    store.refresh()?;
    let files = TextFiles::of(&store);
    let mark = store.state.changes().watermark();
    let source = source_of(store.live());
    let threads = store.options.threads;
    if let Some(attached) = found.and_then(|(source, sealed)| attach(store.live(), &source, sealed)) {
        drop(store);
        let Attached { mut index, changed } = attached;
        changed.iter().for_each(|row| row.put_into(&mut index));
        // Whoever is so far behind that all changes were forgotten may have far too many of them at once.
        let is_overgrown = index.is_overgrown() && can_be_sealed(&index);
        if is_overgrown {
            index.seal();
        }
        live.keep(index, mark, source, !is_overgrown);
        return Ok(());
    }
    check_room(store.state.slot_count(), store.state.bytes())?;
    let survey = store.state.survey()?;
    drop(store);
    let fields = Fields::chosen(source.choice.as_deref());
    let index = TextIndex::new(fields.clone(), Sealed::build(&survey, &fields, threads)?);
    live.keep(index, mark, source, false);
    live.save(&files);
    Ok(())
}
