//! Reads the requests that Python hands over as dicts.

use std::sync::Arc;

use chronomemory::{
    After, By, Condition, Direction, Listing, MadeAt, PageEnd, Query, RecordSearch, Steps, TextFilter, TokenQuestion,
    Viewer, write_string,
};
use numpy::PyReadonlyArray1;
use pyo3::conversion::FromPyObjectOwned;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::boundary::{bad_choice, must, to_python};
use crate::json::{Shapes, argument};
use crate::vectors::{Matrix, floats};
use crate::{Dict, Object};

/// An item of a request; a missing one is None.
pub fn item<'py, T: FromPyObjectOwned<'py>>(request: &Dict<'py>, name: &str) -> PyResult<T> {
    let value = request.get_item(name)?;
    let value = value.unwrap_or_else(|| request.py().None().into_bound(request.py()));
    value.extract().map_err(Into::into)
}

/// An item of a request that is one of some words, each with its value.
pub fn choice<T: Copy>(request: &Dict<'_>, name: &str, choices: &[(&str, T)]) -> PyResult<T> {
    let given: String = item(request, name)?;
    let found = choices.iter().find(|(word, _)| *word == given);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let words: Vec<&str> = choices.iter().map(|(word, _)| *word).collect();
        bad_choice(request.py(), name, &given, &format!("one of {}", words.join(", ")))
    })
}

/// One kind, or a list of kinds.
#[derive(FromPyObject)]
pub enum Kinds {
    One(String),
    Many(Vec<String>),
}

/// A query; an empty status means any.
pub fn query_of(
    viewer: &Arc<Viewer>,
    kind: Option<Kinds>,
    status: Option<String>,
    min_confidence: f64,
    limit: Option<usize>,
    faces: bool,
) -> Query {
    Query {
        viewer: Arc::clone(viewer),
        kinds: kind.map(|kind| match kind {
            Kinds::One(kind) => vec![kind],
            Kinds::Many(kinds) => kinds,
        }),
        without_kinds: None,
        status: status.filter(|status| !status.is_empty()),
        min_confidence,
        limit,
        faces,
    }
}

/// The query of a request, and the condition that its records must meet.
pub fn selection_of(request: &Dict<'_>, viewer: &Arc<Viewer>) -> PyResult<(Query, Option<Condition>)> {
    let tags: Vec<String> = item(request, "tags")?;
    let query = query_of(
        viewer,
        item(request, "kind")?,
        item(request, "status")?,
        item(request, "min_confidence")?,
        item(request, "limit")?,
        item(request, "faces")?,
    );
    let tagged = (!tags.is_empty()).then(|| Condition::tagged(&tags));
    Ok((query, condition_in(request, tagged)?))
}

/// The condition, the moments and one more condition of a request, joined.
fn condition_in(request: &Dict<'_>, more: Option<Condition>) -> PyResult<Option<Condition>> {
    let all = [
        condition_of(request.py(), item(request, "condition")?)?,
        more,
        item::<Option<i64>>(request, "since_us")?.map(Condition::since),
        item::<Option<i64>>(request, "until_us")?.map(Condition::until),
    ];
    let all: Vec<Condition> = all.into_iter().flatten().collect();
    Ok((!all.is_empty()).then(|| Condition::joined(all)))
}

/// The condition of a `where`, given as JSON.
pub fn condition_of(py: Python<'_>, json: Option<Vec<u8>>) -> PyResult<Option<Condition>> {
    let parsed = json.map(|text| Condition::parse(&text)).transpose();
    parsed.map_err(|fault| to_python(py, fault))
}

/// The seq and the moment of the event that made a record, which of its records this is, and of how many.
type Made = (Option<u64>, Option<i64>, u32, u32);

/// The sort key of the last record of a page, and where it and the one behind it were made.
pub type End = (Option<i64>, Made, Option<Made>);

/// The listing of a request: its selection, order and start.
pub fn listing_of(request: &Dict<'_>, viewer: &Arc<Viewer>) -> PyResult<(Listing, Option<Condition>)> {
    let (query, condition) = selection_of(request, viewer)?;
    let order: String = item(request, "by")?;
    let (by, field) = match order.as_str() {
        "created" => (By::Created, None),
        "updated" => (By::Updated, None),
        "happened" => (By::Happened, None),
        "confidence" => (By::Confidence, None),
        "id" => (By::Id, None),
        _ => (By::Created, Some(order)),
    };
    let made_at = |(seq, micros, nth, of): Made| MadeAt { seq, micros, nth, of };
    let after: Option<End> = item(request, "after")?;
    let listing = Listing {
        query,
        by,
        field,
        reverse: item(request, "reverse")?,
        after: after.map(|(key, made, next)| PageEnd {
            key,
            made: made_at(made),
            next: next.map(made_at),
        }),
        explains: item(request, "explain")?,
    };
    Ok((listing, condition))
}

/// The end of a page as Python keeps it.
pub fn end_of(end: PageEnd) -> End {
    let made = |at: MadeAt| (at.seq, at.micros, at.nth, at.of);
    (end.key, made(end.made), end.next.map(made))
}

/// The vector and the token vectors of a request.
pub fn vectors_of(request: &Dict<'_>) -> PyResult<(Option<Vec<f32>>, Option<TokenQuestion>)> {
    let vector: Option<PyReadonlyArray1<'_, f32>> = item(request, "vector")?;
    let vector = vector.map(|vector| vector.as_array().to_vec());
    let Some(tokens) = item::<Option<Matrix<'_>>>(request, "query_tokens")? else {
        return Ok((vector, None));
    };
    let (vectors, dim) = floats(request.py(), &tokens)?;
    let (space, vectors) = (item(request, "token_space")?, vectors.to_vec());
    Ok((vector, Some(TokenQuestion { space, vectors, dim })))
}

/// The search of a request.
pub fn search_of(request: &Dict<'_>, viewer: &Arc<Viewer>) -> PyResult<RecordSearch> {
    let (vector, tokens) = vectors_of(request)?;
    let status: Option<String> = item(request, "status")?;
    let filter = TextFilter {
        status: status.filter(|status| !status.is_empty()),
        kinds: item(request, "kinds")?,
        without_kinds: item(request, "without_kinds")?,
        min_confidence: item(request, "min_confidence")?,
        tags: item(request, "tags")?,
        ..TextFilter::default()
    };
    Ok(from_items!(RecordSearch, request; text, space, limit, context;
        viewer: Arc::clone(viewer), vector: vector, tokens: tokens,
        filter: filter, now: item(request, "now_us")?, condition: condition_in(request, None)?))
}

/// The canonical values of a key in a declared index, and where to start.
pub fn index_key(key: &Object<'_>, after: Option<Object<'_>>) -> PyResult<(Vec<Vec<u8>>, Option<After>)> {
    let mut shapes = Shapes::default();
    let no_list = || must("key", "be a list of values", key);
    if key.is_instance_of::<PyString>() {
        return Err(no_list());
    }
    let values = key.try_iter().map_err(|_| no_list())?;
    let key = values.map(|value| argument(&value?, "key", &mut shapes));
    let key = key.collect::<PyResult<_>>()?;
    let Some(after) = after else { return Ok((key, None)) };
    let pair: PyResult<(Option<Object<'_>>, String)> = after.extract();
    let need = "be a pair: what a record was ordered by, and its id";
    let (then, id) = pair.map_err(|_| must("after", need, &after))?;
    let then = then.map(|then| argument(&then, "after", &mut shapes)).transpose()?;
    Ok((key, Some(After { then, id })))
}

/// The steps that a walk over a network may take.
pub fn steps_of(request: &Dict<'_>) -> PyResult<Steps> {
    let canonical = |kind: &String| {
        let mut out = Vec::new();
        write_string(kind, &mut out);
        out
    };
    let kinds = |name| -> PyResult<_> {
        let kinds: Option<Vec<String>> = item(request, name)?;
        Ok(kinds.map(|kinds| kinds.iter().map(canonical).collect()))
    };
    let directions = [
        ("out", Direction::Out),
        ("in", Direction::In),
        ("both", Direction::Both),
    ];
    Ok(Steps {
        direction: choice(request, "direction", &directions)?,
        kinds: kinds("kinds")?,
        end_kinds: kinds("end_kinds")?,
    })
}
