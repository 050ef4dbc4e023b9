//! Hands the deltas that a rule makes of many records to Python, as objects.

use std::sync::{Mutex, PoisonError};

use chronomemory::{Delta, DeltaPass, NextPages, Quoted, SortedPage, Sorting, Verdict};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::engine::Engine;
use crate::enter::{check_room, enter, enter_to_leave};
use crate::object;
use crate::page::listing_of;

/// What Python's objects take for each byte of canonical JSON, and more.
const OBJECT_BYTES: usize = 48;

/// Which records, by the events that wrote them, and what their deltas are made of: four of each stand for an add, an update, a
/// delete and a noop.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Promotion {
    after: i64,
    until: i64,
    /// What stands for each.
    kinds: [Py<PyAny>; 4],
    /// What the fields of each begin as.
    fields: [Py<PyDict>; 4],
    names: FieldNames,
}

/// What the fields are called that are not the same in all deltas of a kind. All are sure, unless it is said.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct FieldNames {
    sources: Py<PyString>,
    confidence: Py<PyString>,
    replaces: Py<PyString>,
    payload: Py<PyString>,
}

/// What stands in a payload is called as in the records that it is made of.
struct PayloadNames {
    owner: [Py<PyString>; 2],
    content: Py<PyString>,
    source: Py<PyString>,
    said: [Py<PyString>; 3],
}

/// A pass over records, and what is made of it.
struct Making {
    pass: DeltaPass,
    maker: DeltaMaker,
}

/// What deltas are made of.
struct DeltaMaker {
    kinds: [Py<PyAny>; 4],
    /// What the fields of deltas begin as, by kind.
    fields: [Py<PyDict>; 4],
    names: FieldNames,
    payload: PayloadNames,
    /// By the number of an owner.
    owners: Vec<Owner>,
    /// Where the last record came from: mostly the next one does too.
    source: Option<(Vec<u8>, Py<PyString>)>,
}

/// For whom something is made, and what a payload begins as, without and with what it says of something. To copy a dict is
/// quicker than to let one grow.
struct Owner {
    name: Py<PyString>,
    payloads: [Py<PyDict>; 2],
}

/// What each delta stands in, one behind the other: its kind, for whom it is, its fields; and the ids of records that make no sense.
type Lists<'py> = [Bound<'py, PyList>; 4];

impl PayloadNames {
    fn of(py: Python<'_>, sorting: &Sorting) -> Self {
        let name = |name: &str| PyString::intern(py, name).unbind();
        Self {
            owner: sorting.owner.map(name),
            content: name(sorting.content),
            source: name(sorting.source),
            said: sorting.said.map(name),
        }
    }
}

impl Owner {
    fn of(py: Python<'_>, names: &PayloadNames, owner: &[String; 2]) -> PyResult<Self> {
        let owner = owner.each_ref().map(|name| PyString::new(py, name));
        let short = PyDict::new(py);
        let none = py.None();
        short.set_item(intern!(py, "id"), &none)?;
        for (level, name) in names.owner.iter().zip(&owner) {
            short.set_item(level, name)?;
        }
        short.set_item(&names.content, &none)?;
        short.set_item(&names.source, &none)?;
        let long = short.copy()?;
        for slot in &names.said {
            long.set_item(slot, &none)?;
        }
        let [name, _] = owner;
        Ok(Self {
            name: name.unbind(),
            payloads: [short.unbind(), long.unbind()],
        })
    }
}

impl DeltaMaker {
    fn new(py: Python<'_>, promotion: Promotion, sorting: &Sorting) -> Self {
        Self {
            kinds: promotion.kinds,
            fields: promotion.fields,
            names: promotion.names,
            payload: PayloadNames::of(py, sorting),
            owners: Vec::new(),
            source: None,
        }
    }

    fn learn(&mut self, py: Python<'_>, owners: &[[String; 2]]) -> PyResult<()> {
        for owner in owners {
            self.owners.push(Owner::of(py, &self.payload, owner)?);
        }
        Ok(())
    }

    fn source<'py>(&mut self, py: Python<'py>, source: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
        match &self.source {
            Some((known, text)) if known == source.inner => Ok(text.bind(py).clone()),
            _ => {
                let text = object::text(py, source)?;
                self.source = Some((source.inner.to_vec(), text.clone().unbind()));
                Ok(text)
            }
        }
    }

    fn payload<'py>(&mut self, delta: &Delta<'_>, id: &Bound<'py, PyString>) -> PyResult<Bound<'py, PyDict>> {
        let py = id.py();
        let says_all = delta.said.iter().all(Option::is_some);
        let payload = self.owners[delta.owner].payloads[usize::from(says_all)]
            .bind(py)
            .copy()?;
        payload.set_item(intern!(py, "id"), id)?;
        payload.set_item(&self.payload.content, object::text(py, delta.content)?)?;
        let source = self.source(py, delta.source)?;
        payload.set_item(&self.payload.source, source)?;
        for (slot, said) in self.payload.said.iter().zip(delta.said) {
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

    fn add(&mut self, delta: &Delta<'_>, lists: &Lists<'_>) -> PyResult<()> {
        let [kinds, owners, made, bad] = lists;
        let py = kinds.py();
        let id = object::text(py, delta.id)?;
        let place = match delta.verdict {
            Verdict::Add => 0,
            Verdict::Update => 1,
            Verdict::Delete => 2,
            Verdict::Noop => 3,
            Verdict::Bad => return bad.append(id),
        };
        owners.append(&self.owners[delta.owner].name)?;
        kinds.append(&self.kinds[place])?;
        let fields = self.fields[place].bind(py).copy()?;
        fields.set_item(&self.names.sources, PyList::new(py, [&id])?)?;
        if delta.confidence != 1.0 {
            fields.set_item(&self.names.confidence, delta.confidence)?;
        }
        if matches!(delta.verdict, Verdict::Update | Verdict::Delete) {
            let ids = delta.replaces.iter().map(|id| PyString::new(py, id));
            fields.set_item(&self.names.replaces, PyList::new(py, ids)?)?;
        }
        if matches!(delta.verdict, Verdict::Add | Verdict::Update) {
            let payload = self.payload(delta, &id)?;
            fields.set_item(&self.names.payload, payload)?;
        }
        made.append(fields)
    }
}

impl Making {
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

/// What a rule makes of records as they were when it began, a page at a time.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Deltas(Mutex<Option<Making>>);

#[pymethods]
impl Deltas {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut here = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(making) = here.as_mut() else {
            return Ok(None);
        };
        let page = making.page(py)?;
        if page.is_none() {
            // What writers replaced meanwhile is let go.
            *here = None;
        }
        page.map(|lists| PyTuple::new(py, lists)).transpose()
    }
}

#[pymethods]
impl Engine {
    /// The deltas of the records of a face that a listing finds as they are now, in its order. A page has four lists: of each
    /// delta what stands for its kind, for whom it is and its fields; and the ids of records that make no sense.
    fn deltas(&self, py: Python<'_>, face: &str, terms: &Bound<'_, PyDict>, promotion: Promotion) -> PyResult<Deltas> {
        let (listing, condition) = listing_of(terms, &self.viewer)?;
        let frozen = self.run(py, |engine| engine.freeze(&listing, condition.as_ref()))?;
        let pass = enter(py, || DeltaPass::new(face, frozen, promotion.after, promotion.until))?;
        let maker = DeltaMaker::new(py, promotion, pass.sorting());
        Ok(Deltas(Mutex::new(Some(Making { pass, maker }))))
    }
}
