//! Takes many records in from Python at once.

use std::path::PathBuf;

use chronomemory::{Error, Ingested, Intake, RowSource};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::engine::Engine;
use crate::enter::{at_row, at_row_of, enter, enter_stoppable, to_python};
use crate::record::{self, Naming};

/// A row that was left out: its place, its id, where in it something is wrong, and what.
type LeftOut = (usize, Option<String>, Option<String>, String);

#[pymethods]
impl Engine {
    #[pyo3(signature = (records, face=None))]
    fn upsert_many(&self, py: Python<'_>, records: &Bound<'_, PyAny>, face: Option<&str>) -> PyResult<(u64, u64)> {
        let mut buffer = self.draft_buffer();
        // Of a class of its own it may be read in another way.
        let count = records.cast_exact::<PyList>().map_or(0, |records| records.len());
        let mut batch = self.run(py, |engine| engine.batch(count))?;
        let mut rows = 0;
        let mut named: Vec<(Bound<'_, PyAny>, String)> = Vec::new();
        for record in records.try_iter()? {
            let record = record?;
            let drafted = record::upsert(&mut buffer, &record, self.depth, face, Naming::Random);
            let made = drafted.map_err(|fault| at_row(fault, rows, &record))?;
            batch.drafted(&mut buffer.draft);
            named.extend(made.map(|id| (record, id)));
            rows += 1;
        }
        if rows == 0 {
            return self.nothing_written(py);
        }
        let mut refused = None;
        let committed = enter(py, || {
            batch.commit(&mut buffer.draft).map_err(|fault| match fault {
                Error::InBatch { row, fault } => {
                    refused = Some(row);
                    *fault
                }
                other => other,
            })
        });
        let committed = committed.map_err(|fault| self.at_refused(py, fault, refused))?;
        self.keep(buffer);
        for (record, id) in &named {
            record::stamp_id(record, Some(id))?;
        }
        Ok((committed.first_seq, committed.next_seq))
    }

    /// Writes those of the records that can be written as one batch: how many, the first seq, the one after the last, and
    /// what was left out.
    fn upsert_good(&self, py: Python<'_>, records: &Bound<'_, PyList>) -> PyResult<(usize, u64, u64, Vec<LeftOut>)> {
        let mut buffer = self.draft_buffer();
        let mut left_out: Vec<LeftOut> = Vec::new();
        let mut drafted: Vec<(usize, Bound<'_, PyAny>, Option<String>)> = Vec::new();
        for (row, record) in records.iter().enumerate() {
            match record::upsert(&mut buffer, &record, self.depth, None, Naming::Random) {
                Ok(made) => drafted.push((row, record, made)),
                Err(fault) => left_out.push(told(fault, row, &record)?),
            }
        }
        let (committed, refused) = self.run(py, |engine| engine.commit_allowed(&mut buffer.draft))?;
        self.keep(buffer);
        for (place, fault) in refused.into_iter().rev() {
            let (row, record, _) = drafted.remove(place);
            left_out.push(told(to_python(py, fault), row, &record)?);
        }
        for (_, record, made) in &drafted {
            record::stamp_id(record, made.as_deref())?;
        }
        left_out.sort_by_key(|(row, ..)| *row);
        let (first, next) = match committed {
            Some(committed) => (committed.first_seq, committed.next_seq),
            None => self.nothing_written(py)?,
        };
        Ok((drafted.len(), first, next, left_out))
    }

    /// Loads a file of records.
    #[pyo3(signature = (path, progress=None, *, faces=false, skips=false))]
    fn ingest<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        progress: Option<Py<PyAny>>,
        faces: bool,
        skips: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let seed = record::random(py)?;
        let intake = self.intake(faces, skips, &seed);
        let loaded = enter_stoppable(py, progress, |report| {
            self.engine.ingest(RowSource::File(&path), intake, report)
        })?;
        report(py, &loaded)
    }

    /// Loads lines that were read already, behind so many of which so many records were kept.
    #[pyo3(signature = (name, bytes, lines, kept, *, skips=false))]
    fn ingest_lines<'py>(
        &self,
        py: Python<'py>,
        name: PathBuf,
        bytes: Vec<u8>,
        lines: u64,
        kept: u64,
        skips: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let seed = record::random(py)?;
        let intake = self.intake(false, skips, &seed);
        let source = RowSource::Text {
            name: &name,
            bytes,
            lines,
            kept,
        };
        let loaded = self.run(py, |engine| engine.ingest(source, intake, &mut |_, _| true))?;
        report(py, &loaded)
    }
}

impl Engine {
    fn intake<'a>(&'a self, faces: bool, skips: bool, seed: &'a [u8]) -> Intake<'a> {
        Intake {
            author: &self.author,
            faces,
            skips,
            seed,
        }
    }

    /// A refusal, with the row that it is about.
    fn at_refused(&self, py: Python<'_>, fault: PyErr, row: Option<usize>) -> PyErr {
        let Some(row) = row else { return fault };
        let id = fault.value(py).getattr("id").and_then(|id| id.extract()).ok().flatten();
        at_row_of(py, fault, row, id)
    }
}

/// What is told of a row that was left out. What is no refusal of it is raised.
fn told(fault: PyErr, row: usize, record: &Bound<'_, PyAny>) -> PyResult<LeftOut> {
    let value = fault.value(record.py()).clone();
    if !value.hasattr("row")? {
        return Err(fault);
    }
    let id = record.getattr("id").or_else(|_| record.get_item("id"));
    let id = id.and_then(|id| id.extract::<String>()).ok();
    let path = value.getattr("path")?.extract()?;
    Ok((row, id, path, value.str()?.to_string()))
}

fn report<'py>(py: Python<'py>, loaded: &Ingested) -> PyResult<Bound<'py, PyDict>> {
    let refusals = loaded.refusals.iter();
    let refusals: Vec<_> = refusals
        .map(|row| (row.line, row.id.clone(), row.field.clone(), row.reason.clone()))
        .collect();
    let dict = PyDict::new(py);
    dict.set_item("records", loaded.records)?;
    dict.set_item("bytes", loaded.bytes)?;
    dict.set_item("lines", loaded.lines)?;
    dict.set_item("first_seq", loaded.first_seq)?;
    dict.set_item("last_seq", loaded.last_seq)?;
    dict.set_item("skipped", loaded.skipped)?;
    dict.set_item("refusals", refusals)?;
    Ok(dict)
}
