//! Looks records up by an index that a face declares, for Python.

use chronomemory::{After, IndexLookup, Viewer};
use pyo3::prelude::*;
use pyo3::types::{PyAny, PyString};

use crate::engine::Engine;
use crate::enter::{as_argument, enter, must};
use crate::shape::Shapes;
use crate::told::Copied;
use crate::value::{self, Field};
use crate::view::View;

/// What Python asks for, as canonical bytes.
struct IndexQuestion {
    key: Vec<Vec<u8>>,
    after: Option<After>,
    limit: usize,
    reverse: bool,
}

impl IndexQuestion {
    fn of(
        key: &Bound<'_, PyAny>,
        after: Option<Bound<'_, PyAny>>,
        limit: &Bound<'_, PyAny>,
        reverse: bool,
    ) -> PyResult<Self> {
        let mut shapes = Shapes::default();
        let mut spell = |object: &Bound<'_, PyAny>, name: &str| {
            let mut bytes = Vec::new();
            value::write(object, Field { name, depth: 0 }, &mut shapes, &mut bytes)
                .map_err(|fault| as_argument(object.py(), fault))?;
            PyResult::Ok(bytes)
        };
        if key.is_instance_of::<PyString>() {
            return Err(must("key", "be a list of values", key));
        }
        let values = key.try_iter().map_err(|_| must("key", "be a list of values", key))?;
        let key = values.map(|value| spell(&value?, "key"));
        Ok(Self {
            key: key.collect::<PyResult<_>>()?,
            after: match after.map(|after| place_of(&after)).transpose()? {
                Some((then, id)) => Some(After {
                    then: if then.is_none() {
                        None
                    } else {
                        Some(spell(&then, "after")?)
                    },
                    id,
                }),
                None => None,
            },
            limit: limit
                .extract()
                .map_err(|_| must("limit", "be a whole number of at least 0", limit))?,
            reverse,
        })
    }

    fn lookup<'a>(&'a self, viewer: &'a Viewer) -> IndexLookup<'a> {
        IndexLookup {
            viewer,
            key: &self.key,
            after: self.after.as_ref(),
            limit: self.limit,
            reverse: self.reverse,
        }
    }
}

/// What a record was ordered by, and its id.
fn place_of<'py>(after: &Bound<'py, PyAny>) -> PyResult<(Bound<'py, PyAny>, String)> {
    after
        .extract()
        .map_err(|_| must("after", "be a pair: what a record was ordered by, and its id", after))
}

#[pymethods]
impl Engine {
    /// The records that a declared index leads to, in its order. `after` is where the last page ended: what its last record
    /// was ordered by, and its id.
    #[pyo3(signature = (index, key, *, after=None, limit, reverse=false))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        index: &str,
        key: &Bound<'py, PyAny>,
        after: Option<Bound<'py, PyAny>>,
        limit: &Bound<'py, PyAny>,
        reverse: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let asked = IndexQuestion::of(key, after, limit, reverse)?;
        let found = self.read(py, |store| Copied::of(&store.find(index, &asked.lookup(&self.viewer))?))?;
        found.records(py)
    }
}

#[pymethods]
impl View {
    /// The same as it was then.
    #[pyo3(signature = (index, key, *, after=None, limit, reverse=false))]
    fn find<'py>(
        &self,
        py: Python<'py>,
        index: &str,
        key: &Bound<'py, PyAny>,
        after: Option<Bound<'py, PyAny>>,
        limit: &Bound<'py, PyAny>,
        reverse: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let asked = IndexQuestion::of(key, after, limit, reverse)?;
        let found = enter(py, || {
            Copied::of(&self.past()?.find(index, &asked.lookup(&self.viewer))?)
        })?;
        found.records(py)
    }
}
