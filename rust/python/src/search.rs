//! Takes a search in from Python, and hands its hits back.

use std::sync::Arc;

use chronomemory::{Condition, Dated, RecordSearch, SearchHit, TextFilter, TokenQuestion, Viewer, WordSplitter, asked};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::asked::{condition_of, joined};
use crate::matrix::floats;
use crate::told::Single;

/// A record, its score and, if asked for, what the score is made of.
pub type Found<'py> = (Bound<'py, PyAny>, f64, Option<Bound<'py, PyDict>>);

/// What a caller looks for, as keyword arguments of one dict.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Wanted<'py> {
    text: Option<String>,
    vector: Option<PyReadonlyArray1<'py, f32>>,
    space: Option<String>,
    query_tokens: Option<PyReadonlyArray2<'py, f32>>,
    token_space: Option<String>,
    kinds: Vec<String>,
    without_kinds: Vec<String>,
    status: Option<String>,
    min_confidence: f64,
    tags: Vec<String>,
    since_us: Option<i64>,
    until_us: Option<i64>,
    limit: usize,
    context: bool,
    now_us: i64,
    condition: Option<Vec<u8>>,
}

impl Wanted<'_> {
    /// The search that somebody asks for.
    pub fn search(self, py: Python<'_>, viewer: &Arc<Viewer>) -> PyResult<RecordSearch> {
        let wanted = self;
        let tokens = wanted.query_tokens.as_ref().map(|tokens| floats(py, tokens));
        let tokens = tokens.transpose()?.map(|(vectors, dim)| TokenQuestion {
            space: wanted.token_space,
            vectors: vectors.to_vec(),
            dim,
        });
        Ok(RecordSearch {
            tokens,
            viewer: Arc::clone(viewer),
            text: wanted.text,
            vector: wanted.vector.map(|vector| vector.as_array().to_vec()),
            space: wanted.space,
            filter: TextFilter {
                kinds: wanted.kinds,
                without_kinds: wanted.without_kinds,
                status: wanted.status.filter(|status| !status.is_empty()),
                min_confidence: wanted.min_confidence,
                tags: wanted.tags,
                ..TextFilter::default()
            },
            limit: wanted.limit,
            context: wanted.context,
            now: wanted.now_us,
            condition: joined([
                condition_of(py, wanted.condition)?,
                wanted.since_us.map(Condition::since),
                wanted.until_us.map(Condition::until),
            ]),
        })
    }
}

/// Hits as Python sees them.
pub fn found<'py>(py: Python<'py>, hits: &[SearchHit], explain: bool) -> PyResult<Vec<Found<'py>>> {
    hits.iter()
        .map(|hit| {
            let why = explain.then(|| explained(py, hit)).transpose()?;
            let found = Dated {
                record: &hit.record,
                moments: hit.moments,
            };
            Ok((Single::of(found).record(py)?, hit.score, why))
        })
        .collect()
}

fn explained<'py>(py: Python<'py>, hit: &SearchHit) -> PyResult<Bound<'py, PyDict>> {
    let why = PyDict::new(py);
    let words = PyDict::new(py);
    for (word, score) in &hit.words {
        words.set_item(word, score)?;
    }
    why.set_item("text", hit.text)?;
    why.set_item("words", words)?;
    why.set_item("cosine", hit.cosine)?;
    why.set_item("tokens", hit.tokens)?;
    why.set_item("text_share", hit.shares.text)?;
    why.set_item("vector_share", hit.shares.vector)?;
    why.set_item("token_share", hit.shares.tokens)?;
    why.set_item("alone", hit.alone)?;
    why.set_item("linked", hit.lift.linked)?;
    why.set_item("linked_by", &hit.linked_by)?;
    why.set_item("second", hit.lift.second)?;
    why.set_item("second_by", &hit.second_by)?;
    why.set_item("grouped", hit.lift.grouped)?;
    why.set_item("grouped_by", &hit.grouped_by)?;
    why.set_item("timed", hit.lift.timed)?;
    why.set_item("spoken", hit.lift.spoken)?;
    why.set_item("score", hit.score)?;
    Ok(why)
}

/// The words of a text as the index knows them.
#[pyfunction]
pub fn text_words(text: &str) -> Vec<String> {
    WordSplitter::default().stems(text)
}

/// The words that a question asks for.
#[pyfunction]
pub fn question_words(text: &str) -> Vec<String> {
    asked(text)
}
