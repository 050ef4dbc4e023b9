//! The functions that need no open store.

use std::path::PathBuf;

use chronomemory::{Pieces, RealDisk, Verified, WordSplitter, asked, forked, holds_any, indented, layout_of, sha256};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::boundary::{Callback, detached, detached_reporting};
use crate::json::{self, Shapes};
use crate::upkeep;
use crate::{Dict, Object};

/// Checks the files of a store's folder without opening it.
#[pyfunction]
#[pyo3(signature = (log_folder, progress=None, head_file=None))]
pub fn verify_path(
    py: Python<'_>,
    log_folder: PathBuf,
    progress: Callback,
    head_file: Option<PathBuf>,
) -> PyResult<Dict<'_>> {
    let found = detached_reporting(py, progress, |report| {
        Verified::of_folder(log_folder, head_file.as_deref(), report)
    })?;
    upkeep::verified(py, &found)
}

/// Whether a file of a store, unpacked if it is packed, contains one of some lower-case texts.
#[pyfunction]
pub fn file_holds(py: Python<'_>, path: PathBuf, texts: Vec<Vec<u8>>) -> PyResult<bool> {
    detached(py, || holds_any(&RealDisk::default(), &path, &texts))
}

/// The folder of a project's store, whether it exists or not: a backup is its own.
#[pyfunction]
pub fn store_folder(py: Python<'_>, project_root: PathBuf) -> PyResult<PathBuf> {
    detached(py, || {
        Ok(layout_of(&RealDisk::default(), &project_root).folder().to_owned())
    })
}

/// The SHA-256 of bytes in hex digits.
#[pyfunction]
pub fn sha256_hex(content: &[u8]) -> String {
    sha256(content).text().to_owned()
}

/// The words of a text as the index knows them.
#[pyfunction]
pub fn text_words(text: &str) -> Vec<String> {
    let (mut words, mut found) = (WordSplitter::default(), Vec::new());
    words.each(text, |word| found.push(word.to_owned()));
    found.iter().map(|word| words.stem(word).into_owned()).collect()
}

/// The words that a question asks for.
#[pyfunction]
pub fn question_words(text: &str) -> Vec<String> {
    asked(text)
}

/// The words, numbers, quotations and signs of a statement.
#[pyfunction]
pub fn statement_pieces(text: &str) -> Vec<String> {
    Pieces::of(text).collect()
}

/// The canonical JSON of a value.
#[pyfunction]
pub fn canonical_json<'py>(py: Python<'py>, value: &Object<'py>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &canonical(value, "value")?))
}

/// The canonical JSON of a value, indented over several lines.
#[pyfunction]
pub fn indented_json<'py>(py: Python<'py>, value: &Object<'py>) -> PyResult<Bound<'py, PyBytes>> {
    Ok(PyBytes::new(py, &indented(&canonical(value, "value")?)))
}

/// Parses JSON as strictly as a log line.
#[pyfunction]
pub fn parse_json<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Object<'py>> {
    let value = chronomemory::parse_json(text).map_err(|fault| PyValueError::new_err(fault.to_string()))?;
    json::value(py, &value.to_bytes())
}

/// The hash of an event: of its fields without `hash`.
#[pyfunction]
pub fn event_hash(fields: &Dict<'_>) -> PyResult<String> {
    let payload = fields.copy()?;
    payload.call_method1("pop", ("hash", ()))?;
    Ok(sha256(&canonical(&payload, "event")?).text().to_owned())
}

/// Runs before a fork, detached: a thread that opens a store may wait for the interpreter.
#[pyfunction]
pub fn before_fork(py: Python<'_>) {
    py.detach(forked::before_fork);
}

#[pyfunction]
pub fn after_fork_in_parent() {
    forked::after_fork_in_parent();
}

/// The descriptors of the parent's lock files, which a child must replace.
#[pyfunction]
pub fn after_fork_in_child() -> Vec<i32> {
    forked::after_fork_in_child()
}

fn canonical(value: &Object<'_>, name: &str) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    json::write(value, (name, 0), &mut Shapes::default(), &mut out)?;
    Ok(out)
}
