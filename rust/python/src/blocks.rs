//! The methods that recall blocks and look them up, for Python.

use std::sync::Arc;

use chronomemory::{
    Ask, BlockAnswer, BlockColumns, BlockMisfit, BlockReach, Bookmark, Carried, Census, Dated, Dropped, FoundBlock,
    SeenAs, Sight, TokenQuestion, Viewer, fit, gathered, misfit,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::asked::condition_of;
use crate::edition::Edition;
use crate::engine::Engine;
use crate::enter::bad_choice;
use crate::told::{Copied, Single};

/// What a door takes for a question: the names are those of [`Ask`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Question {
    hours: f64,
    k: usize,
    weights: [f64; 5],
    tag_patterns: Vec<String>,
    tags: Vec<String>,
    categories: Vec<String>,
    window: Option<f64>,
    min_confidence: f64,
    guarantees: Vec<String>,
    space: String,
    query: Option<Vec<u8>>,
    tokens: Option<Vec<u8>>,
    token_space: String,
    token_dim: usize,
    text: Option<String>,
    by_words: bool,
    now_us: i64,
    expansion: usize,
    diversify: bool,
    exploration: f64,
    frame: bool,
    budget: Option<u64>,
    condition: Option<Vec<u8>>,
}

impl Question {
    fn into_ask(self, py: Python<'_>, viewer: &Arc<Viewer>) -> PyResult<Ask> {
        let query = self.query.as_deref().map(|bytes| floats(py, bytes)).transpose()?;
        let vectors = self.tokens.as_deref().map(|bytes| floats(py, bytes)).transpose()?;
        let tokens = vectors.map(|vectors| TokenQuestion {
            space: Some(self.token_space),
            vectors,
            dim: self.token_dim,
        });
        Ok(Ask {
            viewer: Arc::clone(viewer),
            hours: self.hours,
            k: self.k,
            weights: self.weights,
            tag_patterns: self.tag_patterns,
            tags: self.tags,
            categories: self.categories,
            window: self.window,
            min_confidence: self.min_confidence,
            guarantees: self.guarantees,
            space: self.space,
            query,
            tokens,
            text: self.text,
            by_words: self.by_words,
            now: self.now_us,
            expansion: self.expansion,
            diversify: self.diversify,
            exploration: self.exploration,
            frame: self.frame,
            budget: self.budget,
            condition: condition_of(py, self.condition)?,
            slots: None,
        })
    }
}

fn floats(py: Python<'_>, bytes: &[u8]) -> PyResult<Vec<f32>> {
    let (values, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() || values.is_empty() {
        return Err(bad_choice(py, "query", "", "the bytes of one or more float32"));
    }
    Ok(values.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect())
}

fn found<'py>(py: Python<'py>, found: &FoundBlock) -> PyResult<Bound<'py, PyTuple>> {
    let FoundBlock {
        id,
        score,
        components,
        tokens,
        expanded,
        guaranteed,
        record,
        own_scope,
    } = found;
    let dated = record.as_ref().map(|(record, moments)| Dated {
        record,
        moments: *moments,
    });
    let record = dated.map(|one| Single::of(one).versioned(py)).transpose()?;
    (
        id,
        *score,
        *components,
        *tokens,
        *expanded,
        *guaranteed,
        record,
        *own_scope,
    )
        .into_pyobject(py)
}

fn reason(why: Dropped) -> &'static str {
    match why {
        Dropped::Contradiction => "contradiction",
        Dropped::Budget => "budget",
    }
}

fn told<'py>(py: Python<'py>, answer: &BlockAnswer) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let results: Vec<_> = answer
        .results
        .iter()
        .map(|one| found(py, one))
        .collect::<PyResult<_>>()?;
    let dropped: Vec<_> = answer.dropped.iter().map(|(id, why)| (id, reason(*why))).collect();
    dict.set_item("results", results)?;
    dict.set_item("dropped", dropped)?;
    dict.set_item("clashes", &answer.clashes)?;
    dict.set_item("candidates", answer.candidates)?;
    Ok(dict)
}

/// What is seen, where the log ends, records, and the scopes of those that may be changed.
type Looked<'py> = (Edition, (String, u64), Vec<Option<Bound<'py, PyAny>>>, Vec<Option<u32>>);

impl Engine {
    fn blocks<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&BlockColumns, &Sight) -> T + Send) -> PyResult<T> {
        self.run(py, |engine| {
            engine.blocks(&self.viewer, |columns, outlook| ask(columns, &outlook.sight))
        })
    }
}

#[pymethods]
impl Engine {
    /// Answers a question about blocks.
    fn recall_blocks<'py>(&self, py: Python<'py>, question: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let ask = question.extract::<Question>()?.into_ask(py, &self.viewer)?;
        self.searched();
        let answer = self.run(py, |engine| engine.recall(&ask))?;
        told(py, &answer)
    }

    /// For each of several vectors the active blocks of at least this cosine, the nearest first.
    fn nearest_blocks(
        &self,
        py: Python<'_>,
        space: &str,
        vectors: &[u8],
        dim: usize,
        number: usize,
        least: f32,
    ) -> PyResult<Vec<Vec<(String, f32)>>> {
        let vectors = floats(py, vectors)?;
        self.run(py, |engine| {
            engine.nearest_blocks(&self.viewer, space, &vectors, dim, BlockReach { number, least })
        })
    }

    /// The ids of inbox and active blocks that have a tag like the pattern.
    fn blocks_tagged(&self, py: Python<'_>, pattern: &str) -> PyResult<Vec<String>> {
        self.blocks(py, |columns, sight| columns.tagged(pattern, sight))
    }

    /// The links of these blocks.
    fn block_links(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.blocks(py, |columns, sight| columns.links_of(&ids, sight))
    }

    /// The blocks that each of these is becoming linked with.
    fn blocks_forming(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<Vec<String>>> {
        self.blocks(py, |columns, sight| columns.forming_with(&ids, sight))
    }

    /// The unresolved contradictions of these blocks.
    fn block_contradictions(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.blocks(py, |columns, sight| columns.contradictions_of(&ids, sight))
    }

    /// How many links, contradictions and links that are forming are seen with both ends, and how many blocks lie in sessions.
    fn blocks_counted(&self, py: Python<'_>) -> PyResult<(usize, usize, usize, usize)> {
        let Census {
            links,
            contradictions,
            forming,
            in_sessions,
        } = self.run(py, |engine| engine.census(&self.viewer))?;
        Ok((links, contradictions, forming, in_sessions))
    }

    /// The records of a kind of this face, of one status or of all, in insertion order; those that may be changed, or all that
    /// are seen.
    #[pyo3(signature = (kind, status, limit, *, own=false))]
    fn block_records<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        status: Option<&str>,
        limit: Option<usize>,
        own: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let viewer = &self.viewer;
        let found = self.read(py, |store| {
            let found = store.blocks_of(viewer, kind, status);
            let found = found.filter(|one| !own || is_own(viewer, one.record));
            let found = found.take(limit.unwrap_or(usize::MAX));
            Copied::of(&gathered(found)?)
        })?;
        found.records(py)
    }

    /// How many there are.
    #[pyo3(signature = (kind, status, *, own=false))]
    fn block_count(&self, py: Python<'_>, kind: &str, status: &str, own: bool) -> PyResult<usize> {
        let viewer = &self.viewer;
        self.read(py, |store| {
            let found = store.blocks_of(viewer, kind, Some(status));
            Ok(found.filter(|one| !own || is_own(viewer, one.record)).count())
        })
    }

    /// One record, unless it is none of this face.
    fn block_record<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let sound = |one: &Dated<'_>| misfit(one.record).is_none();
        let found = self.read(py, |store| {
            Ok(store.dated(&self.viewer, record_id).filter(sound).map(Single::of))
        })?;
        found.map(|one| one.record(py)).transpose()
    }

    /// One look: what is seen now, where the log ends, records without those that no verb of their face can use, and for each
    /// that may be changed a number; those that carry the same scope have the same one.
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn records_at_once<'py>(&self, py: Python<'py>, ids: Vec<String>) -> PyResult<Looked<'py>> {
        let sound = |one: &Dated<'_>| misfit(one.record).is_none();
        let (edition, Bookmark { head, end }, found, own) = self.read(py, |store| {
            let found: Vec<_> = ids
                .iter()
                .map(|id| store.dated(&self.viewer, id).filter(sound).map(Single::of))
                .collect();
            let own = ids.iter().map(|id| store.own_scope(&self.viewer, id)).collect();
            Ok((Edition(store.edition(&self.viewer)), store.bookmark(), found, own))
        })?;
        let records = found
            .into_iter()
            .map(|one| one.map(|one| one.record(py)).transpose())
            .collect::<PyResult<_>>()?;
        Ok((edition, (head, end), records, own))
    }

    /// The records that have an id of this face and that no verb of it can use: id, field, reason.
    fn block_misfits(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        let told = |(id, BlockMisfit { field, reason })| (id, field, reason);
        self.blocks(py, |columns, sight| {
            columns.misfits(sight).into_iter().map(told).collect()
        })
    }
}

/// Whether a record is somebody's to change.
fn is_own(viewer: &Viewer, record: &[u8]) -> bool {
    viewer.sees(&Carried::of(record)) == Some(SeenAs::Own)
}

/// Which results fit a budget, in their order.
#[pyfunction]
pub fn fit_budget(tokens: Vec<u64>, guaranteed: Vec<bool>, budget: Option<u64>) -> Vec<bool> {
    fit(&tokens, &guaranteed, budget)
}
