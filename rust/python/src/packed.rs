//! Hands records out of the state, with the bytes that tell when they were made.
//!
//! A Python record knows its row in a copy of canonical bytes and moments. Few callers ask for moments or versions, and
//! computing them for all records would take longer than reading these.

use chronomemory::{Allowance, CopiedRows, Dated, Error, Moments, Refused, sha256};
use pyo3::exceptions::PyIndexError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::{check_room, to_python};
use crate::json;
use crate::{Dict, Object};

/// Memory for the objects of a record beside its text.
const RECORD_BYTES: usize = 64;
/// More than the Python objects take for each byte of canonical JSON: an empty list has two bytes there.
pub const OBJECT_BYTES: usize = 48;
/// How many records share a copy: Python keeps the integers below this.
const SHARED_ROWS: usize = 256;
/// The length of the moments of a record and of its doubt.
const MOMENTS_BYTES: usize = size_of::<[i64; 4]>() + 1;
/// The length of a version: the beginning of a digest.
const VERSION_BYTES: usize = 8;

/// Copied rows that records were made from.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct PackedRecords(CopiedRows);

#[pymethods]
impl PackedRecords {
    /// The moments of a record, then the record or the beginning of its digest.
    fn packed<'py>(&self, py: Python<'py>, row: usize) -> PyResult<Bound<'py, PyBytes>> {
        let one = self.0.row(row).ok_or_else(|| PyIndexError::new_err(row))?;
        Ok(PyBytes::new(py, &packed(one.moments, &one.record)))
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
pub struct OneRecord(Vec<u8>);

impl OneRecord {
    pub fn of(one: Dated<'_>) -> Self {
        Self(packed(one.moments, &one.record))
    }

    /// The `ChronoRecord`. With `versioned`, and of a long record, only the version is kept behind it.
    pub fn into_python(mut self, py: Python<'_>, versioned: bool) -> PyResult<Object<'_>> {
        let content = &self.0[MOMENTS_BYTES..];
        let record = json::record(py, content)?;
        if versioned || !CopiedRows::keeps(content) {
            let digest = sha256(content).raw();
            self.0.truncate(MOMENTS_BYTES);
            self.0.extend_from_slice(&digest[..VERSION_BYTES]);
        }
        record.setattr(intern!(py, "_origin"), PyBytes::new(py, &self.0))?;
        Ok(record)
    }

    pub fn all_into_python(found: Vec<Option<Self>>, py: Python<'_>) -> PyResult<Vec<Option<Object<'_>>>> {
        let made = found
            .into_iter()
            .map(|one| one.map(|one| one.into_python(py, false)).transpose());
        made.collect()
    }
}

/// Records, copied out of the state.
pub struct Records {
    parts: Vec<CopiedRows>,
    count: usize,
}

impl Records {
    /// # Errors
    /// `OutOfMemory` if there is no memory for the copies.
    pub fn of(records: &[Dated<'_>]) -> Result<Self, Error> {
        Ok(Self {
            count: records.len(),
            parts: CopiedRows::of(records, SHARED_ROWS)?,
        })
    }

    /// The records as `ChronoRecord` objects.
    pub fn into_python(self, py: Python<'_>) -> PyResult<Vec<Object<'_>>> {
        let (origin, place) = (intern!(py, "_origin"), intern!(py, "_row"));
        self.each_part(py, |part, made| {
            if part.len() == 1
                && let Some(one) = part.row(0)
            {
                made.push(OneRecord::of(one).into_python(py, false)?);
                return Ok(());
            }
            let part = Bound::new(py, PackedRecords(part))?;
            for (row, one) in part.get().0.rows().enumerate() {
                let record = json::record(py, &one.record)?;
                record.setattr(origin, &part)?;
                record.setattr(place, row)?;
                made.push(record);
            }
            Ok(())
        })
    }

    /// The records as dicts.
    pub fn into_dicts(self, py: Python<'_>) -> PyResult<Vec<Dict<'_>>> {
        self.each_part(py, |part, made| {
            for one in part.rows() {
                made.push(json::dict(py, &one.record)?);
            }
            Ok(())
        })
    }

    /// Makes objects of each copy. Memory for them is checked before they are made.
    fn each_part<T>(self, py: Python<'_>, add: impl Fn(CopiedRows, &mut Vec<T>) -> PyResult<()>) -> PyResult<Vec<T>> {
        let mut made = Vec::new();
        let reserved = made.try_reserve_exact(self.count).map_err(Refused::from);
        reserved.map_err(|fault| to_python(py, fault.into()))?;
        check_room(py, self.count * size_of::<usize>())?;
        let mut room = Allowance::default();
        for part in self.parts {
            let needed = (part.bytes() + part.len() * RECORD_BYTES) * OBJECT_BYTES;
            room.take(needed).map_err(|fault| to_python(py, fault.into()))?;
            add(part, &mut made)?;
        }
        Ok(made)
    }
}
