//! Lists records in order for Python, page by page or one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chronomemory::{By, Condition, Dated, Error, Frozen, Listing, MadeAt, Page, PageEnd, Unchanged, Viewer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asked::SelectQuestion;
use crate::engine::Engine;
use crate::enter::enter;
use crate::told::{Copied, Single};
use crate::view::View;

/// The seq and the moment of the event that made a record, which of its records this is, and of how many.
type Made = (Option<u64>, Option<i64>, u32, u32);

/// What the last record of a page was ordered by, and where it and the one behind it were made.
type End = (Option<i64>, Made, Option<Made>);

/// Records, where to go on, and how they were found.
type PageFound<'py> = (Vec<Bound<'py, PyAny>>, Option<End>, String);

/// In which order, from where.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Order {
    by: String,
    reverse: bool,
    after: Option<End>,
    explain: bool,
}

/// What somebody wants to have listed, from keyword arguments of one dict.
pub fn listing_of(terms: &Bound<'_, PyDict>, viewer: &Arc<Viewer>) -> PyResult<(Listing, Option<Condition>)> {
    let py = terms.py();
    let (query, condition) = terms.extract::<SelectQuestion>()?.split(py, viewer)?;
    let order = terms.extract::<Order>()?;
    let (by, field) = match order.by.as_str() {
        "created" => (By::Created, None),
        "updated" => (By::Updated, None),
        "happened" => (By::Happened, None),
        "confidence" => (By::Confidence, None),
        "id" => (By::Id, None),
        path => (By::Created, Some(path.to_owned())),
    };
    let listing = Listing {
        query,
        by,
        field,
        reverse: order.reverse,
        after: order.after.map(end_of),
        explains: order.explain,
    };
    Ok((listing, condition))
}

fn end_of((key, made, next): End) -> PageEnd {
    let made_at = |(seq, micros, nth, of): Made| MadeAt { seq, micros, nth, of };
    PageEnd {
        key,
        made: made_at(made),
        next: next.map(made_at),
    }
}

fn told<'py>(py: Python<'py>, (found, end, plan): (Copied, Option<PageEnd>, String)) -> PyResult<PageFound<'py>> {
    let made = |at: MadeAt| (at.seq, at.micros, at.nth, at.of);
    let end = end.map(|end| (end.key, made(end.made), end.next.map(made)));
    Ok((found.records(py)?, end, plan))
}

fn copied(page: Page<'_>) -> Result<(Copied, Option<PageEnd>, String), Error> {
    let plan = page.plan.map(|plan| plan.to_string()).unwrap_or_default();
    Ok((Copied::of(&page.records)?, page.end, plan))
}

#[pymethods]
impl Engine {
    /// A page of records: the terms come as one dict.
    fn page<'py>(&self, py: Python<'py>, terms: &Bound<'py, PyDict>) -> PyResult<PageFound<'py>> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let found = self.read(py, |store| copied(store.page(&listing, condition.as_ref())?))?;
        told(py, found)
    }

    /// The records of a listing as they are now, one by one.
    fn walk(&self, py: Python<'_>, terms: &Bound<'_, PyDict>) -> PyResult<Walk> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let since = self.run(py, chronomemory::Engine::unchanged)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing, condition.as_ref()))?;
        let here = Mutex::new(Some((frozen, 0)));
        Ok(Walk { here, since })
    }
}

#[pymethods]
impl View {
    /// A page of records as they were.
    fn page<'py>(&self, py: Python<'py>, terms: &Bound<'py, PyDict>) -> PyResult<PageFound<'py>> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let found = enter(py, || copied(self.past()?.page(&listing, condition.as_ref())?))?;
        told(py, found)
    }
}

/// Records as they were when it began, each made when it is asked for.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Walk {
    here: Mutex<Option<(Frozen, usize)>>,
    since: Unchanged,
}

impl Walk {
    fn here(&self) -> MutexGuard<'_, Option<(Frozen, usize)>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Walk {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        // Nobody is kept from their turn meanwhile.
        let at = self.here().as_ref().map(|(_, at)| *at);
        if let Some(at) = at {
            enter(py, || self.since.check_on_the_way(at))?;
        }
        let mut here = self.here();
        let Some((frozen, at)) = here.as_mut() else {
            return Ok(None);
        };
        let Some((record, moments)) = frozen.row(*at) else {
            // What writers replaced meanwhile is let go.
            *here = None;
            return Ok(None);
        };
        *at += 1;
        Single::of(Dated { record, moments }).record(py).map(Some)
    }

    fn __length_hint__(&self) -> usize {
        let here = self.here();
        here.as_ref().map_or(0, |(frozen, at)| frozen.len() - at)
    }

    /// Ends it here; what is asked for then is nothing.
    fn close(&self) {
        *self.here() = None;
    }
}
