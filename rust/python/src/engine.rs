//! The open store as Python sees it: its options, viewers, log and past, and what it writes.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use chronomemory::{
    AtomicBatch, Author, Bookmark, Checking, Committed, Dated, Draft, Durability, Engine as Core, Error, Ids, Intake,
    Machine, Moment, Options, Result, RowSource, Salting, Scope, SealTerms, Store, Viewer, WriterTerms, misfit,
    spelled, unspelled,
};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyList, PyTuple};

use crate::blocks::Blocks;
use crate::boundary::{
    Callback, at_row, bad_choice, detached, detached_stoppable, detached_unchecked, id_of, to_python,
};
use crate::draft::{self, DraftBuffer, stamp};
use crate::packed::{OneRecord, event_of};
use crate::reader::{Names, Reader, Source, Walk, names_of};
use crate::requests::{choice, item, listing_of};
use crate::upkeep::Upkeep;
use crate::vectors::{Rows, Vectors, attachment, ids_in};
use crate::{Dict, Object};

/// An open store for one viewer, which all request families share.
#[derive(Clone)]
pub struct Handle {
    pub engine: Arc<Core>,
    pub viewer: Arc<Viewer>,
    /// How often the store was searched through any handle.
    pub searches: Arc<AtomicU64>,
}

impl Handle {
    /// Runs engine work without the interpreter.
    pub fn run<'a, T: Send>(&'a self, py: Python<'_>, work: impl FnOnce(&'a Core) -> Result<T> + Send) -> PyResult<T> {
        detached(py, || work(&self.engine))
    }

    /// Reads a state that has caught up with other processes.
    pub fn read<T: Send>(&self, py: Python<'_>, ask: impl FnMut(&Store) -> Result<T> + Send) -> PyResult<T> {
        detached(py, || self.engine.read(ask))
    }

    /// Changes the store at the time of the engine's clock.
    pub fn change<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Store, i64) -> Result<T> + Send,
    ) -> PyResult<T> {
        detached(py, || self.engine.change(act))
    }

    /// Looks at several records in one go; those that no verb of their face can use are left out.
    pub fn look_at<'py>(&self, py: Python<'py>, ids: &[String]) -> PyResult<Look<'py>> {
        let viewer = &self.viewer;
        let (edition, Bookmark { head, end }, found, own) = self.read(py, |store| {
            let sound = |one: &Dated<'_>| misfit(&one.record).is_none();
            let found = ids.iter().map(|id| store.state().dated(viewer, id).filter(sound));
            let found = found.map(|one| one.map(OneRecord::of)).collect();
            let state = store.state();
            let own = ids.iter().map(|id| state.own_scope(viewer, &spelled(id))).collect();
            Ok((Edition(store.state().edition(viewer)), store.bookmark(), found, own))
        })?;
        Ok((edition, (head, end), OneRecord::all_into_python(found, py)?, own))
    }

    /// Counts a search that is about to run.
    pub fn counted(&self) -> &Self {
        self.searches.fetch_add(1, Ordering::Relaxed);
        self
    }
}

/// An open store.
#[pyclass(frozen, extends = Reader, module = "chronomemory._core")]
pub struct Engine {
    pub(crate) handle: Handle,
    /// The viewer, as the author of what it writes.
    pub(crate) author: Author,
    /// The recursion depth of what it writes.
    pub(crate) depth: i64,
    /// The memory of an earlier draft.
    spare: Mutex<Option<Box<DraftBuffer>>>,
}

/// Which state of records a caller saw: two editions are equal if nothing visible changed in between.
#[pyclass(module = "chronomemory._core", frozen, eq)]
#[derive(PartialEq)]
pub struct Edition(pub chronomemory::Edition);

/// An edition, the end of the log, records, and a number for the scope of each record that may be changed.
pub type Look<'py> = (Edition, (String, u64), Vec<Option<Object<'py>>>, Vec<Option<u32>>);

fn writer_options(options: &Dict<'_>) -> PyResult<WriterTerms> {
    let (recursion_depth, seconds): (i64, f64) = (item(options, "recursion_depth")?, item(options, "lock_timeout")?);
    let bad = |name, given: String, need| bad_choice(options.py(), name, &given, need);
    if recursion_depth < 0 {
        return Err(bad("recursion_depth", recursion_depth.to_string(), "at least 0"));
    }
    use Durability::{Full, Normal, Off};
    use Salting::{Always, Never, Scoped};
    let durabilities = [("full", Full), ("normal", Normal), ("off", Off)];
    let salts = [("always", Always), ("scope", Scoped), ("never", Never)];
    Ok(WriterTerms {
        recursion_depth,
        durability: choice(options, "durability", &durabilities)?,
        lock_timeout: Duration::try_from_secs_f64(seconds)
            .map_err(|_| bad("lock_timeout", seconds.to_string(), "at least 0 seconds"))?,
        salt: choice(options, "salt", &salts)?,
    })
}

fn scope_of(py: Python<'_>, (user, agent, session): &Names) -> PyResult<Scope> {
    let names = [user.as_deref(), agent.as_deref(), session.as_deref()];
    Scope::new(names).map_err(|fault| to_python(py, fault))
}

fn lines(py: Python<'_>, lines: Vec<Vec<u8>>) -> Vec<Bound<'_, PyBytes>> {
    lines.iter().map(|line| PyBytes::new(py, line)).collect()
}

impl Deref for Engine {
    type Target = Handle;

    fn deref(&self) -> &Handle {
        &self.handle
    }
}

#[pymethods]
impl Engine {
    #[new]
    fn new(py: Python<'_>, project_root: PathBuf, options: &Dict<'_>) -> PyResult<PyClassInitializer<Self>> {
        let writing = writer_options(options)?;
        let verify = [
            ("full", Checking::Full),
            ("later", Checking::Later),
            ("quick", Checking::Quick),
        ];
        let seal: Option<(usize, usize, usize)> = item(options, "seal")?;
        let seal = seal.map(|(events, events_at_close, fewest)| SealTerms {
            events,
            events_at_close,
            fewest,
        });
        let opening = Options {
            recursion_depth: writing.recursion_depth,
            durability: writing.durability,
            lock_timeout: writing.lock_timeout,
            salt: writing.salt,
            checking: choice(options, "verify", &verify)?,
            exclusive: item(options, "exclusive")?,
            strict: item(options, "strict")?,
            head_file: item(options, "head_file")?,
            shared: item(options, "shared")?,
            randomness: Some(Machine::randomness()),
            seal: seal.unwrap_or_default(),
            ..Options::default()
        };
        let handle = Handle {
            engine: Arc::new(detached(py, || Core::open(&project_root, opening))?),
            viewer: Arc::default(),
            searches: Arc::default(),
        };
        Ok(Self::of(handle, Author::default(), writing.recursion_depth))
    }

    fn close(&self, py: Python<'_>) -> PyResult<()> {
        detached_unchecked(py, || self.engine.close())
    }

    fn with_options(&self, py: Python<'_>, options: &Dict<'_>) -> PyResult<Py<Self>> {
        let writing = writer_options(options)?;
        let mut handle = self.handle.clone();
        handle.engine = Arc::new(self.engine.on_terms(writing));
        Py::new(py, Self::of(handle, self.author.clone(), writing.recursion_depth))
    }

    #[pyo3(signature = (names, *, shared=true))]
    fn scoped(&self, py: Python<'_>, names: Names, shared: bool) -> PyResult<Py<Self>> {
        let scope = scope_of(py, &names)?;
        self.for_viewer(py, Viewer::Named { scope, shared }, Author::plainly)
    }

    fn public(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        self.for_viewer(py, Viewer::default(), |viewer| {
            let mut author = Author::plainly(viewer);
            author.is_public = true;
            author
        })
    }

    fn unscoped(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        self.for_viewer(py, Viewer::Everyone, Author::plainly)
    }

    fn acting(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        self.for_viewer(py, Viewer::Everyone, |viewer| {
            let mut author = Author::plainly(viewer);
            author.acts_for = Some(Arc::clone(&self.viewer));
            author.is_public = self.author.is_public;
            author
        })
    }

    fn with_expired(&self, py: Python<'_>) -> PyResult<Py<Self>> {
        let viewer = Viewer::clone(&self.viewer).with_expired();
        self.for_viewer(py, viewer, |_| self.author.clone())
    }

    fn scopes(&self, py: Python<'_>, after: Option<Names>, limit: usize) -> PyResult<Vec<(Names, usize)>> {
        let after = after.map(|names| scope_of(py, &names)).transpose()?;
        self.read(py, |store| {
            let listed = store.state().scopes().listed(after.clone()).take(limit);
            Ok(listed.map(|(scope, records)| (names_of(scope), records)).collect())
        })
    }

    fn are_own(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<bool>> {
        self.read(py, |store| {
            let is_own = |id: &String| store.state().own_scope(&self.viewer, &spelled(id)).is_some();
            Ok(ids.iter().map(is_own).collect())
        })
    }

    fn clock(&self) -> i64 {
        self.engine.moment()
    }

    fn set_clock(&self, moment: Option<i64>) {
        self.engine.set_moment(moment);
    }

    #[pyo3(signature = (now=None))]
    fn due(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.due(&self.viewer, now))
    }

    fn sweep(&self, py: Python<'_>, now: Option<i64>) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.sweep(&self.author, now))
    }

    fn tally(&self, py: Python<'_>) -> PyResult<Vec<(String, String, bool, u64)>> {
        let tally = self.read(py, |store| Ok(store.state().tally(&self.viewer)))?;
        let tally = tally.into_iter();
        let named =
            tally.map(|(class, records)| (unspelled(&class.kind), unspelled(&class.status), class.face, records));
        Ok(named.collect())
    }

    fn records_at_once<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Look<'py>> {
        self.look_at(py, &ids)
    }

    fn walk(&self, py: Python<'_>, request: &Dict<'_>) -> PyResult<Walk> {
        let (listing, condition) = listing_of(request, &self.viewer)?;
        let since = self.run(py, Core::unchanged)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing, condition.as_ref()))?;
        let rest = Mutex::new(Some((frozen, 0)));
        let viewer = Arc::clone(&self.viewer);
        Ok(Walk { rest, since, viewer })
    }

    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.run(py, Core::sync)
    }

    fn log_status<'py>(&self, py: Python<'py>) -> PyResult<Dict<'py>> {
        let status = self.run(py, Core::log_status)?;
        let verified = self.run(py, Core::verified)?;
        let (written, searches) = (&status.appended, self.searches.load(Ordering::Relaxed));
        Ok(dict!(py, status; syncs, lock_waits, unsynced_bytes, poisoned;
            commits: written.commits, events: written.events, bytes: written.bytes,
            searches: searches, synced_until_us: status.synced_until,
            verified_seq: verified.seq, verified_at_us: verified.at))
    }

    fn last_event(&self, py: Python<'_>) -> PyResult<(u64, String)> {
        self.read(py, |store| Ok((store.last_seq(), store.head())))
    }

    fn latest_us(&self, py: Python<'_>) -> PyResult<Option<i64>> {
        let latest = self.read(py, |store| Ok(store.log().latest()))?;
        Ok(Some(latest).filter(|latest| *latest > i64::MIN))
    }

    fn bookmark(&self, py: Python<'_>) -> PyResult<(String, u64)> {
        let Bookmark { head, end } = self.read(py, |store| Ok(store.bookmark()))?;
        Ok((head, end))
    }

    fn has_event(&self, py: Python<'_>, seq: u64, hash: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.has_event(seq, hash))
    }

    fn replay<'py>(&self, py: Python<'py>, from_seq: u64) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        Ok(lines(py, self.run(py, |engine| engine.replay(from_seq))?))
    }

    fn history<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let found = self.run(py, |engine| engine.history(&self.viewer, record_id))?;
        Ok(lines(py, found))
    }

    #[pyo3(signature = (seq, *, faces=false))]
    fn changed_since(&self, py: Python<'_>, seq: u64, faces: bool) -> PyResult<Vec<String>> {
        self.run(py, |engine| engine.changed_since(&self.viewer, seq, faces))
    }

    #[pyo3(signature = (seq=None, ts_us=None))]
    fn as_of(&self, py: Python<'_>, seq: Option<u64>, ts_us: Option<i64>) -> PyResult<Reader> {
        let moment = match (seq, ts_us) {
            (Some(seq), None) => Moment::Seq(seq),
            (None, Some(micros)) => Moment::Time(micros),
            _ => return Err(bad_choice(py, "as_of", "", "a seq or a moment")),
        };
        let since = self.run(py, Core::unchanged)?;
        let view = self.run(py, |engine| engine.as_of(moment))?;
        Ok(Reader::new(&self.viewer, Source::Then(Box::new(view), since)))
    }

    #[getter]
    fn upkeep(&self) -> Upkeep {
        Upkeep(self.handle.clone())
    }

    #[getter]
    fn vectors(&self) -> Vectors {
        Vectors(self.handle.clone())
    }

    #[getter]
    fn blocks(&self) -> Blocks {
        Blocks(self.handle.clone())
    }

    #[pyo3(signature = (record, face=None))]
    pub(crate) fn upsert<'py>(
        &self,
        py: Python<'py>,
        record: &Object<'py>,
        face: Option<&str>,
    ) -> PyResult<Object<'py>> {
        let mut buffer = self.draft();
        let made = buffer.upsert(record, face, true)?;
        let committed = self.commit(py, buffer, Core::commit)?;
        stamp(record, made.as_deref(), Some(self.depth))?;
        event_of(py, &committed.last_line)
    }

    fn upsert_if(&self, py: Python<'_>, condition: &str, record: &Object<'_>, face: Option<&str>) -> PyResult<bool> {
        let mut buffer = self.draft();
        let made = buffer.upsert(record, face, true)?;
        let committed = match condition {
            "new" => self.commit(py, buffer, |engine, draft| {
                engine.change(|store, now| store.commit_new(draft, now))
            })?,
            "at once" => self.commit(py, buffer, Core::commit_at_once)?,
            other => return Err(bad_choice(py, "condition", other, "one of new, at once")),
        };
        if committed.is_some() {
            stamp(record, made.as_deref(), Some(self.depth))?;
        }
        Ok(committed.is_some())
    }

    #[pyo3(signature = (record_id, face=None))]
    fn delete<'py>(&self, py: Python<'py>, record_id: &Object<'py>, face: Option<&str>) -> PyResult<Object<'py>> {
        let mut buffer = self.draft();
        buffer.change("delete", record_id, face)?;
        let committed = self.commit(py, buffer, Core::commit)?;
        event_of(py, &committed.last_line)
    }

    #[pyo3(signature = (changes, face=None))]
    fn write(&self, py: Python<'_>, changes: &Object<'_>, face: Option<&str>) -> PyResult<(u64, u64)> {
        let buffer = self.draft_of(changes, face)?;
        let committed = match buffer.draft.is_empty() {
            true => None,
            false => Some(self.commit(py, buffer, Core::commit)?),
        };
        self.seqs(py, committed)
    }

    #[pyo3(signature = (records, face=None))]
    fn upsert_many(&self, py: Python<'_>, records: &Object<'_>, face: Option<&str>) -> PyResult<(u64, u64)> {
        let mut buffer = self.draft();
        // A subclass of list may iterate in its own way.
        let count = records.cast_exact::<PyList>().map_or(0, |records| records.len());
        let mut batch = self.run(py, |engine| engine.batch(count))?;
        let mut rows = 0;
        let mut named: Vec<(Object<'_>, String)> = Vec::new();
        for record in records.try_iter()? {
            let record = record?;
            let made = buffer.upsert(&record, face, true);
            let made = made.map_err(|fault| at_row(py, fault, rows, id_of(&record)))?;
            batch.drafted(&mut buffer.draft);
            named.extend(made.map(|id| (record, id)));
            rows += 1;
        }
        if rows == 0 {
            return self.seqs(py, None);
        }
        let mut refused = None;
        let committed = detached(py, || {
            batch.commit(&mut buffer.draft).map_err(|fault| match fault {
                Error::InBatch { row, fault } => {
                    refused = Some(row);
                    *fault
                }
                other => other,
            })
        });
        let committed = committed.map_err(|fault| match refused {
            Some(row) => {
                let id = fault.value(py).getattr("id").and_then(|id| id.extract());
                at_row(py, fault, row, id.ok().flatten())
            }
            None => fault,
        })?;
        self.recycle(buffer);
        for (record, id) in &named {
            stamp(record, Some(id), None)?;
        }
        self.seqs(py, Some(committed))
    }

    fn upsert_good(&self, py: Python<'_>, records: &Bound<'_, PyList>) -> PyResult<(usize, u64, u64, Vec<LeftOut>)> {
        let mut buffer = self.draft();
        let mut left_out: Vec<LeftOut> = Vec::new();
        let mut drafted: Vec<(usize, Object<'_>, Option<String>)> = Vec::new();
        for (row, record) in records.iter().enumerate() {
            match buffer.upsert(&record, None, true) {
                Ok(made) => drafted.push((row, record, made)),
                Err(fault) => left_out.push(refusal_of(fault, row, &record)?),
            }
        }
        let (committed, refused) = self.commit(py, buffer, Core::commit_allowed)?;
        for (place, fault) in refused.into_iter().rev() {
            let (row, record, _) = drafted.remove(place);
            left_out.push(refusal_of(to_python(py, fault), row, &record)?);
        }
        for (_, record, made) in &drafted {
            stamp(record, made.as_deref(), None)?;
        }
        left_out.sort_by_key(|(row, ..)| *row);
        let (first, next) = self.seqs(py, committed)?;
        Ok((drafted.len(), first, next, left_out))
    }

    #[pyo3(signature = (path, progress=None, *, faces=false, skips=false, text=None))]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Callback,
        faces: bool,
        skips: bool,
        text: Option<(Vec<u8>, u64, u64)>,
    ) -> PyResult<Dict<'py>> {
        let (author, seed, name) = (&self.author, &draft::random(py)?, &path);
        let intake = Intake {
            author,
            faces,
            skips,
            seed,
        };
        let source = match text {
            Some((bytes, lines, kept)) => RowSource::Text {
                name,
                bytes,
                lines,
                kept,
            },
            None => RowSource::File(name),
        };
        let loaded = detached_stoppable(py, progress, |report| self.engine.ingest(source, intake, report))?;
        let refusals = loaded.refusals.iter();
        let refusals = refusals.map(|row| (row.line, &row.id, &row.field, &row.reason));
        let refusals: Vec<_> = refusals.collect();
        Ok(dict!(py, loaded; records, bytes, lines, first_seq, last_seq, skipped; refusals: refusals))
    }

    fn in_turn(&self, py: Python<'_>, work: Py<PyAny>) -> PyResult<Py<PyAny>> {
        self.run(py, |engine| engine.in_turn(|| Python::attach(|py| work.call0(py))))?
    }

    #[pyo3(signature = (changes, face, since, read, attachments=None, *, at_us=None))]
    fn write_unless_changed<'py>(
        &self,
        py: Python<'py>,
        changes: &Object<'py>,
        face: Option<&str>,
        since: (String, u64),
        read: Vec<String>,
        attachments: Option<Vec<Rows<'py>>>,
        at_us: Option<i64>,
    ) -> PyResult<Option<(Object<'py>, Edition, Edition)>> {
        let buffer = self.draft_of(changes, face)?;
        let (head, end) = since;
        let given = attachments.unwrap_or_default();
        let ids: Vec<Ids> = given.iter().map(|(ids, ..)| ids_in(ids)).collect::<PyResult<_>>()?;
        let attachments = given.iter().zip(&ids).map(|(rows, ids)| attachment(py, rows, ids));
        let attachments: Vec<_> = attachments.collect::<PyResult<_>>()?;
        let batch = AtomicBatch {
            draft: &buffer.draft,
            attachments: &attachments,
            unless_changed: Some((&Bookmark { head, end }, &read)),
            at: at_us,
        };
        let written = self.run(py, |engine| {
            engine.change(|store, now| store.commit_change(&batch, now))
        })?;
        self.recycle(buffer);
        let editions = written.map(|written| {
            let last = event_of(py, &written.committed.last_line)?;
            Ok((last, Edition(written.before), Edition(written.after)))
        });
        editions.transpose()
    }
}

impl Engine {
    fn of(handle: Handle, author: Author, depth: i64) -> PyClassInitializer<Self> {
        let reader = Reader::new(&handle.viewer, Source::Now(handle.clone()));
        let spare = Mutex::default();
        let engine = Self {
            handle,
            author,
            depth,
            spare,
        };
        PyClassInitializer::from(reader).add_subclass(engine)
    }

    fn for_viewer(
        &self,
        py: Python<'_>,
        viewer: Viewer,
        author: impl FnOnce(&Arc<Viewer>) -> Author,
    ) -> PyResult<Py<Self>> {
        let mut handle = self.handle.clone();
        handle.viewer = Arc::new(viewer);
        let author = author(&handle.viewer);
        Py::new(py, Self::of(handle, author, self.depth))
    }

    /// An empty draft of this author.
    pub(crate) fn draft(&self) -> Box<DraftBuffer> {
        let spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut buffer = spare.unwrap_or_default();
        buffer.depth = self.depth;
        buffer.draft.author = self.author.clone();
        buffer
    }

    /// Keeps the memory of a draft for the next one.
    pub(crate) fn recycle(&self, mut buffer: Box<DraftBuffer>) {
        buffer.draft.recycle();
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(buffer);
    }

    /// Commits a draft, and keeps its memory.
    fn commit<T: Send>(
        &self,
        py: Python<'_>,
        mut buffer: Box<DraftBuffer>,
        commit: impl FnOnce(&Core, &mut Draft) -> Result<T> + Send,
    ) -> PyResult<T> {
        let draft = &mut buffer.draft;
        let done = self.run(py, |engine| commit(engine, draft))?;
        self.recycle(buffer);
        Ok(done)
    }

    /// The draft of a mixed batch.
    fn draft_of(&self, changes: &Object<'_>, face: Option<&str>) -> PyResult<Box<DraftBuffer>> {
        let mut buffer = self.draft();
        for change in changes.try_iter()? {
            let (verb, what): (String, Object<'_>) = change?.extract()?;
            buffer.change(&verb, &what, face)?;
        }
        Ok(buffer)
    }

    /// The first seq of a batch and the one after its last; without a batch the next seq, twice.
    fn seqs(&self, py: Python<'_>, committed: Option<Committed>) -> PyResult<(u64, u64)> {
        match committed {
            Some(committed) => Ok((committed.first_seq, committed.next_seq)),
            None => self.read(py, |store| Ok((store.last_seq() + 1, store.last_seq() + 1))),
        }
    }
}

/// A row that was left out: its place, its id, the path of the fault, and the reason.
type LeftOut = (usize, Option<String>, Option<String>, String);

/// A refusal of a row; other errors are raised.
fn refusal_of(fault: PyErr, row: usize, record: &Object<'_>) -> PyResult<LeftOut> {
    let value = fault.value(record.py()).clone();
    if !value.hasattr("row")? {
        return Err(fault);
    }
    let path = value.getattr("path")?.extract()?;
    Ok((row, id_of(record), path, value.str()?.to_string()))
}

/// Holds the engine of a store, which its subclass opens and closes.
// Its Python name appears in messages about wrong calls.
#[pyclass(name = "Store", module = "chronomemory._core", subclass, frozen)]
pub struct StoreBase {
    engine: Mutex<Option<Py<Engine>>>,
    /// How often damage had been found when the engine was set.
    known_damage: AtomicU64,
}

impl StoreBase {
    fn engine(&self) -> MutexGuard<'_, Option<Py<Engine>>> {
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The engine, which the subclass opens if it is not open. It warns of damage if some was found since.
    fn opened(slf: &Bound<'_, Self>) -> PyResult<Py<Engine>> {
        match slf.get()._engine(slf.py()) {
            Some(engine) => Ok(engine),
            None => Ok(slf
                .getattr(intern!(slf.py(), "engine"))?
                .cast_into::<Engine>()?
                .unbind()),
        }
    }
}

#[pymethods]
impl StoreBase {
    #[new]
    #[pyo3(signature = (*_args, **_options))]
    fn new(_args: &Bound<'_, PyTuple>, _options: Option<&Dict<'_>>) -> Self {
        Self {
            engine: Mutex::default(),
            known_damage: AtomicU64::default(),
        }
    }

    #[getter]
    fn _engine(&self, py: Python<'_>) -> Option<Py<Engine>> {
        let known = self.known_damage.load(Ordering::Relaxed);
        let engine = self.engine();
        let engine = engine
            .as_ref()
            .filter(|engine| engine.get().engine.new_damage() == known);
        engine.map(|engine| engine.clone_ref(py))
    }

    #[setter(_engine)]
    fn set_engine(&self, engine: Option<Py<Engine>>) {
        if let Some(engine) = &engine {
            self.known_damage
                .store(engine.get().engine.new_damage(), Ordering::Relaxed);
        }
        let before = std::mem::replace(&mut *self.engine(), engine);
        // Dropped without the mutex.
        drop(before);
    }

    /// Return a record, a tombstoned one too, or None; one that has expired only if that is asked for.
    #[pyo3(signature = (record_id, *, expired=None), text_signature = "($self, record_id, *, expired=False)")]
    fn get<'py>(
        slf: &Bound<'py, Self>,
        record_id: &Object<'py>,
        expired: Option<&Object<'py>>,
    ) -> PyResult<Option<Object<'py>>> {
        let engine = Self::opened(slf)?;
        match expired {
            Some(expired) if !expired.is(PyBool::new(slf.py(), false)) => {
                let found = slf.call_method1(intern!(slf.py(), "_get_expired"), (record_id, expired))?;
                Ok((!found.is_none()).then_some(found))
            }
            _ => engine.bind(slf.py()).as_super().get().get(slf.py(), record_id),
        }
    }

    /// Write a record, replacing the one with its id; the store's depth is stamped on it. With `if_version` that one
    /// must be of this version, with `if_new` there must be none.
    #[pyo3(signature = (record, *, if_version=None, if_new=false))]
    fn upsert<'py>(
        slf: &Bound<'py, Self>,
        record: &Object<'py>,
        if_version: Option<&Object<'py>>,
        if_new: bool,
    ) -> PyResult<Object<'py>> {
        let py = slf.py();
        if if_version.is_some() || if_new {
            let options = dict!(py; if_version: if_version, if_new: if_new);
            return slf.call_method(intern!(py, "_upsert_if"), (record,), Some(&options));
        }
        Self::opened(slf)?.get().upsert(py, record, None)
    }
}
