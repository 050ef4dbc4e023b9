//! Keeps a text index up to date with every write before the question, and seals it.
//!
//! It lies beside the store under a lock of its own. Whoever searches asks the store what changed and takes that in. When
//! much has changed, a thread that nobody waits for seals it again beside the searches.
//! INVARIANT: nobody waits for the index while holding the store.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};

use super::text_files::TextFiles;
use super::text_rows::CopiedRow;
use crate::store::live_log::LiveLog;
use crate::store::vectors::{Narrowed, Nearby, Recent};
use chronolog::error::Result;
use chronolog::memory;
use chronomemory_search::text::file::Source;
use chronomemory_search::text::{CHOICE_ID, TextFilter, TextIndex};
use chronomemory_state::state::{StateId, Watermark};

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
        (slots.len() <= few && choice == state.get(CHOICE_ID)).then(|| Self {
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
        choice: log.state.get(CHOICE_ID).map(<[u8]>::to_vec),
    }
}
