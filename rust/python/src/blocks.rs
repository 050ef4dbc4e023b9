//! Requests that recall blocks and look them up.

use std::borrow::Cow;
use std::sync::Arc;

use chronomemory::{
    Ask, BlockColumns, BlockReach, Carried, Dated, FoundBlock, SeenAs, Sight, Store, Viewer, block_key, gathered,
    link_key, misfit,
};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::engine::{Handle, Look};
use crate::packed::{OneRecord, Records};
use crate::requests::{condition_of, item, vectors_of};
use crate::vectors::{Matrix, floats};
use crate::{Dict, Object};

/// The question of a recall.
fn ask_of(question: &Dict<'_>, viewer: &Arc<Viewer>) -> PyResult<Ask> {
    let (vector, tokens) = vectors_of(question)?;
    let condition = condition_of(question.py(), item(question, "condition")?)?;
    let ask = from_items!(Ask, question; hours, k, prefer_newest, weights, tag_patterns, tags, categories, window, min_similarity,
        min_confidence, guarantees, space, text, by_words, expansion, diversify, exploration, frame;
        viewer: Arc::clone(viewer), query: vector, tokens: tokens, now: item(question, "now_us")?,
        condition: condition, slots: None);
    Ok(ask)
}

fn found<'py>(py: Python<'py>, found: &FoundBlock) -> PyResult<Bound<'py, PyTuple>> {
    let record = found.record.as_ref().map(|(record, moments)| {
        let moments = *moments;
        OneRecord::of(Dated {
            record: Cow::Borrowed(record),
            moments,
        })
        .into_python(py)
    });
    (
        &found.id,
        found.score,
        found.components,
        found.relevance,
        found.expanded,
        found.guaranteed,
        &found.newer_than,
        record.transpose()?,
        found.own_scope,
    )
        .into_pyobject(py)
}

type Near = Vec<Vec<(String, f32)>>;

/// The blocks of an open store.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Blocks(pub Handle);

#[pymethods]
impl Blocks {
    fn recall<'py>(&self, py: Python<'py>, question: &Dict<'py>) -> PyResult<Dict<'py>> {
        let ask = ask_of(question, &self.0.viewer)?;
        let answer = self.0.counted().run(py, |engine| engine.recall(&ask))?;
        let results: Vec<_> = answer
            .results
            .iter()
            .map(|one| found(py, one))
            .collect::<PyResult<_>>()?;
        Ok(dict!(py, answer; clashes, candidates, suppressed; results: results))
    }

    fn nearest(&self, py: Python<'_>, space: &str, vectors: Matrix<'_>, number: usize, least: f32) -> PyResult<Near> {
        let (rows, dim) = floats(py, &vectors)?;
        let reach = BlockReach { number, least };
        self.0.run(py, |engine| {
            engine.nearest_blocks(&self.0.viewer, space, rows, dim, reach)
        })
    }

    /// What a block that arrives depends on: some records, then the active blocks that are near its vector, then their links
    /// to it. The neighbours come after the bookmark, so that a batch is in conflict with those that come later.
    #[allow(clippy::too_many_arguments)]
    fn arrival<'py>(
        &self,
        py: Python<'py>,
        block_id: &str,
        mut ids: Vec<String>,
        space: &str,
        vector: Matrix<'_>,
        number: usize,
        least: f32,
    ) -> PyResult<(Vec<String>, Look<'py>, Near)> {
        let mut look = self.0.look_at(py, &ids)?;
        let near = self.nearest(py, space, vector, number, least)?;
        let others = near
            .iter()
            .flatten()
            .map(|one| one.0.as_str())
            .filter(|other| *other != block_id);
        let others = others.flat_map(|other| [block_key(other), link_key(block_id, other)]);
        let others: Vec<String> = others.collect();
        let (_, _, found, own_scopes) = self.0.look_at(py, &others)?;
        ids.extend(others);
        look.2.extend(found);
        look.3.extend(own_scopes);
        Ok((ids, look, near))
    }

    fn tagged(&self, py: Python<'_>, pattern: &str) -> PyResult<Vec<String>> {
        self.columns(py, |columns, sight| columns.tagged(pattern, sight))
    }

    fn links(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.columns(py, |columns, sight| columns.links_of(&ids, sight))
    }

    fn forming(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<Vec<String>>> {
        self.columns(py, |columns, sight| columns.forming_with(&ids, sight))
    }

    fn contradictions(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.columns(py, |columns, sight| columns.contradictions_of(&ids, sight))
    }

    fn misfits(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        self.columns(py, |columns, sight| {
            let misfits = columns.misfits(sight).into_iter();
            misfits.map(|(id, misfit)| (id, misfit.field, misfit.reason)).collect()
        })
    }

    fn census(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, usize)> {
        let census = self.0.run(py, |engine| engine.census(&self.0.viewer))?;
        Ok((census.links, census.contradictions, census.forming, census.in_sessions))
    }

    fn get<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Option<Object<'py>>> {
        let found = self.0.read(py, |store| {
            let found = store.state().dated(&self.0.viewer, record_id);
            Ok(found.filter(|one| misfit(&one.record).is_none()).map(OneRecord::of))
        })?;
        found.map(|one| one.into_python(py)).transpose()
    }

    #[pyo3(signature = (kind, status, limit, *, own=false))]
    fn records<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        status: Option<&str>,
        limit: Option<usize>,
        own: bool,
    ) -> PyResult<Vec<Object<'py>>> {
        let found = self.0.read(py, |store| {
            let found = listed(store, &self.0.viewer, kind, status, own);
            Records::of(&gathered(found.take(limit.unwrap_or(usize::MAX)))?)
        })?;
        found.into_python(py)
    }

    fn count(&self, py: Python<'_>, kind: &str, status: &str, own: bool) -> PyResult<usize> {
        let viewer = &self.0.viewer;
        self.0
            .read(py, |store| Ok(listed(store, viewer, kind, Some(status), own).count()))
    }
}

impl Blocks {
    fn columns<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&BlockColumns, &Sight) -> T + Send) -> PyResult<T> {
        self.0.run(py, |engine| {
            engine.blocks(&self.0.viewer, |columns, view| ask(columns, &view.sight))
        })
    }
}

fn listed<'a>(
    store: &'a Store,
    viewer: &'a Arc<Viewer>,
    kind: &'a str,
    status: Option<&'a str>,
    own: bool,
) -> impl Iterator<Item = Dated<'a>> {
    let is_own = |record: &[u8]| viewer.sees(&Carried::of(record)) == Some(SeenAs::Own);
    let found = store.blocks_of(viewer, kind, status);
    found.filter(move |one| !own || is_own(&one.record))
}
