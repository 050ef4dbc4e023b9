//! Hands the deltas that a rule makes of many episodes to Python, as objects.

use std::sync::{Mutex, PoisonError};

use chronomemory::{EpisodeDelta, EpisodePass, NextPages, Quoted, SortedPage, Verdict};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};

use crate::engine::Engine;
use crate::enter::{check_room, enter_to_leave};
use crate::object;
use crate::page::listing_of;

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
    /// What stands for an add, an update, a delete and a noop.
    kinds: (Py<PyAny>, Py<PyAny>, Py<PyAny>, Py<PyAny>),
}

/// A pass over episodes, and what is made of it.
struct Sorting {
    pass: EpisodePass,
    maker: DeltaMaker,
}

/// What deltas are made of.
struct DeltaMaker {
    kinds: [Py<PyAny>; 4],
    /// By the number of an owner.
    owners: Vec<Owner>,
    /// What the fields of deltas begin as, by kind.
    fields: [Py<PyDict>; 4],
    /// Where the last episode came from: mostly the next one does too.
    node: Option<(Vec<u8>, Py<PyString>)>,
}

/// A user, and what the payload of a fact begins as, without and with what it says of something. To copy a dict is quicker
/// than to let one grow.
struct Owner {
    user: Py<PyString>,
    payloads: [Py<PyDict>; 2],
}

/// What each delta stands in, one behind the other: its kind, its user, its fields; and the ids of episodes that make no sense.
type Lists<'py> = [Bound<'py, PyList>; 4];

impl Owner {
    fn of(py: Python<'_>, [user, agent]: [&str; 2]) -> PyResult<Self> {
        let user = PyString::new(py, user);
        let short = PyDict::new(py);
        let none = py.None();
        short.set_item(intern!(py, "id"), &none)?;
        short.set_item(intern!(py, "user"), &user)?;
        short.set_item(intern!(py, "agent"), agent)?;
        short.set_item(intern!(py, "content"), &none)?;
        short.set_item(intern!(py, "source_node"), &none)?;
        let long = short.copy()?;
        for slot in slots(py) {
            long.set_item(slot, &none)?;
        }
        Ok(Self {
            user: user.unbind(),
            payloads: [short.unbind(), long.unbind()],
        })
    }
}

fn slots(py: Python<'_>) -> [&Bound<'_, PyString>; 3] {
    [intern!(py, "subject"), intern!(py, "predicate"), intern!(py, "object")]
}

impl DeltaMaker {
    fn new(py: Python<'_>, promotion: Promotion) -> PyResult<Self> {
        let certain = PyFloat::new(py, 1.0);
        let fields = |kind: &str, replaces: bool, pins: bool| {
            let fields = PyDict::new(py);
            fields.set_item(intern!(py, "source_episode_ids"), py.None())?;
            fields.set_item(intern!(py, "promotion_ts"), &promotion.promotion_ts)?;
            fields.set_item(intern!(py, "rule_id"), &promotion.rule_id)?;
            fields.set_item(intern!(py, "confidence"), &certain)?;
            fields.set_item(intern!(py, "kind"), kind)?;
            if replaces {
                fields.set_item(intern!(py, "replaces"), py.None())?;
            }
            if pins {
                fields.set_item(intern!(py, "fact_payload"), py.None())?;
            }
            PyResult::Ok(fields.unbind())
        };
        let fields = [
            fields("add", false, true)?,
            fields("update", true, true)?,
            fields("delete", true, false)?,
            fields("noop", false, false)?,
        ];
        Ok(Self {
            kinds: promotion.kinds.into(),
            owners: Vec::new(),
            fields,
            node: None,
        })
    }

    fn learn(&mut self, py: Python<'_>, owners: &[[String; 2]]) -> PyResult<()> {
        for names in owners {
            self.owners.push(Owner::of(py, names.each_ref().map(String::as_str))?);
        }
        Ok(())
    }

    fn node<'py>(&mut self, py: Python<'py>, node: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
        match &self.node {
            Some((known, text)) if known == node.inner => Ok(text.bind(py).clone()),
            _ => {
                let text = object::text(py, node)?;
                self.node = Some((node.inner.to_vec(), text.clone().unbind()));
                Ok(text)
            }
        }
    }

    fn payload<'py>(&mut self, delta: &EpisodeDelta<'_>, id: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyDict>> {
        let py = id.py();
        let says_all = delta.said.iter().all(Option::is_some);
        let payload = self.owners[delta.owner].payloads[usize::from(says_all)]
            .bind(py)
            .copy()?;
        payload.set_item(intern!(py, "id"), id)?;
        payload.set_item(intern!(py, "content"), object::text(py, delta.content)?)?;
        payload.set_item(intern!(py, "source_node"), self.node(py, delta.source_node)?)?;
        for (slot, said) in slots(py).into_iter().zip(delta.said) {
            if let Some(said) = said {
                payload.set_item(slot, object::value(py, said)?)?;
            }
        }
        Ok(payload)
    }

    /// Adds a page to the lists.
    fn add_page(&mut self, page: &SortedPage<'_>, lists: &Lists<'_>) -> PyResult<()> {
        let py = lists[0].py();
        check_room(py, OBJECT_BYTES * page.bytes)?;
        self.learn(py, &page.owners)?;
        page.deltas.iter().try_for_each(|delta| self.add(delta, lists))
    }

    fn add(&mut self, delta: &EpisodeDelta<'_>, lists: &Lists<'_>) -> PyResult<()> {
        let [kinds, users, made, bad] = lists;
        let py = kinds.py();
        let id = object::text(py, delta.id)?;
        let place = match delta.verdict {
            Verdict::Add => 0,
            Verdict::Update => 1,
            Verdict::Delete => 2,
            Verdict::Noop => 3,
            Verdict::Bad => return bad.append(id),
        };
        users.append(&self.owners[delta.owner].user)?;
        kinds.append(&self.kinds[place])?;
        let fields = self.fields[place].bind(py).copy()?;
        fields.set_item(intern!(py, "source_episode_ids"), PyList::new(py, [&id])?)?;
        if delta.confidence != 1.0 {
            fields.set_item(intern!(py, "confidence"), delta.confidence)?;
        }
        if matches!(delta.verdict, Verdict::Update | Verdict::Delete) {
            let ids = delta.replaces.iter().map(|id| PyString::new(py, id));
            fields.set_item(intern!(py, "replaces"), PyList::new(py, ids)?)?;
        }
        if matches!(delta.verdict, Verdict::Add | Verdict::Update) {
            fields.set_item(intern!(py, "fact_payload"), self.payload(delta, &id)?)?;
        }
        made.append(fields)
    }
}

impl Sorting {
    /// The next pages, as one; `None` at the end.
    fn page<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Lists<'py>>> {
        let Self { pass, maker } = self;
        let lists = [(); 4].map(|()| PyList::empty(py));
        let done = pass.next_pages(|mut pages: NextPages<'_>| {
            // Whoever waits for the interpreter gets it between two pages.
            while let Some(page) = enter_to_leave(py, || Ok(pages.next_page()))? {
                maker.add_page(&page, &lists)?;
            }
            Ok(())
        });
        done.map(|made: PyResult<()>| made.map(|()| lists)).transpose()
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

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(sorting) = here.as_mut() else {
            return Ok(None);
        };
        let page = sorting.page(py)?;
        if page.is_none() {
            // What writers replaced meanwhile is let go.
            *here = None;
        }
        page.map(|lists| PyTuple::new(py, lists)).transpose()
    }
}

#[pymethods]
impl Engine {
    /// The deltas of the episodes that a listing finds as they are now, in its order. A page has four lists: of each delta what
    /// stands for its kind, its user and its fields; and the ids of episodes that make no sense.
    fn deltas(&self, py: Python<'_>, terms: &Bound<'_, PyDict>, promotion: Promotion) -> PyResult<Deltas> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing, condition.as_ref()))?;
        Ok(Deltas(Mutex::new(Some(Sorting {
            pass: EpisodePass::new(frozen, promotion.after, promotion.until),
            maker: DeltaMaker::new(py, promotion)?,
        }))))
    }
}
