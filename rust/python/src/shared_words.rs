//! Words that records have in common, as objects of Python that are made once: fields, kinds and statuses.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, TryLockError};

use foldhash::fast::FixedState;
use pyo3::prelude::*;
use pyo3::types::PyString;

/// So many words are kept at most, and so long ones: names of fields are few and short, others are made anew.
const KEPT_WORDS: usize = 256;
const KEPT_WORD_BYTES: usize = 32;

type Words = HashMap<Box<[u8]>, Py<PyString>, FixedState>;

static WORDS: LazyLock<Mutex<Words>> = LazyLock::new(Mutex::default);

/// The object of a word in UTF-8.
pub fn shared_word<'py>(py: Python<'py>, word: &[u8]) -> PyResult<Bound<'py, PyString>> {
    if word.len() > KEPT_WORD_BYTES {
        return PyString::from_bytes(py, word);
    }
    let mut words = match WORDS.try_lock() {
        Ok(words) => words,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        // Whoever holds it may be waiting for the interpreter.
        Err(TryLockError::WouldBlock) => return PyString::from_bytes(py, word),
    };
    if let Some(known) = words.get(word) {
        return Ok(known.bind(py).clone());
    }
    let made = PyString::from_bytes(py, word)?;
    if words.len() < KEPT_WORDS {
        words.insert(word.into(), made.clone().unbind());
    }
    Ok(made)
}
