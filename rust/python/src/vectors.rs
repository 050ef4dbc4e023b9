//! Passes embeddings between Python and the engine as NumPy arrays, without a copy on this side.

use std::sync::Arc;

use chronomemory::{Attachment, Bookmark, Query, VectorQuestion};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::asked::condition_of;
use crate::engine::Engine;
use crate::enter::enter;
use crate::matrix::{floats, ids_in};

/// Rows of codes for the token vectors of records: all of them end to end, how many each has, and how many codes a row has.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // what is extracted is owned
pub fn token_rows<'py>(
    py: Python<'py>,
    vectors: PyReadonlyArray2<'py, f32>,
    counts: Vec<usize>,
    most: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (given, dim) = floats(py, &vectors)?;
    let rows = enter(py, || chronomemory::Engine::token_rows(given, dim, &counts, most))?;
    let codes = rows.len() / counts.len().max(1);
    rows.into_pyarray(py).reshape([counts.len(), codes])
}

#[pymethods]
impl Engine {
    /// Gives records embeddings, all or none: the first seq and the one after the last. With a bookmark nothing is written if a
    /// record has changed since, or has an embedding there by now.
    #[pyo3(signature = (ids, matrix, *, space=None, model=None, since=None, tokens=0))]
    #[allow(clippy::needless_pass_by_value, clippy::too_many_arguments)] // what is extracted is owned
    fn attach(
        &self,
        py: Python<'_>,
        ids: &Bound<'_, PyList>,
        matrix: PyReadonlyArray2<'_, f32>,
        space: Option<&str>,
        model: Option<&str>,
        since: Option<(String, u64)>,
        tokens: usize,
    ) -> PyResult<Option<(u64, u64)>> {
        let (rows, dim) = floats(py, &matrix)?;
        let attachment = Attachment {
            space,
            model,
            dim,
            tokens,
            ids: &ids_in(ids)?,
            rows,
        };
        let since = since.map(|(head, end)| Bookmark { head, end });
        let committed = self.run(py, |engine| {
            engine.write(|store, now| match &since {
                Some(since) => store.attach_if_missing(&attachment, &self.viewer, since, now),
                None => store.attach_unsynced(&attachment, &self.viewer, now).map(Some),
            })
        })?;
        Ok(committed.map(|committed| (committed.first_seq, committed.next_seq)))
    }

    /// Takes embeddings back: how many there were.
    #[pyo3(signature = (ids, *, space=None))]
    #[allow(clippy::needless_pass_by_value)]
    fn detach(&self, py: Python<'_>, ids: Vec<String>, space: Option<&str>) -> PyResult<usize> {
        self.run(py, |engine| {
            engine.change(|store, now| store.detach(space, &ids, &self.viewer, now))
        })
    }

    /// The bytes of a record's embedding, little-endian float32.
    #[pyo3(signature = (record_id, *, space=None))]
    fn embedding<'py>(
        &self,
        py: Python<'py>,
        record_id: &str,
        space: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = self.run(py, |engine| engine.embedding(&self.viewer, space, record_id))?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    /// All embedding spaces.
    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(py);
        for space in self.read(py, |store| Ok(store.spaces()))? {
            let dict = PyDict::new(py);
            dict.set_item("name", space.name)?;
            dict.set_item("model", space.model)?;
            dict.set_item("dim", space.dim)?;
            dict.set_item("generation", space.generation)?;
            dict.set_item("tokens", space.tokens)?;
            dict.set_item("rows", space.rows)?;
            dict.set_item("living", space.living)?;
            dict.set_item("bytes", space.bytes)?;
            dict.set_item("damaged", space.damaged)?;
            dict.set_item("is_default", space.is_default)?;
            list.append(dict)?;
        }
        Ok(list)
    }

    /// How many rows of a space are embeddings of records that are seen, and how many of these are known to be damaged; None if
    /// all scopes are seen.
    fn rows_seen(&self, py: Python<'_>, space: &str) -> PyResult<Option<(u64, u64)>> {
        self.read(py, |store| store.rows_seen(&self.viewer, space))
    }

    /// Takes a space back with all its embeddings: how many there were.
    #[pyo3(signature = (name, *, force=false))]
    fn drop_space(&self, py: Python<'_>, name: &str, force: bool) -> PyResult<u32> {
        self.run(py, |engine| {
            engine.change(|store, now| store.drop_space(name, force, now))
        })
    }

    /// Says which space is asked when none is named.
    fn choose_space(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.run(py, |engine| engine.change(|store, now| store.choose_space(name, now)))
    }

    /// Where the rows of a space lie: file, rows, dimension, and the record of each row.
    #[pyo3(signature = (*, space=None))]
    #[allow(clippy::type_complexity)]
    fn matrix(&self, py: Python<'_>, space: Option<&str>) -> PyResult<(String, u32, usize, Vec<Option<String>>)> {
        let found = self.read(py, |store| {
            let mut found = store.matrix(space)?;
            let is_seen = |id: &String| store.get_seen(&self.viewer, id).is_some();
            for id in &mut found.ids {
                *id = id.take().filter(is_seen);
            }
            Ok(found)
        })?;
        Ok((
            found.path.to_string_lossy().into_owned(),
            found.rows,
            found.dim,
            found.ids,
        ))
    }

    /// The records nearest to each row of a matrix: id, score, row.
    #[pyo3(signature = (queries, k, *, space=None, kind=None, status=None, min_confidence=0.0, among=None, min_score=None, condition=None))]
    #[allow(clippy::too_many_arguments, clippy::needless_pass_by_value)] // the signature is the public one
    fn nearest(
        &self,
        py: Python<'_>,
        queries: PyReadonlyArray2<'_, f32>,
        k: usize,
        space: Option<&str>,
        kind: Option<String>,
        status: Option<String>,
        min_confidence: f64,
        among: Option<Vec<String>>,
        min_score: Option<f32>,
        condition: Option<Vec<u8>>,
    ) -> PyResult<Vec<Vec<(String, f32, u32)>>> {
        let condition = condition_of(py, condition)?;
        let (rows, dim) = floats(py, &queries)?;
        let question = VectorQuestion {
            space,
            k,
            query: Query {
                viewer: Arc::clone(&self.viewer),
                kinds: kind.map(|kind| vec![kind]),
                status,
                min_confidence,
                limit: None,
                faces: true,
            },
            among: among.as_deref(),
            min_score,
            condition: condition.as_ref(),
        };
        self.searched();
        let found = self.run(py, |engine| engine.nearest(&question, rows, dim))?;
        let plain =
            |hits: Vec<chronomemory::Neighbour>| hits.into_iter().map(|hit| (hit.id, hit.score, hit.row)).collect();
        Ok(found.into_iter().map(plain).collect())
    }
}
