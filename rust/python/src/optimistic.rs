//! Writes what Python made from what it has read, unless that has changed.

use chronomemory::{AtomicBatch, Attachment, Bookmark, Ids};
use numpy::PyReadonlyArray2;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::edition::Edition;
use crate::engine::Engine;
use crate::event::WalEvent;
use crate::matrix::{floats, ids_in};

/// Embeddings that come with changes: ids, rows, space, model, and how many components token vectors have whose codes these are.
type Given<'py> = (
    Bound<'py, PyList>,
    PyReadonlyArray2<'py, f32>,
    Option<String>,
    Option<String>,
    usize,
);

#[pymethods]
impl Engine {
    /// Where the log ends now, as its head and the place behind it: for `write_unless_changed`.
    fn bookmark(&self, py: Python<'_>) -> PyResult<(String, u64)> {
        let Bookmark { head, end } = self.read(py, |store| Ok(store.bookmark()))?;
        Ok((head, end))
    }

    /// Calls `work` while no other thread or process writes, and returns what it returned.
    fn in_turn(&self, py: Python<'_>, work: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let work = work.clone().unbind();
        self.run(py, |engine| engine.in_turn(|| Python::attach(|py| work.call0(py))))?
    }

    /// Writes changes, and embeddings with them, as one batch unless one of the ids that were read changed behind the
    /// bookmark, or nobody can tell: the last event with what was seen before and after it, or nothing. `at_us` stamps it with
    /// a moment that has passed.
    #[pyo3(signature = (changes, face, since, read, attachments=None, *, at_us=None))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // what is extracted is owned
    fn write_unless_changed<'py>(
        &self,
        py: Python<'py>,
        changes: &Bound<'py, PyAny>,
        face: Option<&str>,
        since: (String, u64),
        read: Vec<String>,
        attachments: Option<Vec<Given<'py>>>,
        at_us: Option<i64>,
    ) -> PyResult<Option<(WalEvent, Edition, Edition)>> {
        let buffer = self.draft_of(changes, face)?;
        let since = Bookmark {
            head: since.0,
            end: since.1,
        };
        let given = attachments.unwrap_or_default();
        let ids = given
            .iter()
            .map(|(ids, ..)| ids_in(ids))
            .collect::<PyResult<Vec<Ids>>>()?;
        let mut attachments = Vec::new();
        for ((_, matrix, space, model, tokens), ids) in given.iter().zip(&ids) {
            let (rows, dim) = floats(py, matrix)?;
            attachments.push(Attachment {
                space: space.as_deref(),
                model: model.as_deref(),
                dim,
                tokens: *tokens,
                ids,
                rows,
            });
        }
        let change = AtomicBatch {
            draft: &buffer.draft,
            attachments: &attachments,
            unless_changed: Some((&since, &read)),
            at: at_us,
        };
        let written = self.run(py, |engine| engine.commit_change(&change))?;
        self.keep(buffer);
        Ok(written.map(|written| {
            let last = WalEvent::of_line(written.committed.last_line);
            (last, Edition(written.before), Edition(written.after))
        }))
    }
}
