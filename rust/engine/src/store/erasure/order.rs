//! The order for an erasure, and the report of it.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memchr::memmem;

use crate::store::Store;
use crate::store::search::page::page;
use crate::store::search::select::StateView;
use chronolog::archive::{self, FRAME_BYTES};
use chronolog::disk::{Disk, read_upto};
use chronolog::error::{At, Result};
use chronolog::json;
use chronolog::scope::Viewer;
use chronomemory_state::condition::Condition;
use chronomemory_state::state::{Listing, Query, unspelled};

/// What begins ids that are never erased by themselves.
const RESERVED: [&str; 5] = ["erasure:", "pruned:", "vector:", "act:", "__"];

/// What begins the id of what says what is searched.
const SEARCHED: &str = "search:";

/// Whether a record is never erased by itself.
pub(in crate::store) fn is_reserved(id: &str) -> bool {
    RESERVED.iter().any(|prefix| id.starts_with(prefix)) || id.is_empty()
}

/// What is to be erased, and how.
#[derive(Clone, Debug, Default)]
pub struct Erase {
    /// Records by their ids.
    pub ids: Vec<String>,
    /// Of these only the ones that have expired by this moment when it comes to it: what was written anew lives.
    pub due_at: Option<i64>,
    /// The viewer that erases, if besides the chosen records only those may change that it sees.
    pub by: Option<Arc<Viewer>>,
    /// The records for which this holds when it comes to it, as somebody sees them: tombstones too.
    pub condition: Option<(Arc<Viewer>, Condition)>,
    /// Every record that carries the names of this scope, or ever did; as canonical JSON.
    pub scope: Option<Vec<u8>>,
    /// Why; it stays in the log.
    pub reason: String,
    /// The program gave the reason: it is not compared with what is erased.
    pub is_reason_trusted: bool,
    /// The history of all records goes, not only that of those.
    pub drop_history: bool,
    /// Those of the records whose present value is said again.
    pub again: Vec<String>,
    /// What was derived from one of the records goes too.
    pub derived: bool,
    /// If the erasure removes backups, one new backup is made and verified.
    pub new_backup: bool,
    /// Nothing is written: only what would be done is told.
    pub dry_run: bool,
}

impl Erase {
    /// The order as it is meant now.
    pub(super) fn now(&self, store: &Store) -> Result<Cow<'_, Self>> {
        let ids = match (self.due_at, &self.condition) {
            (None, None) => return Ok(Cow::Borrowed(self)),
            (Some(moment), _) => {
                let due = self.ids.iter().filter(|id| store.state.has_expired(id, moment));
                due.cloned().collect()
            }
            (None, Some((viewer, condition))) => found(store, viewer, condition)?,
        };
        Ok(Cow::Owned(Self { ids, ..self.clone() }))
    }
}

/// The ids of the records for which a condition holds. What the store says of itself is nobody's data: it is left out.
fn found(store: &Store, viewer: &Arc<Viewer>, condition: &Condition) -> Result<Vec<String>> {
    let listing = Listing {
        query: Query {
            viewer: Arc::clone(viewer),
            faces: true,
            ..Query::default()
        },
        ..Listing::default()
    };
    let page = page(
        StateView::of(store),
        &store.views.field_indexes,
        &listing,
        Some(condition),
    )?;
    let id_of = |record: &[u8]| Some(unspelled(json::scan_record(record)?.id?.of(record)));
    let ids = page.records.iter().filter_map(|dated| id_of(dated.record));
    Ok(ids.filter(|id| !is_reserved(id) && !id.starts_with(SEARCHED)).collect())
}

/// What was erased, or would be.
#[derive(Clone, Debug, Default)]
pub struct Erased {
    /// The seq of the event that tells of it; `None` if nothing was found, or nothing was done.
    pub seq: Option<u64>,
    /// The records that were asked for, as far as they were ever there.
    pub ids: Vec<String>,
    /// Others that went with them.
    pub belonging: Vec<String>,
    /// Others that are kept: they named one of them, and were written again without that.
    pub mentions: Vec<String>,
    /// How many lines.
    pub lines: u64,
    /// How many of those had no salt: who can guess the whole text can confirm it.
    pub unsalted: u64,
    /// How many lines of each log.
    pub by_log: Vec<(String, u64)>,
    /// How many files of the past were replaced or dropped.
    pub replaced: u64,
    /// Records that were said again: those asked for, and others that events had changed which went.
    pub again: u64,
    /// Copies that went.
    pub backups: Vec<String>,
    /// The verified backup that replaces them, if one was asked for.
    pub new_backup: Option<PathBuf>,
    /// Why no new backup could be made; the erasure itself is done.
    pub backup_fault: Option<String>,
    /// What was quarantined and went.
    pub quarantine: Vec<String>,
    /// What lies in `backup/` and `quarantine/` and cannot be read to its end: it stays where nothing else holds it.
    pub unread: Vec<String>,
    /// Copies outside that hold it, or cannot be read to their end: nobody touched them.
    pub copies: Vec<String>,
    /// Copies outside that are not there now, and may hold it.
    pub missing_copies: Vec<String>,
    /// When it was done, in microseconds since 1970, and the heads of the log just before and after; `None` if it was not.
    pub done: Option<(i64, LogHead, LogHead)>,
}

/// The seq and the hash of the last event of a log, and the hash of its first, which tells it from others.
pub type LogHead = (u64, String, String);

/// The head of the log of an open store.
pub(super) fn head_of(store: &Store) -> LogHead {
    let first = store.log.open().and_then(|open| open.mark().first);
    let first = first.map(|first| first.text().to_owned()).unwrap_or_default();
    (store.last_seq(), store.head(), first)
}

/// Whether a file holds one of some lower-case texts; ASCII letters are compared without case.
pub fn holds_any(disk: &dyn Disk, path: &Path, texts: &[Vec<u8>]) -> Result<bool> {
    let file = archive::open(disk, path).at(path)?;
    let length = file.log.length().at(path)?;
    let longest = texts.iter().map(Vec::len).max().unwrap_or(0);
    let (mut buffer, mut at) = (Vec::new(), 0);
    while at < length {
        // What a text may need of the piece before stays in front.
        let kept = buffer.len().saturating_sub(longest.saturating_sub(1));
        buffer.drain(..kept);
        let read = read_upto(&*file.log, &mut buffer, at, FRAME_BYTES).at(path)?;
        if read == 0 {
            break;
        }
        let fresh = buffer.len() - read;
        buffer[fresh..].make_ascii_lowercase();
        at += read as u64;
        if texts.iter().any(|text| memmem::find(&buffer, text).is_some()) {
            return Ok(true);
        }
    }
    Ok(false)
}
