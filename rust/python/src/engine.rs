//! The engine as Python sees it: opening, writing and reading records.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chronomemory::{Author, Checking, Error, Machine, Moment, Options, Store, Viewer, unspelled};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::asked::{Kinds, query_of};
use crate::draft_buffer::DraftBuffer;
use crate::enter::{bad_choice, enter, enter_to_leave};
use crate::event::WalEvent;
use crate::record::Naming;
use crate::terms::terms_of;
use crate::told::{Copied, Single};
use crate::view::View;
use crate::{change, record, search};

/// An open store.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Engine {
    pub(crate) engine: Arc<chronomemory::Engine>,
    /// For whom it asks and writes.
    pub(crate) viewer: Arc<Viewer>,
    /// The same with the terms on which it writes.
    pub(crate) author: Author,
    pub(crate) depth: i64,
    /// For the next change.
    pub(crate) spare: Mutex<Option<Box<DraftBuffer>>>,
    /// How often all who share the store have searched it.
    pub(crate) searches: Arc<AtomicU64>,
}

fn lines(py: Python<'_>, lines: Vec<Vec<u8>>) -> Vec<Bound<'_, PyBytes>> {
    lines.iter().map(|line| PyBytes::new(py, line)).collect()
}

#[pymethods]
impl Engine {
    #[new]
    #[pyo3(signature = (project_root, *, recursion_depth=0, durability="normal", exclusive=false, lock_timeout=5.0, strict=false, verify="full", head_file=None, shared=false, salt="scope"))]
    #[allow(clippy::too_many_arguments)] // the signature is the public one
    fn new(
        py: Python<'_>,
        project_root: PathBuf,
        recursion_depth: i64,
        durability: &str,
        exclusive: bool,
        lock_timeout: f64,
        strict: bool,
        verify: &str,
        head_file: Option<PathBuf>,
        shared: bool,
        salt: &str,
    ) -> PyResult<Self> {
        let terms = terms_of(py, recursion_depth, durability, lock_timeout, salt)?;
        let options = Options {
            recursion_depth,
            durability: terms.durability,
            exclusive,
            lock_timeout: terms.lock_timeout,
            strict,
            checking: match verify {
                "full" => Checking::Full,
                "quick" => Checking::Quick,
                other => return Err(bad_choice(py, "verify", other, "one of full, quick")),
            },
            head_file,
            randomness: Some(Machine::randomness()),
            salt: terms.salt,
            shared,
            ..Options::default()
        };
        Ok(Self {
            engine: Arc::new(enter(py, || chronomemory::Engine::open(&project_root, options))?),
            viewer: Arc::default(),
            author: Author::default(),
            depth: recursion_depth,
            spare: Mutex::default(),
            searches: Arc::default(),
        })
    }

    /// Syncs and lets go; idempotent.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        enter_to_leave(py, || self.engine.close())
    }

    #[pyo3(signature = (record, face=None))]
    pub(crate) fn upsert<'py>(
        &self,
        py: Python<'py>,
        record: &Bound<'py, PyAny>,
        face: Option<&str>,
    ) -> PyResult<WalEvent> {
        let mut buffer = self.draft_buffer();
        let made = record::upsert(&mut buffer, record, self.depth, face, Naming::Random)?;
        let committed = self.run(py, |engine| engine.commit(&mut buffer.draft))?;
        self.keep(buffer);
        record::stamp_id(record, made.as_deref())?;
        record::stamp_depth(record, self.depth)?;
        Ok(WalEvent::of_line(committed.last_line))
    }

    /// Writes a record if nobody has to be waited for, no other writer and no disk: whether it was written.
    #[pyo3(signature = (record, face=None))]
    fn upsert_at_once(&self, py: Python<'_>, record: &Bound<'_, PyAny>, face: Option<&str>) -> PyResult<bool> {
        let mut buffer = self.draft_buffer();
        let made = record::upsert(&mut buffer, record, self.depth, face, Naming::Random)?;
        let committed = self.run(py, |engine| engine.commit_at_once(&mut buffer.draft))?;
        self.keep(buffer);
        if committed.is_some() {
            record::stamp_id(record, made.as_deref())?;
            record::stamp_depth(record, self.depth)?;
        }
        Ok(committed.is_some())
    }

    #[pyo3(signature = (record, face=None))]
    fn insert<'py>(
        &self,
        py: Python<'py>,
        record: &Bound<'py, PyAny>,
        face: Option<&str>,
    ) -> PyResult<Option<WalEvent>> {
        let mut buffer = self.draft_buffer();
        let made = record::upsert(&mut buffer, record, self.depth, face, Naming::Random)?;
        let committed = self.run(py, |engine| engine.commit_new(&buffer.draft))?;
        record::stamp_id(record, made.as_deref())?;
        Ok(committed.map(|committed| WalEvent::of_line(committed.last_line)))
    }

    #[pyo3(signature = (record_id, face=None))]
    fn delete<'py>(&self, py: Python<'py>, record_id: &Bound<'py, PyAny>, face: Option<&str>) -> PyResult<WalEvent> {
        let mut buffer = self.draft_buffer();
        change::add_change(&mut buffer, "delete", record_id, self.depth, face)?;
        let committed = self.run(py, |engine| engine.commit(&mut buffer.draft))?;
        self.keep(buffer);
        Ok(WalEvent::of_line(committed.last_line))
    }

    fn patch<'py>(
        &self,
        py: Python<'py>,
        record_id: &Bound<'py, PyAny>,
        patch: &Bound<'py, PyDict>,
        face: &str,
    ) -> PyResult<WalEvent> {
        let mut buffer = self.draft_buffer();
        change::add_patch(&mut buffer, &change::record_id(record_id)?, patch, Some(face))?;
        let committed = self.run(py, |engine| engine.commit(&mut buffer.draft))?;
        self.keep(buffer);
        Ok(WalEvent::of_line(committed.last_line))
    }

    #[pyo3(signature = (changes, face=None))]
    fn write(&self, py: Python<'_>, changes: &Bound<'_, PyAny>, face: Option<&str>) -> PyResult<(u64, u64)> {
        let mut buffer = self.draft_of(changes, face)?;
        if buffer.draft.is_empty() {
            return self.nothing_written(py);
        }
        let committed = self.run(py, |engine| engine.commit(&mut buffer.draft))?;
        self.keep(buffer);
        Ok((committed.first_seq, committed.next_seq))
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, chronomemory::Engine::sync)
    }

    /// How often this store has waited for the disk to take its log.
    fn syncs(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |store| Ok(store.syncs()))
    }

    fn get<'py>(&self, py: Python<'py>, record_id: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let id = change::record_id(record_id)?;
        let id = change::text_of(&id)?;
        let found = self.read(py, |store| Ok(store.dated(&self.viewer, id).map(Single::of)))?;
        found.map(|one| one.record(py)).transpose()
    }

    /// The records of these ids, in their order: None for what is not there or not seen.
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn get_many<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Vec<Option<Bound<'py, PyAny>>>> {
        let found: Vec<Option<Single>> = self.read(py, |store| {
            let ids = ids.iter();
            Ok(ids.map(|id| store.dated(&self.viewer, id).map(Single::of)).collect())
        })?;
        found
            .into_iter()
            .map(|one| one.map(|one| one.record(py)).transpose())
            .collect()
    }

    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), min_confidence=0.0, limit=None, faces=false), text_signature = "($self, *, kind=None, status='active', min_confidence=0.0, limit=None, faces=False)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        kind: Option<Kinds>,
        status: Option<String>,
        min_confidence: f64,
        limit: Option<usize>,
        faces: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let query = query_of(&self.viewer, kind, status, min_confidence, limit, faces);
        let found = self.read(py, |store| Copied::of(&store.query_dated(&query)?))?;
        found.records(py)
    }

    #[pyo3(signature = (*, status=Some("active".to_owned()), faces=false), text_signature = "($self, *, status='active', faces=False)")]
    fn export<'py>(&self, py: Python<'py>, status: Option<String>, faces: bool) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let query = query_of(&self.viewer, None, status, 0.0, None, faces);
        let found = self.read(py, |store| Copied::of(&store.query_dated(&query)?))?;
        found.dicts(py)
    }

    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), faces=false), text_signature = "($self, *, kind=None, status='active', faces=False)")]
    fn count(&self, py: Python<'_>, kind: Option<Kinds>, status: Option<String>, faces: bool) -> PyResult<u64> {
        let query = query_of(&self.viewer, kind, status, 0.0, None, faces);
        self.read(py, |store| Ok(store.count(&query)))
    }

    fn tally(&self, py: Python<'_>) -> PyResult<Vec<(String, String, bool, u64)>> {
        let tally = self.read(py, |store| Ok(store.tally(&self.viewer)))?;
        Ok(tally
            .into_iter()
            .map(|class| {
                (
                    unspelled(&class.kind),
                    unspelled(&class.status),
                    class.face,
                    class.records,
                )
            })
            .collect())
    }

    fn wal_seq(&self, py: Python<'_>) -> PyResult<u64> {
        self.read(py, |store| Ok(store.last_seq()))
    }

    fn head(&self, py: Python<'_>) -> PyResult<String> {
        self.read(py, |store| Ok(store.head()))
    }

    /// The seq and the hash of the last event, of one moment.
    fn last_event(&self, py: Python<'_>) -> PyResult<(u64, String)> {
        self.read(py, |store| Ok((store.last_seq(), store.head())))
    }

    /// Whether the event with this seq is the one with this hash.
    fn has_event(&self, py: Python<'_>, seq: u64, hash: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.has_event(seq, hash))
    }

    #[pyo3(signature = (from_seq=0))]
    fn replay<'py>(&self, py: Python<'py>, from_seq: u64) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(lines(py, self.run(py, |engine| engine.replay(from_seq))?))
    }

    fn history<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(lines(
            py,
            self.run(py, |engine| engine.history(&self.viewer, record_id))?,
        ))
    }

    #[pyo3(signature = (seq, *, faces=false))]
    fn changed_since(&self, py: Python<'_>, seq: u64, faces: bool) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.changed_since(&self.viewer, seq, faces))
    }

    /// The best records for a search: its terms come as one dict.
    #[pyo3(signature = (wanted, *, explain=false))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        wanted: search::Wanted<'py>,
        explain: bool,
    ) -> PyResult<Vec<search::Found<'py>>> {
        let wanted = wanted.search(py, &self.viewer)?;
        self.searched();
        let hits = self.run(py, |engine| engine.search(&wanted))?;
        search::found(py, &hits, explain)
    }

    /// The latest moment that an event carries, in microseconds since 1970; None before the first.
    fn latest_us(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let latest = self.read(py, |store| Ok(store.latest()))?;
        Ok(Some(latest).filter(|latest| *latest > i64::MIN))
    }

    #[pyo3(signature = (seq=None, ts_us=None))]
    fn as_of(&self, py: Python<'_>, seq: Option<u64>, ts_us: Option<i64>) -> PyResult<View> {
        let moment = match (seq, ts_us) {
            (Some(seq), None) => Moment::Seq(seq),
            (None, Some(micros)) => Moment::Time(micros),
            _ => return Err(bad_choice(py, "as_of", "", "a seq or a moment")),
        };
        let since = self.run(py, chronomemory::Engine::unchanged)?;
        let view = self.run(py, |engine| engine.as_of(moment))?;
        Ok(View::of(view, &self.viewer, since))
    }
}

impl Engine {
    pub(crate) fn for_viewer(&self, viewer: Viewer) -> Self {
        let viewer = Arc::new(viewer);
        Self {
            engine: Arc::clone(&self.engine),
            author: Author::plainly(&viewer),
            viewer,
            depth: self.depth,
            spare: Mutex::default(),
            searches: Arc::clone(&self.searches),
        }
    }

    /// Counts a search.
    pub(crate) fn searched(&self) {
        self.searches.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn draft_buffer(&self) -> Box<DraftBuffer> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut buffer = spare.unwrap_or_default();
        buffer.draft.by(&self.author);
        buffer
    }

    /// A mixed batch, drafted.
    pub(crate) fn draft_of(&self, changes: &Bound<'_, PyAny>, face: Option<&str>) -> PyResult<Box<DraftBuffer>> {
        let mut buffer = self.draft_buffer();
        for change in changes.try_iter()? {
            let (verb, what): (String, Bound<'_, PyAny>) = change?.extract()?;
            change::add_change(&mut buffer, &verb, &what, self.depth, face)?;
        }
        Ok(buffer)
    }

    pub(crate) fn keep(&self, mut buffer: Box<DraftBuffer>) {
        buffer.draft.recycle();
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
    }

    /// What a batch without changes says: where the next event would stand.
    pub(crate) fn nothing_written(&self, py: Python<'_>) -> PyResult<(u64, u64)> {
        let next = self.read(py, |store| Ok(store.last_seq() + 1))?;
        Ok((next, next))
    }

    /// Runs work of the engine without the interpreter.
    pub(crate) fn run<'a, T: Send>(
        &'a self,
        py: Python<'_>,
        work: impl FnOnce(&'a chronomemory::Engine) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        enter(py, || work(&self.engine))
    }

    /// Runs a question on a state that has caught up with other processes.
    pub(crate) fn read<T: Send>(
        &self,
        py: Python<'_>,
        ask: impl FnOnce(&Store) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        enter(py, || self.engine.read(ask))
    }
}
