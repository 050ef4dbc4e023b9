//! Requests about embeddings, which are passed as NumPy arrays without a copy on this side.

use std::sync::Arc;

use chronomemory::{Attachment, Bookmark, Error, Ids, Machine, Neighbour, Query, VectorQuestion};
use numpy::{IntoPyArray, PyArray2, PyArrayMethods, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString};

use crate::Dict;
use crate::boundary::{detached, invalid};
use crate::engine::Handle;
use crate::requests::{condition_of, item};
use crate::tables::TablePart;

pub type Matrix<'py> = PyReadonlyArray2<'py, f32>;

/// Embeddings: ids, rows, space, model, and the length of token vectors if the rows are codes of them.
pub type Rows<'py> = (Bound<'py, PyList>, Matrix<'py>, Option<String>, Option<String>, usize);

pub fn attachment<'a>(py: Python<'_>, given: &'a Rows<'_>, ids: &'a Ids) -> PyResult<Attachment<'a>> {
    let (_, matrix, space, model, tokens) = given;
    let (rows, dim) = floats(py, matrix)?;
    Ok(Attachment {
        space: space.as_deref(),
        model: model.as_deref(),
        dim,
        tokens: *tokens,
        ids,
        rows,
    })
}

/// The floats of a matrix, and how many there are in a row.
pub fn floats<'a>(py: Python<'_>, matrix: &'a Matrix<'_>) -> PyResult<(&'a [f32], usize)> {
    match matrix.as_slice() {
        Ok(floats) => Ok((floats, matrix.shape()[1])),
        Err(_) => Err(invalid(py, "vector", "the array is not contiguous")),
    }
}

/// The ids in a list, without a string for each.
pub fn ids_in(list: &Bound<'_, PyList>) -> PyResult<Ids> {
    let mut ids = Ids::with_capacity(list.len());
    for id in list {
        ids.push(id.cast::<PyString>()?.to_str()?);
    }
    Ok(ids)
}

/// One row of codes per record: `counts` are the numbers of token vectors of the records, `most` limits the codes of a row.
#[pyfunction]
pub fn token_rows<'py>(
    py: Python<'py>,
    vectors: Matrix<'py>,
    counts: Vec<usize>,
    most: usize,
) -> PyResult<Bound<'py, PyArray2<f32>>> {
    let (given, dim) = floats(py, &vectors)?;
    let rows = detached(py, || {
        let rows = chronomemory::token_rows(given, dim, &counts, most, Machine::threads());
        rows.map_err(|fault| Error::invalid("tokens", fault.to_string()))
    })?;
    let codes = rows.len() / counts.len().max(1);
    rows.into_pyarray(py).reshape([counts.len(), codes])
}

/// The embeddings of an open store.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Vectors(pub Handle);

#[pymethods]
impl Vectors {
    #[pyo3(signature = (rows, since=None))]
    fn attach(&self, py: Python<'_>, rows: Rows<'_>, since: Option<(String, u64)>) -> PyResult<Option<(u64, u64)>> {
        let (viewer, ids) = (&self.0.viewer, ids_in(&rows.0)?);
        let attachment = attachment(py, &rows, &ids)?;
        let since = since.map(|(head, end)| Bookmark { head, end });
        let committed = self.0.run(py, |engine| {
            engine.write(|store, now| store.attach(&attachment, viewer, since.as_ref(), now))
        })?;
        Ok(committed.map(|committed| (committed.first_seq, committed.next_seq)))
    }

    /// Attaches the embeddings of some rows of a table, all but the given rows; returns how many.
    fn attach_part(
        &self,
        py: Python<'_>,
        part: &TablePart,
        without: Vec<usize>,
        space: Option<&str>,
        model: Option<&str>,
    ) -> PyResult<usize> {
        let viewer = &self.0.viewer;
        let attached = self.0.run(py, |engine| {
            let attach = |rows: &Attachment<'_>| {
                engine.write(|store, now| store.attach(rows, viewer, None, now))?;
                Ok(rows.ids.len())
            };
            part.attach(&without, (space, model), attach).transpose()
        })?;
        Ok(attached.unwrap_or(0))
    }

    fn detach(&self, py: Python<'_>, ids: Vec<String>, space: Option<&str>) -> PyResult<usize> {
        let viewer = &self.0.viewer;
        self.0.change(py, |store, now| {
            store.change_embeddings(now, |known| known.detach(space, &ids, viewer))
        })
    }

    fn embedding<'py>(
        &self,
        py: Python<'py>,
        record_id: &str,
        space: Option<&str>,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let handle = &self.0;
        let found = handle.run(py, |engine| engine.embedding(&handle.viewer, space, record_id))?;
        Ok(found.map(|bytes| PyBytes::new(py, &bytes)))
    }

    fn spaces<'py>(&self, py: Python<'py>) -> PyResult<Vec<Dict<'py>>> {
        let spaces = self
            .0
            .read(py, |store| Ok(store.embeddings().spaces()))?
            .into_iter()
            .map(|space| {
                Ok(dict!(py, space; name, model, dim, generation, tokens, rows, living, bytes, damaged, is_default))
            });
        spaces.collect()
    }

    fn rows_seen(&self, py: Python<'_>, space: &str) -> PyResult<Option<(u64, u64)>> {
        self.0
            .read(py, |store| store.embeddings().rows_seen(&self.0.viewer, space))
    }

    fn drop_space(&self, py: Python<'_>, name: &str, force: bool) -> PyResult<u32> {
        self.0.change(py, |store, now| {
            store.change_embeddings(now, |known| known.drop_space(name, force))
        })
    }

    fn choose_space(&self, py: Python<'_>, name: &str) -> PyResult<()> {
        self.0.change(py, |store, now| {
            store.change_embeddings(now, |known| known.choose_space(name))
        })
    }

    #[pyo3(signature = (*, space=None))]
    fn matrix(&self, py: Python<'_>, space: Option<&str>) -> PyResult<(String, u32, usize, Vec<Option<String>>)> {
        let found = self.0.read(py, |store| {
            let mut found = store.embeddings().matrix(space)?;
            let is_seen = |id: &String| store.state().seen(&self.0.viewer, id).is_some();
            for id in &mut found.ids {
                *id = id.take().filter(is_seen);
            }
            Ok(found)
        })?;
        let path = found.path.to_string_lossy().into_owned();
        Ok((path, found.rows, found.dim, found.ids))
    }

    fn nearest(&self, queries: Matrix<'_>, request: &Dict<'_>) -> PyResult<Vec<Vec<(String, f32, u32)>>> {
        let py = request.py();
        let (rows, dim) = floats(py, &queries)?;
        let space: Option<String> = item(request, "space")?;
        let among: Option<Vec<String>> = item(request, "among")?;
        let condition = condition_of(py, item(request, "condition")?)?;
        let kind: Option<String> = item(request, "kind")?;
        let question = VectorQuestion {
            space: space.as_deref(),
            k: item(request, "k")?,
            query: from_items!(Query, request; status, min_confidence;
                viewer: Arc::clone(&self.0.viewer), kinds: kind.map(|kind| vec![kind]), without_kinds: None, limit: None, faces: true),
            among: among.as_deref(),
            min_score: item(request, "min_score")?,
            condition: condition.as_ref(),
        };
        let handle = self.0.counted();
        let found = handle.run(py, |engine| engine.nearest(&question, rows, dim))?;
        let plain = |hit: Neighbour| (hit.id, hit.score, hit.row);
        let found = found.into_iter();
        Ok(found.map(|hits| hits.into_iter().map(plain).collect()).collect())
    }
}
