//! How does Python ask for records in order, page by page or one by one?

use std::sync::{Arc, Mutex, PoisonError};

use chronomemory::{By, Dated, Frozen, Listing, PageEnd, Viewer};
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::enter::{bad_choice, enter};
use crate::told::{Copied, Single};
use crate::view::{View, query_of};

/// What the last record of a page was ordered by, the seq of the event that made it, and its id.
type End = (Option<i64>, Option<u64>, String);
/// Records, and where to go on.
type PageFound<'py> = (Vec<Bound<'py, PyAny>>, Option<End>);

/// The terms of a listing, as keyword arguments of one dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct ListingTerms {
    kind: Option<String>,
    status: Option<String>,
    min_confidence: f64,
    limit: Option<usize>,
    faces: bool,
    by: String,
    reverse: bool,
    after: Option<End>,
}

impl ListingTerms {
    fn listing(self, py: Python<'_>, viewer: &Arc<Viewer>) -> PyResult<Listing> {
        let by = match self.by.as_str() {
            "created" => By::Created,
            "updated" => By::Updated,
            "happened" => By::Happened,
            "confidence" => By::Confidence,
            "id" => By::Id,
            other => return Err(bad_choice(py, "order_by", other, "an order of records")),
        };
        Ok(Listing {
            query: query_of(
                viewer,
                self.kind,
                self.status,
                self.min_confidence,
                self.limit,
                self.faces,
            ),
            by,
            reverse: self.reverse,
            after: self.after.map(|(key, created, id)| PageEnd { key, created, id }),
        })
    }
}

fn end_of(end: Option<PageEnd>) -> Option<End> {
    end.map(|end| (end.key, end.created, end.id))
}

#[pymethods]
impl Engine {
    /// A page of records: the terms come as one dict.
    fn page<'py>(&self, py: Python<'py>, terms: ListingTerms) -> PyResult<PageFound<'py>> {
        let listing = terms.listing(py, &self.viewer)?;
        let (found, end) = self.read(py, |store| {
            let page = store.page(&listing)?;
            Ok((Copied::of(&page.records)?, page.end))
        })?;
        Ok((found.records(py)?, end_of(end)))
    }

    /// The records of a listing as they are now, one by one.
    fn walk(&self, py: Python<'_>, terms: ListingTerms) -> PyResult<Walk> {
        let listing = terms.listing(py, &self.viewer)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing))?;
        Ok(Walk(Mutex::new(Some((frozen, 0)))))
    }
}

#[pymethods]
impl View {
    /// A page of records as they were.
    fn page<'py>(&self, py: Python<'py>, terms: ListingTerms) -> PyResult<PageFound<'py>> {
        let listing = terms.listing(py, &self.viewer)?;
        let (found, end) = enter(py, || {
            let page = self.view.page(&listing)?;
            Ok((Copied::of(&page.records)?, page.end))
        })?;
        Ok((found.records(py)?, end_of(end)))
    }
}

/// Records as they were when it began, each made when it is asked for.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Walk(Mutex<Option<(Frozen, usize)>>);

#[pymethods]
impl Walk {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        here.as_ref().map_or(0, |(frozen, at)| frozen.len() - at)
    }

    /// Ends it here; what is asked for then is nothing.
    fn close(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
