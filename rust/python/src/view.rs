//! How does the past look from Python?

use chronomemory::Query;
use pyo3::prelude::*;

use crate::enter::enter;
use crate::{object, search};

/// A read-only look at the store as it was.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct View(pub chronomemory::View);

#[pymethods]
impl View {
    /// The last event that the view knows.
    #[getter]
    fn seq(&self) -> u64 {
        self.0.seq()
    }

    /// The record of an id as it was.
    fn get<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.0.get(record_id).map(|bytes| object::record(py, bytes)).transpose()
    }

    /// Records as they were, in insertion order.
    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), min_confidence=0.0, limit=None, faces=false), text_signature = "($self, *, kind=None, status='active', min_confidence=0.0, limit=None, faces=False)")]
    fn query<'py>(
        &self,
        py: Python<'py>,
        kind: Option<String>,
        status: Option<String>,
        min_confidence: f64,
        limit: Option<usize>,
        faces: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let query = query_of(kind, status, min_confidence, limit, faces);
        let found = enter(py, || self.0.query(&query))?;
        object::all(py, found.into_iter(), |bytes| object::record(py, bytes))
    }

    /// The best records for a search, as they were.
    #[pyo3(signature = (wanted, *, explain=false))]
    fn search<'py>(
        &self,
        py: Python<'py>,
        wanted: search::Wanted<'py>,
        explain: bool,
    ) -> PyResult<Vec<search::Found<'py>>> {
        let wanted = wanted.search(py)?;
        let hits = enter(py, || self.0.search(&wanted))?;
        search::found(py, &hits, explain)
    }

    /// How many records there were.
    #[pyo3(signature = (*, kind=None, status=Some("active".to_owned()), faces=false), text_signature = "($self, *, kind=None, status='active', faces=False)")]
    fn count(&self, kind: Option<String>, status: Option<String>, faces: bool) -> u64 {
        self.0.count(&query_of(kind, status, 0.0, None, faces))
    }
}

/// A query; an empty status means any.
pub fn query_of(
    kind: Option<String>,
    status: Option<String>,
    min_confidence: f64,
    limit: Option<usize>,
    faces: bool,
) -> Query {
    Query {
        kind,
        status: status.filter(|status| !status.is_empty()),
        min_confidence,
        limit,
        faces,
    }
}
