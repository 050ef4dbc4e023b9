//! A view of the past, for Python.

use std::sync::Arc;

use chronomemory::{Result, Unchanged, Viewer};
use pyo3::prelude::*;

use crate::asked::{Kinds, query_of};
use crate::enter::enter;
use crate::names::{Names, digits_of, names_of, sees_wider};
use crate::search;
use crate::told::{Copied, Single};

/// A read-only look at the store as it was.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct View {
    view: chronomemory::View,
    pub(crate) viewer: Arc<Viewer>,
    since: Unchanged,
}

impl View {
    pub(crate) fn of(view: chronomemory::View, viewer: &Arc<Viewer>, since: Unchanged) -> Self {
        Self {
            view,
            viewer: Arc::clone(viewer),
            since,
        }
    }

    /// What it shows, unless something was erased since.
    pub(crate) fn past(&self) -> Result<&chronomemory::View> {
        self.since.check(self.view.seq())?;
        Ok(&self.view)
    }
}

#[pymethods]
impl View {
    /// The last event that the view knows.
    #[getter]
    fn seq(&self) -> u64 {
        self.view.seq()
    }

    /// The digits that stand for the scope in ids.
    fn scope_digits(&self) -> String {
        digits_of(&self.viewer)
    }

    fn scope_names(&self) -> Option<Names> {
        names_of(&self.viewer)
    }

    fn sees_wider(&self) -> bool {
        sees_wider(&self.viewer)
    }

    /// Whether anything was written by then that is one's own.
    fn is_known(&self, py: Python<'_>) -> PyResult<bool> {
        enter(py, || Ok(self.past()?.knows(&self.viewer)))
    }

    /// The record of an id as it was.
    fn get<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let past = enter(py, || self.past())?;
        let found = past.dated(&self.viewer, record_id).map(Single::of);
        found.map(|one| one.record(py)).transpose()
    }

    /// Records as they were, in insertion order.
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
        let found = enter(py, || Copied::of(&self.past()?.query_dated(&query)?))?;
        found.records(py)
    }

    /// The best records for a search, as they were.
    #[pyo3(signature = (wanted, *, explain=false))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        wanted: search::Wanted<'py>,
        explain: bool,
    ) -> PyResult<Vec<search::Found<'py>>> {
        let wanted = wanted.search(py, &self.viewer)?;
        let hits = enter(py, || self.past()?.search(&wanted))?;
        search::found(py, &hits, explain)
    }

    /// How many records there were.
    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), faces=false), text_signature = "($self, *, kind=None, status='active', faces=False)")]
    fn count(&self, py: Python<'_>, kind: Option<Kinds>, status: Option<String>, faces: bool) -> PyResult<u64> {
        let query = query_of(&self.viewer, kind, status, 0.0, None, faces);
        enter(py, || Ok(self.past()?.count(&query)))
    }
}
