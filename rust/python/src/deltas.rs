//! Makes Python objects of the deltas that a rule derives from many records.

use std::sync::{Mutex, PoisonError};

use chronomemory::{Delta, DeltaPass, Frozen, NextPages, SortedPage, Verdict};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};

use crate::Dict;
use crate::boundary::{check_room, detached, detached_unchecked, to_python};
use crate::json;
use crate::packed::OBJECT_BYTES;

/// Which records are passed, by their events, and the parts of deltas for an add, an update, a delete and a noop.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Promotion {
    after: i64,
    until: i64,
    kinds: [Py<PyAny>; 4],
    /// The fields that all deltas of a kind have in common.
    fields: [Py<PyDict>; 4],
    /// The names of the fields that differ: sources, confidence, replaces and payload.
    names: [Py<PyString>; 4],
}

/// The owner of records, and what their payloads have in common, without and with the optional fields: copying a dict
/// is faster than growing one.
type Owner = (Py<PyString>, [Py<PyDict>; 2]);

struct DeltaMaker {
    promotion: Promotion,
    /// The names of the fields of a payload: those of the owner, the content, the source, the optional ones.
    owner_names: [Py<PyString>; 2],
    content: Py<PyString>,
    source: Py<PyString>,
    optional: [Py<PyString>; 3],
    owners: Vec<Owner>,
}

/// The kinds, owners and fields of deltas, and the ids of records that make no sense.
type Lists<'py> = [Bound<'py, PyList>; 4];

impl DeltaMaker {
    fn owner(&self, py: Python<'_>, names: &[String; 2]) -> PyResult<Owner> {
        let none = py.None();
        let names = names.each_ref().map(|name| PyString::new(py, name));
        let short = PyDict::new(py);
        short.set_item(intern!(py, "id"), &none)?;
        for (level, name) in self.owner_names.iter().zip(&names) {
            short.set_item(level, name)?;
        }
        short.set_item(&self.content, &none)?;
        short.set_item(&self.source, &none)?;
        let long = short.copy()?;
        for name in &self.optional {
            long.set_item(name, &none)?;
        }
        let [name, _] = names;
        Ok((name.unbind(), [short.unbind(), long.unbind()]))
    }

    fn payload<'py>(&self, delta: &Delta<'_>, id: &Bound<'py, PyString>) -> PyResult<Dict<'py>> {
        let py = id.py();
        let has_all = delta.said.iter().all(Option::is_some);
        let common = &self.owners[delta.owner].1[usize::from(has_all)];
        let payload = common.bind(py).copy()?;
        payload.set_item(intern!(py, "id"), id)?;
        payload.set_item(&self.content, json::text(py, delta.content)?)?;
        payload.set_item(&self.source, json::shared_text(py, delta.source)?)?;
        for (name, value) in self.optional.iter().zip(delta.said) {
            if let Some(value) = value {
                payload.set_item(name, json::value(py, value)?)?;
            }
        }
        Ok(payload)
    }

    fn add_page(&mut self, page: &SortedPage<'_>, lists: &Lists<'_>) -> PyResult<()> {
        let py = lists[0].py();
        check_room(py, OBJECT_BYTES * page.bytes)?;
        for names in &page.owners {
            let owner = self.owner(py, names)?;
            self.owners.push(owner);
        }
        page.deltas.iter().try_for_each(|delta| self.add(delta, lists))
    }

    fn add(&self, delta: &Delta<'_>, [kinds, owners, made, bad]: &Lists<'_>) -> PyResult<()> {
        let py = kinds.py();
        let id = json::text(py, delta.id)?;
        let (place, replaces, has_payload) = match delta.verdict {
            Verdict::Add => (0, false, true),
            Verdict::Update => (1, true, true),
            Verdict::Delete => (2, true, false),
            Verdict::Noop => (3, false, false),
            Verdict::Bad => return bad.append(id),
        };
        owners.append(&self.owners[delta.owner].0)?;
        let payload = has_payload.then(|| self.payload(delta, &id)).transpose()?;
        let Promotion {
            kinds: all,
            fields,
            names,
            ..
        } = &self.promotion;
        let [sources, confidence, replaced, payload_name] = names;
        kinds.append(&all[place])?;
        let fields = fields[place].bind(py).copy()?;
        fields.set_item(sources, PyList::new(py, [&id])?)?;
        if delta.confidence != 1.0 {
            fields.set_item(confidence, delta.confidence)?;
        }
        if replaces {
            fields.set_item(replaced, PyList::new(py, delta.replaces.iter().map(|id| &**id))?)?;
        }
        if let Some(payload) = payload {
            fields.set_item(payload_name, payload)?;
        }
        made.append(fields)
    }
}

/// The deltas of records as they were when the pass began, a page at a time.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Deltas(Mutex<Option<(DeltaPass, DeltaMaker)>>);

impl Deltas {
    pub fn new(py: Python<'_>, face: &str, frozen: Frozen, promotion: Promotion) -> PyResult<Self> {
        let pass = detached(py, || DeltaPass::new(face, frozen, promotion.after, promotion.until))?;
        let name = |name: &str| PyString::intern(py, name).unbind();
        let sorting = pass.sorting();
        let maker = DeltaMaker {
            promotion,
            owner_names: sorting.owner.map(name),
            content: name(sorting.content),
            source: name(sorting.source),
            optional: sorting.said.map(name),
            owners: Vec::new(),
        };
        Ok(Self(Mutex::new(Some((pass, maker)))))
    }
}

#[pymethods]
impl Deltas {
    fn __iter__(slf: Bound<'_, Self>) -> Bound<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyTuple>>> {
        let mut rest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((pass, maker)) = rest.as_mut() else {
            return Ok(None);
        };
        let lists: Lists<'_> = [(); 4].map(|()| PyList::empty(py));
        let done = pass.next_pages(|mut pages: NextPages<'_>| -> PyResult<()> {
            // Other threads get the interpreter between two pages.
            while let Some(page) = detached_unchecked(py, || Ok(pages.next_page()))? {
                maker.add_page(&page, &lists)?;
            }
            Ok(())
        });
        let done = done.transpose()?;
        pass.check().map_err(|fault| to_python(py, fault))?;
        match done {
            Some(()) => PyTuple::new(py, lists).map(Some),
            None => {
                // Releases the records that writers replaced meanwhile.
                *rest = None;
                Ok(None)
            }
        }
    }
}
