//! Makes Python records of copied ones. A record holds only its packed bytes until a field of it is read.

use chronomemory::{Allowance, Dated, Error, RECORD_FIELDS, Refused, sha256};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBytes, PyString, PyType};

use crate::boundary::{check_room, to_python};
use crate::draft::{names, record_class};
use crate::json;
use crate::{Dict, Object};

/// More than the Python objects take for each byte of canonical JSON: an empty list has two bytes there.
pub const OBJECT_BYTES: usize = 48;
/// Memory for the objects of a dict beside its text.
const DICT_BYTES: usize = 64 * OBJECT_BYTES;
/// Memory for an unread record beside its text.
const RECORD_BYTES: usize = 512;
/// A longer record is not kept once its fields are read: its version has to do.
const KEPT_BYTES: usize = 4 * 1024;
/// The length of the moments of a record and of its doubt.
const MOMENTS_BYTES: usize = size_of::<[i64; 4]>() + 1;
/// The length of a version: the beginning of a digest.
const VERSION_BYTES: usize = 8;

/// One record, copied out of the state: its moments and doubt, then its canonical JSON.
pub struct OneRecord(Vec<u8>);

impl OneRecord {
    pub fn of(one: Dated<'_>) -> Self {
        Self::packed(&one, Vec::with_capacity(MOMENTS_BYTES + one.record.len()))
    }

    fn packed(one: &Dated<'_>, mut empty: Vec<u8>) -> Self {
        for number in one.moments.numbers() {
            empty.extend_from_slice(&number.to_le_bytes());
        }
        empty.push(one.moments.doubt as u8);
        empty.extend_from_slice(&one.record);
        Self(empty)
    }

    /// The `ChronoRecord`, unread.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Object<'_>> {
        unread(record_class(py)?, intern!(py, "_unread"), &self.0)
    }

    pub fn all_into_python(found: Vec<Option<Self>>, py: Python<'_>) -> PyResult<Vec<Option<Object<'_>>>> {
        let made = found
            .into_iter()
            .map(|one| one.map(|one| one.into_python(py)).transpose());
        made.collect()
    }
}

/// An object of a class that parses these bytes when a field is read.
fn unread<'py>(class: &Bound<'py, PyType>, name: &Bound<'py, PyString>, bytes: &[u8]) -> PyResult<Object<'py>> {
    static NEW: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = class.py();
    let new = NEW.get_or_try_init(py, || py.get_type::<PyAny>().getattr("__new__").map(Bound::unbind))?;
    let made = new.bind(py).call1((class,))?;
    made.setattr(name, PyBytes::new(py, bytes))?;
    Ok(made)
}

/// The `WalEvent` of a line that the engine has written.
pub fn event_of<'py>(py: Python<'py>, line: &[u8]) -> PyResult<Object<'py>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    unread(
        CLASS.import(py, "chronomemory.event", "WalEvent")?,
        intern!(py, "_line"),
        line,
    )
}

/// How many objects an unread record without assigned fields refers to: its class and its bytes.
const UNREAD_REFERENTS: usize = 2;

/// An attribute of a record that is not set: a field of an unread one, all of whose fields are set then.
#[pyfunction]
pub fn unset_attribute<'py>(record: &Object<'py>, name: &Bound<'py, PyString>) -> PyResult<Object<'py>> {
    let py = record.py();
    let is_field =
        names(py).iter().any(|field| field.is(name)) || name.to_str().is_ok_and(|name| RECORD_FIELDS.contains(&name));
    if is_field
        && let Ok(unread) = record.getattr(intern!(py, "_unread"))
        && let Ok(packed) = unread.cast_into::<PyBytes>()
    {
        read_fields(record, &packed)?;
        return record.getattr(name);
    }
    py.get_type::<PyAny>()
        .call_method1(intern!(py, "__getattribute__"), (record, name))
}

/// Sets the fields of an unread record. Those that were assigned before stay.
// INVARIANT: between the look at what is assigned and the last field that is set the interpreter runs nothing else, so
// no value is replaced that another thread has assigned or read.
fn read_fields(record: &Object<'_>, packed: &Bound<'_, PyBytes>) -> PyResult<()> {
    static REFERENTS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let py = record.py();
    let (moments, content) = packed.as_bytes().split_at(MOMENTS_BYTES);
    let is_long = content.len() > KEPT_BYTES;
    if is_long {
        check_room(py, content.len() * OBJECT_BYTES)?;
    }
    let mut fields = json::fields(py, content)?;
    let class = record.get_type();
    if fields.iter().any(Option::is_none) {
        let defaults = class.call0()?;
        for (name, value) in names(py).iter().zip(&mut fields) {
            value.get_or_insert(defaults.getattr(name)?);
        }
    }
    let kept = match is_long {
        true => PyBytes::new(py, &[moments, &sha256(content).raw()[..VERSION_BYTES]].concat()),
        false => packed.clone(),
    };
    let is_assigned = REFERENTS.import(py, "gc", "get_referents")?.call1((record,))?.len()? != UNREAD_REFERENTS;
    for (name, value) in names(py).iter().zip(fields) {
        if !is_assigned || class.getattr(name)?.call_method1("__get__", (record,)).is_err() {
            record.setattr(name, value)?;
        }
    }
    record.setattr(intern!(py, "_origin"), kept)?;
    record.setattr(intern!(py, "_unread"), py.None())
}

/// Records, copied out of the state.
pub struct Records(Vec<OneRecord>);

impl Records {
    /// # Errors
    /// `OutOfMemory` if there is no memory for the copies.
    pub fn of(records: &[Dated<'_>]) -> Result<Self, Error> {
        let mut copies = Vec::new();
        copies.try_reserve_exact(records.len()).map_err(Refused::from)?;
        for one in records {
            let (mut empty, needed) = (Vec::new(), MOMENTS_BYTES + one.record.len());
            empty.try_reserve_exact(needed).map_err(Refused::from)?;
            copies.push(OneRecord::packed(one, empty));
        }
        Ok(Self(copies))
    }

    /// The records as `ChronoRecord` objects.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Vec<Object<'_>>> {
        self.each(py, (1, RECORD_BYTES), |one| one.into_python(py))
    }

    /// The records as dicts.
    pub fn into_dicts(self, py: Python<'_>) -> PyResult<Vec<Dict<'_>>> {
        self.each(py, (OBJECT_BYTES, DICT_BYTES), |one| {
            json::dict(py, &one.0[MOMENTS_BYTES..])
        })
    }

    /// Makes an object of each record. Memory for them is checked before: so much for each byte and for each record.
    fn each<T>(
        self,
        py: Python<'_>,
        (of_byte, of_record): (usize, usize),
        make: impl Fn(OneRecord) -> PyResult<T>,
    ) -> PyResult<Vec<T>> {
        let mut made = Vec::new();
        let reserved = made.try_reserve_exact(self.0.len()).map_err(Refused::from);
        reserved.map_err(|fault| to_python(py, fault.into()))?;
        check_room(py, self.0.len() * size_of::<usize>())?;
        let mut room = Allowance::default();
        for one in self.0 {
            let needed = one.0.len() * of_byte + of_record;
            room.take(needed).map_err(|fault| to_python(py, fault.into()))?;
            made.push(make(one)?);
        }
        Ok(made)
    }
}
