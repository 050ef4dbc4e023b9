//! Keeps sealed text indexes on disk, and decides which may be believed.
//!
//! A file is believed if it is whole, was made with the same choice of fields, and ends at an event that this very log holds
//! (or was compacted from). Everything that the log said since is then taken in on top. A file that is anything else is left
//! aside, and the next one that is written takes its place.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::text_rows::CopiedRow;
use crate::store::Store;
use crate::store::live_log::LiveLog;
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::{Disk, DiskFile, Identity, read_whole};
use chronolog::event::line::{Event, Trust};
use chronolog::hint::line_from;
use chronolog::layout::{Layout, index_name, is_text_draft, text_index_seq};
use chronolog::log::Site;
use chronolog::log::files::is_ours;
use chronolog::origin::Origin;
use chronolog::verify::finding;
use chronomemory_search::text::file::{self, Source};
use chronomemory_search::text::{CHOICE_ID, Fields, Sealed, TextIndex, difference, is_searched};
use chronomemory_state::state::State;

/// A smaller index is made again faster than a file is worth.
const FEWEST_DOCS: usize = 20_000;
/// If more than this share of the records changed since, all are taken in again.
const LARGEST_CHANGE: usize = 4;

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
    let is_it = |slot: u32, id: &[u8]| state.row(slot).is_some_and(|row| row.id == id);
    sealed.settle(|slot, id| {
        if is_it(slot, id) {
            Some(slot)
        } else {
            state.slot_spelled(id)
        }
    });
    let index = TextIndex::new(Fields::chosen(source.choice.as_deref()), sealed);
    let rows = (0..state.slot_count() as u32)
        .filter_map(|slot| state.row(slot))
        .filter(|row| is_searched(row.id));
    let news = rows.filter(|row| row.seq > source.seq || index.doc_of(row.slot).is_none());
    let slots: Vec<u32> = news.map(|row| row.slot).collect();
    if slots.len() > FEWEST_DOCS.max(state.len() / LARGEST_CHANGE) {
        return None;
    }
    let changed = slots.into_iter().map(|slot| CopiedRow::of(state, slot)).collect();
    Some(Attached { index, changed })
}

/// Whether a log holds the event that a file ends with, or begins right after it, and fields are chosen as they were.
fn is_in(log: &dyn DiskFile, end: u64, origin: &Origin, state: &State, source: &Source) -> bool {
    let timeline = state.timeline();
    if source.choice.as_deref() != state.get(CHOICE_ID) || !timeline.is_rising() {
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
