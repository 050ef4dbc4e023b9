//! How do the deltas that a rule makes of many episodes get to Python?

use std::sync::{Mutex, PoisonError};

use chronomemory::{EpisodeDelta, EpisodeSorter, Frozen, Verdict};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::engine::Engine;
use crate::enter::check_room;
use crate::object::{self, Keys};
use crate::page::listing_of;

/// So many episodes are gone through at a time: the interpreter is kept for a few milliseconds.
const PAGE_ROWS: usize = 1_000;
/// What Python's objects take for each byte of canonical JSON, and more.
const OBJECT_BYTES: usize = 48;

/// Which episodes, by the events that wrote them, and what all of their deltas have in common.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Promotion {
    after: i64,
    until: i64,
    rule_id: Py<PyAny>,
    promotion_ts: Py<PyAny>,
}

/// A pass over episodes.
struct Sorting {
    frozen: Frozen,
    at: usize,
    sorter: EpisodeSorter,
    promotion: Promotion,
    /// User and agent, by the number of an owner.
    owners: Vec<(Py<PyString>, Py<PyString>)>,
    certain: Py<PyFloat>,
    keys: Keys,
}

fn kind(py: Python<'_>, verdict: Verdict) -> &Bound<'_, PyString> {
    match verdict {
        Verdict::Add => intern!(py, "add"),
        Verdict::Update => intern!(py, "update"),
        Verdict::Delete => intern!(py, "delete"),
        Verdict::Noop => intern!(py, "noop"),
        Verdict::Bad => intern!(py, "bad"),
    }
}

impl Sorting {
    fn owner<'py>(&mut self, py: Python<'py>, number: usize) -> (Bound<'py, PyString>, Bound<'py, PyString>) {
        while self.owners.len() <= number {
            let [user, agent] = self.sorter.owner(self.owners.len());
            let names = (PyString::new(py, user).unbind(), PyString::new(py, agent).unbind());
            self.owners.push(names);
        }
        let (user, agent) = &self.owners[number];
        (user.bind(py).clone(), agent.bind(py).clone())
    }

    /// The kind of a delta, whose it is, and its fields, or the id of an episode that makes no sense.
    fn told<'py>(&mut self, py: Python<'py>, delta: &EpisodeDelta<'_>) -> PyResult<Bound<'py, PyTuple>> {
        let id = object::text(py, delta.id)?;
        let (user, agent) = self.owner(py, delta.owner);
        let kind = kind(py, delta.verdict);
        if delta.verdict == Verdict::Bad {
            return (kind, user, id).into_pyobject(py);
        }
        let fields = PyDict::new(py);
        fields.set_item(intern!(py, "source_episode_ids"), PyList::new(py, [&id])?)?;
        fields.set_item(intern!(py, "promotion_ts"), &self.promotion.promotion_ts)?;
        fields.set_item(intern!(py, "rule_id"), &self.promotion.rule_id)?;
        if delta.confidence == 1.0 {
            fields.set_item(intern!(py, "confidence"), &self.certain)?;
        } else {
            fields.set_item(intern!(py, "confidence"), delta.confidence)?;
        }
        fields.set_item(intern!(py, "kind"), kind)?;
        if !delta.replaces.is_empty() {
            let ids = delta.replaces.iter().map(|id| PyString::new(py, id));
            fields.set_item(intern!(py, "replaces"), PyList::new(py, ids)?)?;
        }
        if matches!(delta.verdict, Verdict::Add | Verdict::Update) {
            let payload = PyDict::new(py);
            payload.set_item(intern!(py, "id"), id)?;
            payload.set_item(intern!(py, "user"), &user)?;
            payload.set_item(intern!(py, "agent"), agent)?;
            payload.set_item(intern!(py, "content"), object::text(py, delta.content)?)?;
            payload.set_item(intern!(py, "source_node"), object::text(py, delta.source_node)?)?;
            let slots = [intern!(py, "subject"), intern!(py, "predicate"), intern!(py, "object")];
            for (slot, said) in slots.into_iter().zip(delta.said) {
                if let Some(said) = said {
                    payload.set_item(slot, object::value(py, said, &self.keys)?)?;
                }
            }
            fields.set_item(intern!(py, "fact_payload"), payload)?;
        }
        (kind, user, fields).into_pyobject(py)
    }

    /// The next page; `None` at the end.
    fn page<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let start = self.at;
        self.at = self.frozen.len().min(start + PAGE_ROWS);
        if start == self.at {
            return Ok(None);
        }
        let rows = || (start..self.at).filter_map(|place| self.frozen.row(place));
        check_room(py, OBJECT_BYTES * rows().map(|(record, _)| record.len()).sum::<usize>())?;
        let made = PyList::empty(py);
        for place in start..self.at {
            let Some((record, moments)) = self.frozen.row(place) else {
                continue;
            };
            // What no event is known for was there before all that are.
            let seq = moments.updated.seq().map_or(0, |seq| seq as i64);
            if seq <= self.promotion.after || seq > self.promotion.until {
                continue;
            }
            // A copy: whose it is may have to be noted while the delta is told.
            let record = record.to_vec();
            if let Some(delta) = self.sorter.sort(&record) {
                made.append(self.told(py, &delta)?)?;
            }
        }
        Ok(Some(made))
    }
}

/// What a rule makes of episodes as they were when it began, a page at a time.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Deltas(Mutex<Option<Sorting>>);

#[pymethods]
impl Deltas {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyList>>> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sorting) = here.as_mut() else {
            return Ok(None);
        };
        let page = sorting.page(py)?;
        if page.is_none() {
            // What writers replaced meanwhile is let go.
            *here = None;
        }
        Ok(page)
    }
}

#[pymethods]
impl Engine {
    /// The deltas of the episodes that a listing finds as they are now, in its order, as pages of kind, user and fields; of one
    /// that makes no sense the kind is `bad`, and its id stands for the fields.
    fn deltas(&self, py: Python<'_>, terms: &Bound<'_, PyDict>, promotion: Promotion) -> PyResult<Deltas> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing, condition.as_ref()))?;
        Ok(Deltas(Mutex::new(Some(Sorting {
            frozen,
            at: 0,
            sorter: EpisodeSorter::default(),
            promotion,
            owners: Vec::new(),
            certain: PyFloat::new(py, 1.0).unbind(),
            keys: Keys::default(),
        }))))
    }
}
