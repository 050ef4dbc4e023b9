//! Makes Python objects of canonical bytes, in one pass, straight from the bytes.

use chronomemory::{Cursor, Int, Quoted, Value, defaults};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::record::record_class;
use crate::shared_words::shared_word;

/// Makes objects of canonical JSON, which the engine has proven: anything else is a fault of the engine's.
struct Reader<'a, 'py> {
    py: Python<'py>,
    cursor: Cursor<'a>,
}

fn broken() -> PyErr {
    PyValueError::new_err("the engine handed out a record that is not canonical JSON")
}

impl<'a, 'py> Reader<'a, 'py> {
    /// What stands behind the opening brace of an object.
    fn opened(py: Python<'py>, object: &'a [u8]) -> PyResult<Self> {
        let mut reader = Self {
            py,
            cursor: Cursor::new(object),
        };
        reader.cursor.pass(b"{").ok_or_else(broken)?;
        Ok(reader)
    }

    fn value(&mut self) -> PyResult<Bound<'py, PyAny>> {
        match self.cursor.peek().ok_or_else(broken)? {
            b'"' => {
                let quoted = self.cursor.string().ok_or_else(broken)?;
                Ok(text(self.py, quoted)?.into_any())
            }
            b'{' => {
                self.cursor.pass(b"{");
                Ok(self.dict()?.into_any())
            }
            b'[' => {
                self.cursor.pass(b"[");
                Ok(self.list()?.into_any())
            }
            first => {
                let text = self.cursor.scalar().ok_or_else(broken)?;
                match first {
                    b't' | b'f' => Ok(PyBool::new(self.py, first == b't').to_owned().into_any()),
                    b'n' => Ok(self.py.None().into_bound(self.py)),
                    _ => self.number(text),
                }
            }
        }
    }

    fn number(&self, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let text = std::str::from_utf8(text).map_err(|_| broken())?;
        if text.bytes().any(|b| matches!(b, b'.' | b'e')) {
            let number: f64 = text.parse().map_err(|_| broken())?;
            return Ok(PyFloat::new(self.py, number).into_any());
        }
        match text.parse::<i64>() {
            Ok(small) => Ok(small.into_pyobject(self.py)?.into_any()),
            Err(_) => self.py.get_type::<PyInt>().call1((text,)),
        }
    }

    /// The elements of an array whose bracket was passed.
    fn list(&mut self) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(self.py);
        while self.cursor.has_more(b']').ok_or_else(broken)? {
            list.append(self.value()?)?;
        }
        Ok(list)
    }

    /// The next key of an object whose brace was passed; `None` behind the last member.
    fn key(&mut self) -> PyResult<Option<Quoted<'a>>> {
        if !self.cursor.has_more(b'}').ok_or_else(broken)? {
            return Ok(None);
        }
        self.cursor.key().map(Some).ok_or_else(broken)
    }

    /// A text that others are likely to have too.
    fn word(&self, quoted: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
        match quoted.is_escaped {
            true => text(self.py, quoted),
            false => shared_word(self.py, quoted.inner),
        }
    }

    /// The members of an object whose brace was passed.
    fn dict(&mut self) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        while let Some(key) = self.key()? {
            let name = self.word(key)?;
            dict.set_item(name, self.value()?)?;
        }
        Ok(dict)
    }
}

/// A canonical value.
pub fn value<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let cursor = Cursor::new(text);
    Reader { py, cursor }.value()
}

/// A text of a canonical record.
pub fn text<'py>(py: Python<'py>, text: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
    if text.is_escaped {
        let meant = text.text().ok_or_else(broken)?;
        return Ok(PyString::new(py, &meant));
    }
    PyString::from_bytes(py, text.inner)
}

/// The dict that a canonical record spells, all twelve fields or as many as it has.
pub fn dict<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyDict>> {
    Reader::opened(py, bytes)?.dict()
}

/// A `ChronoRecord`; fields that a foreign record lacks get their defaults.
pub fn record<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let mut reader = Reader::opened(py, bytes)?;
    let mut fields: [Option<Bound<'py, PyAny>>; 12] = Default::default();
    while let Some(key) = reader.key()? {
        let slot = slot_of(key.inner);
        let value = match (slot, reader.cursor.peek()) {
            (Some(KIND | STATUS | SOURCE_TYPE), Some(b'"')) => {
                let word = reader.cursor.string().ok_or_else(broken)?;
                reader.word(word)?.into_any()
            }
            _ => reader.value()?,
        };
        if let Some(slot) = slot {
            fields[slot] = Some(value);
        }
    }
    // A foreign confidence may be spelled as an integer.
    if let Some(confidence) = &fields[4]
        && let Ok(number) = confidence.cast::<PyInt>()
    {
        fields[4] = Some(PyFloat::new(py, number.extract()?).into_any());
    }
    let mut filled = Vec::with_capacity(fields.len());
    for (slot, field) in fields.into_iter().enumerate() {
        filled.push(match field {
            Some(value) => value,
            None => default(py, slot)?,
        });
    }
    record_class(py)?.call1(PyTuple::new(py, filled)?)
}

/// Where the fields stand whose words many records share.
const KIND: usize = 1;
const STATUS: usize = 2;
const SOURCE_TYPE: usize = 5;

/// The position of a field in the constructor of `ChronoRecord`.
fn slot_of(key: &[u8]) -> Option<usize> {
    Some(match key {
        b"id" => 0,
        b"kind" => KIND,
        b"status" => STATUS,
        b"label" => 3,
        b"confidence" => 4,
        b"source_type" => SOURCE_TYPE,
        b"evidence" => 6,
        b"epistemic_boundary" => 7,
        b"is_hypothesis" => 8,
        b"model_assumptions" => 9,
        b"recursion_depth" => 10,
        b"data" => 11,
        _ => return None,
    })
}

fn default(py: Python<'_>, slot: usize) -> PyResult<Bound<'_, PyAny>> {
    let text = |text: &str| PyString::new(py, text).into_any();
    Ok(match slot {
        KIND => text(defaults::KIND),
        STATUS => text(defaults::STATUS),
        4 => PyFloat::new(py, defaults::CONFIDENCE).into_any(),
        SOURCE_TYPE => text(defaults::SOURCE_TYPE),
        6 | 7 => PyList::empty(py).into_any(),
        8 => PyBool::new(py, false).to_owned().into_any(),
        9 | 11 => PyDict::new(py).into_any(),
        10 => 0i64.into_pyobject(py)?.into_any(),
        _ => text(""),
    })
}

/// A parsed value as Python objects.
pub fn of_value<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Int(number) => of_int(py, number)?,
        Value::Float(number) => PyFloat::new(py, *number).into_any(),
        Value::Str(text) => PyString::new(py, text).into_any(),
        Value::Array(items) => {
            let list = PyList::empty(py);
            for item in items {
                list.append(of_value(py, item)?)?;
            }
            list.into_any()
        }
        Value::Object(pairs) => {
            let dict = PyDict::new(py);
            for (key, value) in pairs {
                dict.set_item(key, of_value(py, value)?)?;
            }
            dict.into_any()
        }
    })
}

fn of_int<'py>(py: Python<'py>, number: &Int) -> PyResult<Bound<'py, PyAny>> {
    match number.as_i64() {
        Some(small) => Ok(small.into_pyobject(py)?.into_any()),
        None => py.get_type::<PyInt>().call1((number.to_string(),)),
    }
}
