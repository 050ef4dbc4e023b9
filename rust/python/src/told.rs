//! Hands records out of the state, with what tells when they were made.
//!
//! A record of Python is made of a copy of its canonical bytes. That copy is kept behind it, together with those of its
//! neighbours, and so are its moments: a record only knows which copy it was made of, and where in it. Few ask, and to work
//! out for all what few want to know would take longer than to read them.

use chronomemory::{Allowance, CopiedRows, Dated, Error, Moments, Refused, sha256};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::enter::{check_room, to_python};
use crate::object;

/// What the objects of a record take beside its text.
const RECORD_BYTES: usize = 64;
/// What Python's objects take for each byte of canonical JSON, and more: an empty list has two bytes there.
const OBJECT_BYTES: usize = 48;
/// So many records share a copy: Python has the numbers of their places ready.
const READY_NUMBERS: usize = 256;
/// What the moments of a record take, and whether it is in doubt.
const MOMENTS_BYTES: usize = size_of::<[i64; 4]>() + 1;
/// So much of a digest is a version.
const VERSION_BYTES: usize = 8;

/// Records as they were handed out, and their moments.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Told(CopiedRows);

#[pymethods]
impl Told {
    /// The moments of a record, then the record or the beginning of its digest.
    fn packed<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyBytes>> {
        let one = self.0.row(at).ok_or_else(|| PyIndexError::new_err(at))?;
        Ok(PyBytes::new(py, &packed(one.moments, one.record)))
    }
}

fn packed(moments: Moments, content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(MOMENTS_BYTES + content.len());
    for number in moments.numbers() {
        packed.extend_from_slice(&number.to_le_bytes());
    }
    packed.push(moments.doubt as u8);
    packed.extend_from_slice(content);
    packed
}

/// One record, copied out of the state.
pub struct Single(Vec<u8>);

impl Single {
    /// Copies a record.
    pub fn of(one: Dated<'_>) -> Self {
        Self(packed(one.moments, one.record))
    }

    /// The record.
    pub fn record(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        let is_long = !CopiedRows::keeps(&self.0[MOMENTS_BYTES..]);
        self.handed_out(py, is_long)
    }

    /// The record, for somebody who will surely ask for its version.
    pub fn versioned(self, py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
        self.handed_out(py, true)
    }

    fn handed_out(mut self, py: Python<'_>, versioned: bool) -> PyResult<Bound<'_, PyAny>> {
        let content = &self.0[MOMENTS_BYTES..];
        let record = object::record(py, content)?;
        if versioned {
            let digest = sha256(content).raw();
            self.0.truncate(MOMENTS_BYTES);
            self.0.extend_from_slice(&digest[..VERSION_BYTES]);
        }
        record.setattr(intern!(py, "_told"), PyBytes::new(py, &self.0))?;
        Ok(record)
    }
}

/// Makes the records of a copy.
fn add_all<'py>(py: Python<'py>, told: CopiedRows, made: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    let (what, place) = (intern!(py, "_told"), intern!(py, "_at"));
    if told.len() == 1
        && let Some(one) = told.row(0)
    {
        made.push(Single::of(one).record(py)?);
        return Ok(());
    }
    let told = Bound::new(py, Told(told))?;
    for (at, one) in told.get().0.rows().enumerate() {
        let record = object::record(py, one.record)?;
        record.setattr(what, &told)?;
        record.setattr(place, at)?;
        made.push(record);
    }
    Ok(())
}

/// Records copied out of the state.
pub struct Copied {
    parts: Vec<CopiedRows>,
    records: usize,
}

impl Copied {
    /// Copies records one behind the other.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for them.
    pub fn of(records: &[Dated<'_>]) -> Result<Self, Error> {
        Ok(Self {
            records: records.len(),
            parts: CopiedRows::of(records, READY_NUMBERS)?,
        })
    }

    /// The records. Whether there is memory for them is asked before some of them are made.
    pub fn records(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
        let mut made = list_of(py, self.records)?;
        let mut room = Allowance::default();
        for part in self.parts {
            take(py, &part, &mut room)?;
            add_all(py, part, &mut made)?;
        }
        Ok(made)
    }

    /// The same as dicts.
    pub fn dicts(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
        let mut made = list_of(py, self.records)?;
        let mut room = Allowance::default();
        for part in self.parts {
            take(py, &part, &mut room)?;
            for one in part.rows() {
                made.push(object::dict(py, one.record)?);
            }
        }
        Ok(made)
    }
}

/// Room for so many, and for the list that they are handed over in.
fn list_of<T>(py: Python<'_>, records: usize) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    let refused = made.try_reserve_exact(records).map_err(Refused::from);
    refused.map_err(|fault| to_python(py, fault.into()))?;
    check_room(py, records * size_of::<usize>())?;
    Ok(made)
}

/// Takes the memory that the objects of a copy need.
fn take(py: Python<'_>, part: &CopiedRows, room: &mut Allowance) -> PyResult<()> {
    let needed = part.bytes() + part.len() * RECORD_BYTES;
    room.take(needed * OBJECT_BYTES)
        .map_err(|fault| to_python(py, fault.into()))
}
