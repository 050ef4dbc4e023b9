//! Takes a condition on records in from Python, and hands the records back.

use std::sync::Arc;

use chronomemory::{Condition, Listing, Query, Viewer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::engine::Engine;
use crate::enter::to_python;
use crate::told::Copied;
use crate::view::query_of;

/// What a caller asks for, as keyword arguments of one dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SelectQuestion {
    kind: Option<String>,
    status: Option<String>,
    min_confidence: f64,
    limit: Option<usize>,
    faces: bool,
    condition: Option<Vec<u8>>,
    tags: Vec<String>,
    since_us: Option<i64>,
    until_us: Option<i64>,
}

impl SelectQuestion {
    /// What somebody asks for, and what must hold for it besides.
    pub fn split(self, py: Python<'_>, viewer: &Arc<Viewer>) -> PyResult<(Query, Option<Condition>)> {
        let condition = condition_of(py, self.condition)?;
        let tags = (!self.tags.is_empty()).then(|| Condition::tagged(&self.tags));
        let since = self.since_us.map(Condition::since);
        let until = self.until_us.map(Condition::until);
        let query = query_of(
            viewer,
            self.kind,
            self.status,
            self.min_confidence,
            self.limit,
            self.faces,
        );
        Ok((query, joined([condition, tags, since, until])))
    }
}

/// All of some conditions; none if there are none.
pub fn joined(given: impl IntoIterator<Item = Option<Condition>>) -> Option<Condition> {
    let all: Vec<Condition> = given.into_iter().flatten().collect();
    (!all.is_empty()).then(|| Condition::joined(all))
}

/// The condition that a where says, given as JSON.
pub fn condition_of(py: Python<'_>, given: Option<Vec<u8>>) -> PyResult<Option<Condition>> {
    let read = |text: Vec<u8>| Condition::parse(&text).map_err(|fault| to_python(py, fault));
    given.map(read).transpose()
}

#[pymethods]
impl Engine {
    /// The records that a question asks for, as dicts.
    fn select_dicts<'py>(&self, py: Python<'py>, wanted: SelectQuestion) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (query, condition) = wanted.split(py, &self.viewer)?;
        let listing = Listing {
            query,
            ..Listing::default()
        };
        let found = self.read(py, |store| {
            Copied::of(&store.page(&listing, condition.as_ref())?.records)
        })?;
        found.dicts(py)
    }

    /// Declares an index of a field: whether there was none.
    fn create_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.change(|store, now| store.create_index(path, now)))
    }

    /// Takes an index back: whether there was one.
    fn drop_index(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        self.run(py, |engine| engine.change(|store, now| store.drop_index(path, now)))
    }

    /// The fields that have an index, the oldest first.
    fn indexes(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.read(py, chronomemory::Store::declared)
    }
}
