//! Hands records out of the state, with what tells when they were made.
//!
//! A record of Python is made of a copy of its canonical bytes. That copy is kept behind it, together with those of its
//! neighbours, and so are its moments: a record only knows which copy it was made of, and where in it. Few ask, and to work
//! out for all what few want to know would take longer than to read them.

use chronomemory::{Dated, Error, Moments, Refused, sha256};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::enter::{check_room, to_python};
use crate::object;

/// What the objects of a record take beside its text.
const RECORD_BYTES: usize = 64;
/// So much text is asked for at a time.
const CHECKED_BYTES: usize = 64 * 1024;
/// What Python's objects take for each byte of canonical JSON, and more: an empty list has two bytes there.
const OBJECT_BYTES: usize = 48;
/// So much is kept at most for a record that somebody holds, unless it is longer itself.
const COPY_BYTES: usize = 64 * 1024;
/// So many records share a copy: Python has these numbers ready.
const COPY_RECORDS: usize = 256;
/// Of a longer record only the beginning of its digest is kept.
const KEPT_BYTES: usize = 4 * 1024;
/// What the moments of a record take.
const MOMENTS_BYTES: usize = size_of::<[i64; 4]>();
/// So much of a digest is a version.
const VERSION_BYTES: usize = 8;

/// Records as they were handed out, and their moments.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct Told {
    bytes: Vec<u8>,
    /// Where each ends.
    rows: Vec<(usize, Moments)>,
}

impl Told {
    fn row(&self, at: usize) -> Option<Dated<'_>> {
        let &(end, moments) = self.rows.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.rows[before].0);
        Some(Dated {
            record: &self.bytes[start..end],
            moments,
        })
    }
}

#[pymethods]
impl Told {
    /// The moments of a record, then the record or the beginning of its digest.
    fn packed<'py>(&self, py: Python<'py>, at: usize) -> PyResult<Bound<'py, PyBytes>> {
        let one = self.row(at).ok_or_else(|| PyIndexError::new_err(at))?;
        Ok(PyBytes::new(py, &packed(one.moments, one.record)))
    }
}

fn packed(moments: Moments, content: &[u8]) -> Vec<u8> {
    let mut packed = Vec::with_capacity(MOMENTS_BYTES + content.len());
    for number in moments.numbers() {
        packed.extend_from_slice(&number.to_le_bytes());
    }
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
        let is_long = self.0.len() > MOMENTS_BYTES + KEPT_BYTES;
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
fn add_all<'py>(py: Python<'py>, told: Told, made: &mut Vec<Bound<'py, PyAny>>) -> PyResult<()> {
    let (what, place) = (intern!(py, "_told"), intern!(py, "_at"));
    if told.rows.len() == 1
        && let Some(one) = told.row(0)
    {
        made.push(Single::of(one).record(py)?);
        return Ok(());
    }
    let told = Bound::new(py, told)?;
    let rows = told.get();
    for at in 0..rows.rows.len() {
        if let Some(one) = rows.row(at) {
            let record = object::record(py, one.record)?;
            record.setattr(what, &told)?;
            record.setattr(place, at)?;
            made.push(record);
        }
    }
    Ok(())
}

/// How many of the first records share a copy. A long one is not kept, and so stands alone.
fn together(records: &[Dated<'_>]) -> usize {
    let mut bytes = 0;
    let mut fits = |one: &&Dated<'_>| {
        bytes += one.record.len();
        one.record.len() <= KEPT_BYTES && bytes <= COPY_BYTES
    };
    let most = records.len().min(COPY_RECORDS);
    records[..most].iter().take_while(&mut fits).count().max(1)
}

/// Records copied out of the state.
pub struct Copied {
    parts: Vec<Told>,
    records: usize,
}

impl Copied {
    /// Copies records one behind the other.
    ///
    /// # Errors
    /// `OutOfMemory` if there is no memory for them.
    pub fn of(records: &[Dated<'_>]) -> Result<Self, Error> {
        let mut parts: Vec<Told> = Vec::new();
        let mut rest = records;
        while !rest.is_empty() {
            let (part, behind) = rest.split_at(together(rest));
            rest = behind;
            let mut told = Told {
                bytes: Vec::new(),
                rows: Vec::new(),
            };
            let bytes = part.iter().map(|one| one.record.len()).sum();
            told.bytes.try_reserve_exact(bytes).map_err(Refused::from)?;
            told.rows.try_reserve_exact(part.len()).map_err(Refused::from)?;
            for one in part {
                told.bytes.extend_from_slice(one.record);
                told.rows.push((told.bytes.len(), one.moments));
            }
            parts.try_reserve(1).map_err(Refused::from)?;
            parts.push(told);
        }
        Ok(Self {
            records: records.len(),
            parts,
        })
    }

    /// The records. Whether there is memory for them is asked before some of them are made.
    pub fn records(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyAny>>> {
        let mut made = room(py, self.records)?;
        let mut checked = 0;
        for part in self.parts {
            check(py, &part, &mut checked)?;
            add_all(py, part, &mut made)?;
        }
        Ok(made)
    }

    /// The same as dicts.
    pub fn dicts(self, py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
        let mut made = room(py, self.records)?;
        let mut checked = 0;
        for part in self.parts {
            check(py, &part, &mut checked)?;
            for at in 0..part.rows.len() {
                if let Some(one) = part.row(at) {
                    made.push(object::dict(py, one.record)?);
                }
            }
        }
        Ok(made)
    }
}

/// Room for so many, and for the list that they are handed over in.
fn room<T>(py: Python<'_>, records: usize) -> PyResult<Vec<T>> {
    let mut made = Vec::new();
    let refused = made.try_reserve_exact(records).map_err(Refused::from);
    refused.map_err(|fault| to_python(py, fault.into()))?;
    check_room(py, records * size_of::<usize>())?;
    Ok(made)
}

/// Asks for the memory that the objects of a copy need, unless more was asked for before.
fn check(py: Python<'_>, part: &Told, checked: &mut usize) -> PyResult<()> {
    let needed = part.bytes.len() + part.rows.len() * RECORD_BYTES;
    if *checked < needed {
        *checked = CHECKED_BYTES.max(needed);
        check_room(py, *checked * OBJECT_BYTES)?;
    }
    *checked -= needed;
    Ok(())
}
