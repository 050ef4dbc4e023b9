//! How does Python write what it made from what it has read?

use chronomemory::store::Bookmark;
use pyo3::prelude::*;

use crate::engine::Engine;
use crate::event::WalEvent;
use crate::handle::now;

/// Where the log ends now, as its head and the place behind it: for [`write_unless_changed`].
#[pyfunction]
pub fn bookmark(py: Python<'_>, engine: &Bound<'_, Engine>) -> PyResult<(String, u64)> {
    let Bookmark { head, end } = engine.get().handle().read(py, |store| Ok(store.bookmark()))?;
    Ok((head, end))
}

/// Writes changes as one batch unless one of the ids that were read changed behind the bookmark, or nobody can tell: the
/// last event, or nothing.
#[pyfunction]
#[pyo3(signature = (engine, changes, face, since, read))]
pub fn write_unless_changed(
    py: Python<'_>,
    engine: &Bound<'_, Engine>,
    changes: &Bound<'_, PyAny>,
    face: Option<&str>,
    since: (String, u64),
    read: Vec<String>,
) -> PyResult<Option<WalEvent>> {
    let engine = engine.get();
    let desk = engine.draft_of(changes, face)?;
    let since = Bookmark {
        head: since.0,
        end: since.1,
    };
    let committed = engine.handle().change(py, |store| {
        store.commit_unless_changed(&desk.draft, &read, &since, now())
    })?;
    engine.keep(desk);
    Ok(committed.map(|committed| WalEvent::of_line(committed.last_line)))
}
