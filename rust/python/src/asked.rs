//! What Python asks of records, in the words of the engine.

use std::sync::Arc;

use chronomemory::{Condition, Query, Viewer};
use pyo3::prelude::*;

use crate::enter::to_python;

/// One kind, or a list of kinds.
#[derive(FromPyObject)]
pub enum Kinds {
    One(String),
    Many(Vec<String>),
}

impl Kinds {
    fn list(self) -> Vec<String> {
        match self {
            Self::One(kind) => vec![kind],
            Self::Many(kinds) => kinds,
        }
    }
}

/// What a caller asks for, as keyword arguments of one dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct SelectQuestion {
    kind: Option<Kinds>,
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

/// A query; an empty status means any.
pub fn query_of(
    viewer: &Arc<Viewer>,
    kind: Option<Kinds>,
    status: Option<String>,
    min_confidence: f64,
    limit: Option<usize>,
    faces: bool,
) -> Query {
    Query {
        viewer: Arc::clone(viewer),
        kinds: kind.map(Kinds::list),
        status: status.filter(|status| !status.is_empty()),
        min_confidence,
        limit,
        faces,
    }
}
