//! How do recalls of blocks look from Python?

use chronomemory::{Answer, Ask, Columns, Dated, Dropped, Found, Machine, Misfit, Reach, Store, fit, gathered, misfit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::engine::Engine;
use crate::enter::bad_choice;
use crate::object;
use crate::select::condition_of;
use crate::told::{Copied, Single};

/// What a door takes for a question: the names are those of [`Ask`].
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Question {
    hours: f64,
    k: usize,
    weights: [f64; 5],
    tag_patterns: Vec<String>,
    categories: Vec<String>,
    window: Option<f64>,
    min_confidence: f64,
    guarantees: Vec<String>,
    space: String,
    query: Option<Vec<u8>>,
    text: Option<String>,
    expansion: usize,
    diversify: bool,
    exploration: f64,
    frame: bool,
    budget: Option<u64>,
    condition: Option<Vec<u8>>,
}

impl Question {
    fn into_ask(self, py: Python<'_>) -> PyResult<Ask> {
        let query = self.query.as_deref().map(|bytes| floats(py, bytes)).transpose()?;
        Ok(Ask {
            hours: self.hours,
            k: self.k,
            weights: self.weights,
            tag_patterns: self.tag_patterns,
            categories: self.categories,
            window: self.window,
            min_confidence: self.min_confidence,
            guarantees: self.guarantees,
            space: self.space,
            query,
            text: self.text,
            expansion: self.expansion,
            diversify: self.diversify,
            exploration: self.exploration,
            frame: self.frame,
            budget: self.budget,
            threads: Machine::threads(),
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

fn found<'py>(py: Python<'py>, found: &Found) -> PyResult<Bound<'py, PyTuple>> {
    let Found {
        id,
        score,
        components,
        tokens,
        expanded,
        guaranteed,
        record,
    } = found;
    let record = record.as_deref().map(|bytes| object::record(py, bytes)).transpose()?;
    (id, *score, *components, *tokens, *expanded, *guaranteed, record).into_pyobject(py)
}

fn reason(why: Dropped) -> &'static str {
    match why {
        Dropped::Contradiction => "contradiction",
        Dropped::Budget => "budget",
    }
}

fn told<'py>(py: Python<'py>, answer: &Answer) -> PyResult<Bound<'py, PyDict>> {
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

impl Engine {
    fn blocks<T: Send>(&self, py: Python<'_>, ask: impl FnOnce(&Columns) -> T + Send) -> PyResult<T> {
        self.run(py, |engine| engine.blocks(ask))
    }
}

#[pymethods]
impl Engine {
    /// Answers a question about blocks.
    fn recall_blocks<'py>(&self, py: Python<'py>, question: &Bound<'py, PyDict>) -> PyResult<Bound<'py, PyDict>> {
        let ask = question.extract::<Question>()?.into_ask(py)?;
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
            engine.nearest_blocks(space, &vectors, dim, Reach { number, least })
        })
    }

    /// The ids of inbox and active blocks that have a tag like the pattern.
    fn blocks_tagged(&self, py: Python<'_>, pattern: &str) -> PyResult<Vec<String>> {
        self.blocks(py, |columns| columns.tagged(pattern))
    }

    /// The links of these blocks.
    fn block_links(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.blocks(py, |columns| columns.links_of(&ids))
    }

    /// The blocks that each of these is becoming linked with.
    fn blocks_forming(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<Vec<String>>> {
        self.blocks(py, |columns| columns.forming_with(&ids))
    }

    /// The unresolved contradictions of these blocks.
    fn block_contradictions(&self, py: Python<'_>, ids: Vec<String>) -> PyResult<Vec<(String, String)>> {
        self.blocks(py, |columns| columns.contradictions_of(&ids))
    }

    /// The records of a kind of this face, of one status or of all, in insertion order.
    #[pyo3(signature = (kind, status, limit))]
    fn block_records<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        status: Option<&str>,
        limit: Option<usize>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let found = self.read(py, |store| {
            let found = store.blocks_of(kind, status).take(limit.unwrap_or(usize::MAX));
            Copied::of(&gathered(found)?)
        })?;
        found.records(py)
    }

    /// How many there are.
    fn block_count(&self, py: Python<'_>, kind: &str, status: &str) -> PyResult<usize> {
        let count = |store: &Store| Ok(store.blocks_of(kind, Some(status)).count());
        self.read(py, count)
    }

    /// One record, unless it is none of this face.
    fn block_record<'py>(&self, py: Python<'py>, record_id: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
        let sound = |one: &Dated<'_>| misfit(one.record).is_none();
        let found = self.read(py, |store| {
            Ok(store.dated(&self.viewer, record_id).filter(sound).map(Single::of))
        })?;
        found.map(|one| one.record(py)).transpose()
    }

    /// The head of the log and records as of it, without those that no verb of their face can use.
    #[allow(clippy::needless_pass_by_value)] // what is extracted is owned
    fn records_at_once<'py>(
        &self,
        py: Python<'py>,
        ids: Vec<String>,
    ) -> PyResult<(String, Vec<Option<Bound<'py, PyAny>>>)> {
        let sound = |one: &Dated<'_>| misfit(one.record).is_none();
        let (head, found) = self.read(py, |store| {
            let found: Vec<_> = ids
                .iter()
                .map(|id| store.dated(&self.viewer, id).filter(sound).map(Single::of))
                .collect();
            Ok((store.head(), found))
        })?;
        let records = found
            .into_iter()
            .map(|one| one.map(|one| one.record(py)).transpose())
            .collect::<PyResult<_>>()?;
        Ok((head, records))
    }

    /// The records that have an id of this face and that no verb of it can use: id, field, reason.
    fn block_misfits(&self, py: Python<'_>) -> PyResult<Vec<(String, String, String)>> {
        let told = |(id, Misfit { field, reason })| (id, field, reason);
        self.blocks(py, |columns| columns.misfits().into_iter().map(told).collect())
    }
}

/// Which results fit a budget, in their order.
#[pyfunction]
pub fn fit_budget(tokens: Vec<u64>, guaranteed: Vec<bool>, budget: Option<u64>) -> Vec<bool> {
    fit(&tokens, &guaranteed, budget)
}
