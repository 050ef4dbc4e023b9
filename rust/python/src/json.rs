//! Converts between Python objects and canonical JSON bytes, directly and in one pass.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, TryLockError};

use chronomemory::{
    Cursor, Error, MAX_DEPTH, MAX_INT_DIGITS, Quoted, RECORD_FIELDS, write_f64, write_i64, write_string,
};
use foldhash::fast::FixedState;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};
use smallvec::SmallVec;

use crate::boundary::{invalid_at, to_python};
use crate::{Dict, Object};

/// Dicts of at most this number of keys are sorted without an allocation, and their shapes are kept.
const USUAL_PAIRS: usize = 12;
/// How many shapes are kept; a new one replaces the oldest.
const KEPT_SHAPES: usize = 16;

/// Writes the value of a record's field that lies inside of `depth` containers.
pub fn write(object: &Object<'_>, field: (&str, usize), shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    let (field, depth) = field;
    put(object, depth, shapes, out).map_err(|refusal| refusal.into_error(object.py(), field, false))
}

/// The canonical JSON of an argument.
pub fn argument(object: &Object<'_>, name: &str, shapes: &mut Shapes) -> PyResult<Vec<u8>> {
    let mut out = Vec::new();
    let done = put(object, 0, shapes, &mut out);
    done.map_err(|refusal| refusal.into_error(object.py(), name, true))?;
    Ok(out)
}

/// The text of a string in a record's field; half a surrogate pair has none.
pub fn text_of<'a>(text: &'a Bound<'_, PyString>, field: &str) -> PyResult<&'a str> {
    checked_text(text).map_err(|refusal| refusal.into_error(text.py(), field, false))
}

/// The text of a string that is an argument.
pub fn argument_text<'a>(text: &'a Bound<'_, PyString>, name: &str) -> PyResult<&'a str> {
    checked_text(text).map_err(|refusal| refusal.into_error(text.py(), name, true))
}

/// A number or truth value of NumPy as the equal one of Python.
pub fn of_numpy<'py>(object: &Object<'py>) -> PyResult<Option<Object<'py>>> {
    static GENERIC: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    let py = object.py();
    if !object.is_instance(GENERIC.import(py, "numpy", "generic")?)? {
        return Ok(None);
    }
    let kind: String = object.getattr("dtype")?.getattr("kind")?.extract()?;
    let class = match kind.as_str() {
        "b" => py.get_type::<PyBool>(),
        "i" | "u" => py.get_type::<PyInt>(),
        "f" => py.get_type::<PyFloat>(),
        _ => return Ok(None),
    };
    class.call1((object,)).map(Some)
}

/// Why a value cannot be written. Boxed, so that the outcome of every write is small.
struct Refusal(Box<RefusalCause>);

enum RefusalCause {
    /// The reason, and the steps to the value, such as `.items` and `[3]`, the innermost first.
    Value(String, Vec<String>),
    /// A reason that concerns the whole field.
    Field(String),
    /// Python raised an error of its own.
    Raised(PyErr),
}

type Outcome = Result<(), Refusal>;

impl From<PyErr> for Refusal {
    fn from(fault: PyErr) -> Self {
        Self(Box::new(RefusalCause::Raised(fault)))
    }
}

impl Refusal {
    fn new(reason: impl Into<String>) -> Self {
        Self(Box::new(RefusalCause::Value(reason.into(), Vec::new())))
    }

    /// Adds the member or element in which it occurred.
    fn inside(mut self, step: impl FnOnce() -> String) -> Self {
        if let RefusalCause::Value(_, steps) = &mut *self.0 {
            steps.push(step());
        }
        self
    }

    /// The error for a field of a record or for an argument.
    fn into_error(self, py: Python<'_>, name: &str, is_argument: bool) -> PyErr {
        let (path, reason) = match *self.0 {
            RefusalCause::Raised(fault) => return fault,
            RefusalCause::Field(reason) => (name.to_owned(), reason),
            RefusalCause::Value(reason, steps) => (
                steps.iter().rev().fold(name.to_owned(), |path, step| path + step),
                reason,
            ),
        };
        match is_argument {
            true => to_python(py, Error::argument(&path, reason)),
            false => invalid_at(py, name, &path, &reason),
        }
    }
}

/// The step to a member; keys that could be misread are quoted.
fn key_step(key: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '@');
    match !key.is_empty() && key.chars().all(is_plain) {
        true => format!(".{key}"),
        false => format!(".{key:?}"),
    }
}

fn put(object: &Object<'_>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
    // Nearly all values are of exactly these classes, which takes one comparison each.
    if let Ok(text) = object.cast_exact::<PyString>() {
        put_text(text, out)
    } else if let Ok(number) = object.cast_exact::<PyInt>() {
        put_int(number, out)
    } else if let Ok(number) = object.cast_exact::<PyFloat>() {
        put_float(number, out)
    } else if let Ok(dict) = object.cast_exact::<PyDict>() {
        put_dict(dict, depth, shapes, out)
    } else if let Ok(list) = object.cast_exact::<PyList>() {
        put_items(list.iter(), depth, shapes, out)
    } else if object.is_none() {
        out.extend_from_slice(b"null");
        Ok(())
    } else if let Ok(truth) = object.cast_exact::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
        Ok(())
    } else {
        put_other(object, depth, shapes, out)
    }
}

fn put_other(object: &Object<'_>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
    if let Ok(text) = object.cast::<PyString>() {
        put_text(text, out)
    } else if let Ok(number) = object.cast::<PyFloat>() {
        put_float(number, out)
    } else if let Ok(number) = object.cast::<PyInt>() {
        put_int(number, out)
    } else if let Ok(dict) = object.cast::<PyDict>() {
        put_dict(dict, depth, shapes, out)
    } else if let Ok(list) = object.cast::<PyList>() {
        put_items(list.iter(), depth, shapes, out)
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        put_items(tuple.iter(), depth, shapes, out)
    } else if let Some(plain) = of_numpy(object)? {
        put(&plain, depth, shapes, out)
    } else {
        let kind = object.get_type().name()?.to_string_lossy().into_owned();
        let advice = advice_for(&kind);
        Err(Refusal::new(format!("a {kind} is nothing that JSON can carry{advice}")))
    }
}

/// What to write instead of a value that would not come back as what it was.
fn advice_for(kind: &str) -> &'static str {
    match kind {
        "datetime" | "date" | "time" | "Timestamp" => "; write its text, value.isoformat()",
        "datetime64" | "timedelta64" | "UUID" | "Path" | "PosixPath" | "WindowsPath" => "; write its text, str(value)",
        "Decimal" | "Fraction" => "; write its text, str(value), or float(value) if that is near enough",
        "ndarray" | "Series" => "; write value.tolist()",
        "set" | "frozenset" => "; write a list",
        "bytes" | "bytearray" => "; write text, such as value.hex()",
        "NAType" | "NaTType" => "; write None",
        _ => "",
    }
}

fn checked_text<'a>(text: &'a Bound<'_, PyString>) -> Result<&'a str, Refusal> {
    let place = |fault: PyErr| fault.value(text.py()).getattr("start");
    text.to_str().map_err(|fault| match place(fault) {
        Ok(start) => Refusal::new(format!("the character at {start} is half of a surrogate pair")),
        Err(_) => Refusal::new("half of a surrogate pair is not text"),
    })
}

fn put_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> Outcome {
    write_string(checked_text(text)?, out);
    Ok(())
}

fn put_float(number: &Bound<'_, PyFloat>, out: &mut Vec<u8>) -> Outcome {
    let value = number.value();
    if !value.is_finite() {
        return Err(Refusal::new(format!("{value} is no JSON number")));
    }
    write_f64(value, out);
    Ok(())
}

fn put_int(number: &Bound<'_, PyInt>, out: &mut Vec<u8>) -> Outcome {
    if let Ok(small) = number.extract::<i64>() {
        write_i64(small, out);
        return Ok(());
    }
    // The repr of the base class: a subclass may have its own.
    let digits = number.py().get_type::<PyInt>().call_method1("__repr__", (number,));
    match digits.and_then(|digits| digits.extract::<String>()) {
        Ok(digits) if digits.trim_start_matches('-').len() <= MAX_INT_DIGITS => {
            out.extend_from_slice(digits.as_bytes());
            Ok(())
        }
        _ => Err(Refusal::new(format!("an integer of more than {MAX_INT_DIGITS} digits"))),
    }
}

fn deeper(depth: usize) -> Result<usize, Refusal> {
    if depth < MAX_DEPTH {
        return Ok(depth + 1);
    }
    // No path: it would be as long as the value is deep.
    let reason = format!("nested deeper than {MAX_DEPTH} levels in its event");
    Err(Refusal(Box::new(RefusalCause::Field(reason))))
}

fn put_items<'py, I>(items: I, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome
where
    I: Iterator<Item = Object<'py>>,
{
    let inner = deeper(depth)?;
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put(&item, inner, shapes, out).map_err(|refusal| refusal.inside(|| format!("[{index}]")))?;
    }
    out.push(b']');
    Ok(())
}

fn put_dict(dict: &Dict<'_>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
    let inner = deeper(depth)?;
    let mut pairs = Pairs::new();
    for (key, value) in dict.iter() {
        let key = match key.cast_into_exact::<PyString>() {
            Ok(key) => key,
            Err(other) => match other.into_inner().cast_into::<PyString>() {
                Ok(key) => key,
                Err(_) => return Err(Refusal::new("JSON keys are strings")),
            },
        };
        pairs.push((key, value));
    }
    if pairs.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    let shape = shapes.shape_of(&pairs)?;
    let mut start = 0;
    for &(place, end) in &shape.order {
        out.extend_from_slice(&shape.between[start..end]);
        start = end;
        let (key, value) = &pairs[place];
        put(value, inner, shapes, out).map_err(|refusal| refusal.inside(|| key_step(&key.to_string())))?;
    }
    out.push(b'}');
    Ok(())
}

/// The pairs of a dict, in its own order.
type Pairs<'py> = SmallVec<[(Bound<'py, PyString>, Object<'py>); USUAL_PAIRS]>;

/// The sorted keys of a dict, reused for dicts that have the same key objects in the same order.
struct Shape {
    /// In the order of the dict. The references keep the addresses from being reused.
    keys: SmallVec<[Py<PyString>; USUAL_PAIRS]>,
    /// For each place in canonical order, the place in the dict and where the bytes before the value end.
    order: SmallVec<[(usize, usize); USUAL_PAIRS]>,
    /// The bytes between the values: braces, commas, keys, colons.
    between: Vec<u8>,
}

impl Shape {
    fn of(pairs: &Pairs<'_>) -> Result<Self, Refusal> {
        let mut sorted: SmallVec<[(usize, &str); USUAL_PAIRS]> = SmallVec::with_capacity(pairs.len());
        for (place, (key, _)) in pairs.iter().enumerate() {
            let key = key.to_str();
            sorted.push((
                place,
                key.map_err(|_| Refusal::new("half a surrogate pair is not text"))?,
            ));
        }
        sorted.sort_unstable_by_key(|(_, key)| *key);
        if sorted.windows(2).any(|pair| pair[0].1 == pair[1].1) {
            return Err(Refusal::new("the same key twice"));
        }
        let (mut between, mut order) = (Vec::new(), SmallVec::new());
        for (number, (place, key)) in sorted.iter().enumerate() {
            between.push(if number == 0 { b'{' } else { b',' });
            write_string(key, &mut between);
            between.push(b':');
            order.push((*place, between.len()));
        }
        let keys = pairs.iter().map(|(key, _)| key.clone().unbind()).collect();
        Ok(Self { keys, order, between })
    }

    fn is_of(&self, pairs: &Pairs<'_>) -> bool {
        self.keys.len() == pairs.len() && self.keys.iter().zip(pairs).all(|(one, (other, _))| one.is(other))
    }
}

/// Shapes of dicts that were written lately: dicts that one line of a program makes share their key objects.
#[derive(Default)]
pub struct Shapes {
    known: Vec<Arc<Shape>>,
    oldest: usize,
}

impl Shapes {
    fn shape_of(&mut self, pairs: &Pairs<'_>) -> Result<Arc<Shape>, Refusal> {
        if let Some(known) = self.known.iter().find(|shape| shape.is_of(pairs)) {
            return Ok(Arc::clone(known));
        }
        let shape = Arc::new(Shape::of(pairs)?);
        if pairs.len() > USUAL_PAIRS {
            // Not kept.
        } else if self.known.len() < KEPT_SHAPES {
            self.known.push(Arc::clone(&shape));
        } else {
            self.known[self.oldest] = Arc::clone(&shape);
            self.oldest = (self.oldest + 1) % KEPT_SHAPES;
        }
        Ok(shape)
    }
}

/// How many strings are shared between records, and of how many bytes at most.
const SHARED_STRINGS: usize = 256;
const SHARED_STRING_BYTES: usize = 32;

/// Strings that many records have: field names, kinds and statuses.
type Strings = HashMap<Box<[u8]>, Py<PyString>, FixedState>;

static SHARED: LazyLock<Mutex<Strings>> = LazyLock::new(Mutex::default);

/// The shared strings for one record; `None` while another one is read, whose thread may wait for the interpreter.
struct SharedStrings(Option<MutexGuard<'static, Strings>>);

impl SharedStrings {
    fn lock() -> Self {
        Self(match SHARED.try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        })
    }

    /// A text that other records are likely to have too.
    fn text<'py>(&mut self, py: Python<'py>, quoted: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
        let shared = match &mut self.0 {
            Some(shared) if !quoted.is_escaped && quoted.inner.len() <= SHARED_STRING_BYTES => shared,
            _ => return text(py, quoted),
        };
        if let Some(known) = shared.get(quoted.inner) {
            return Ok(known.bind(py).clone());
        }
        let made = text(py, quoted)?;
        if shared.len() < SHARED_STRINGS {
            shared.insert(quoted.inner.into(), made.clone().unbind());
        }
        Ok(made)
    }
}

/// Reads canonical JSON that the engine has checked; anything else is a fault of the engine.
struct Parser<'a, 'py> {
    py: Python<'py>,
    cursor: Cursor<'a>,
    strings: SharedStrings,
}

fn broken() -> PyErr {
    PyValueError::new_err("the engine handed out a record that is not canonical JSON")
}

impl<'a, 'py> Parser<'a, 'py> {
    fn new(py: Python<'py>, text: &'a [u8]) -> Self {
        let (cursor, strings) = (Cursor::new(text), SharedStrings::lock());
        Self { py, cursor, strings }
    }

    /// A parser behind the opening brace of an object.
    fn opened(py: Python<'py>, object: &'a [u8]) -> PyResult<Self> {
        let mut parser = Self::new(py, object);
        parser.cursor.pass(b"{").ok_or_else(broken)?;
        Ok(parser)
    }

    fn value(&mut self) -> PyResult<Object<'py>> {
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

    fn number(&self, text: &[u8]) -> PyResult<Object<'py>> {
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

    /// The elements of an array, behind its bracket.
    fn list(&mut self) -> PyResult<Bound<'py, PyList>> {
        let list = PyList::empty(self.py);
        while self.cursor.has_more(b']').ok_or_else(broken)? {
            list.append(self.value()?)?;
        }
        Ok(list)
    }

    /// Passes a key that needs no escapes, if it is the next one.
    fn passes_key(&mut self, name: &str) -> bool {
        let quoted = self.cursor.rest().strip_prefix(b"\"");
        let is_next = quoted.is_some_and(|rest| {
            let behind = rest.strip_prefix(name.as_bytes());
            behind.is_some_and(|behind| behind.starts_with(b"\":"))
        });
        is_next && self.cursor.take(name.len() + 3).is_some()
    }

    /// The next key of an object, or `None` behind the last member.
    fn key(&mut self) -> PyResult<Option<Quoted<'a>>> {
        if !self.cursor.has_more(b'}').ok_or_else(broken)? {
            return Ok(None);
        }
        self.cursor.key().map(Some).ok_or_else(broken)
    }

    /// The members of an object, behind its brace.
    fn dict(&mut self) -> PyResult<Dict<'py>> {
        let dict = PyDict::new(self.py);
        while let Some(key) = self.key()? {
            let name = self.strings.text(self.py, key)?;
            dict.set_item(name, self.value()?)?;
        }
        Ok(dict)
    }
}

/// A canonical value.
pub fn value<'py>(py: Python<'py>, text: &[u8]) -> PyResult<Object<'py>> {
    Parser::new(py, text).value()
}

/// A text of a canonical record.
fn text<'py>(py: Python<'py>, text: Quoted<'_>) -> PyResult<Bound<'py, PyString>> {
    if text.is_escaped {
        return Ok(PyString::new(py, &text.text().ok_or_else(broken)?));
    }
    PyString::from_bytes(py, text.inner)
}

/// A canonical record as a dict of the fields that it has.
pub fn dict<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<Dict<'py>> {
    Parser::opened(py, bytes)?.dict()
}

/// The values of the fields of a canonical record, in their order; a foreign record may lack some.
pub fn fields<'py>(py: Python<'py>, bytes: &[u8]) -> PyResult<[Option<Object<'py>>; RECORD_FIELDS.len()]> {
    let mut parser = Parser::opened(py, bytes)?;
    let mut fields = [const { None }; RECORD_FIELDS.len()];
    let mut expected = 0;
    while parser.cursor.has_more(b'}').ok_or_else(broken)? {
        let place = match RECORD_FIELDS.get(expected) {
            Some(name) if parser.passes_key(name) => Some(expected),
            _ => {
                let key = parser.cursor.key().ok_or_else(broken)?;
                RECORD_FIELDS.iter().position(|name| name.as_bytes() == key.inner)
            }
        };
        expected += 1;
        let value = match (place, parser.cursor.peek()) {
            (Some(KIND | SOURCE_TYPE | STATUS), Some(b'"')) => {
                let word = parser.cursor.string().ok_or_else(broken)?;
                parser.strings.text(py, word)?.into_any()
            }
            _ => parser.value()?,
        };
        // A foreign confidence may be written as an integer.
        let value = match place {
            Some(CONFIDENCE) if value.is_instance_of::<PyInt>() => PyFloat::new(py, value.extract()?).into_any(),
            _ => value,
        };
        if let Some(place) = place {
            fields[place] = Some(value);
        }
    }
    Ok(fields)
}

/// The positions of some fields in canonical order.
const CONFIDENCE: usize = 0;
const KIND: usize = 6;
const SOURCE_TYPE: usize = 10;
const STATUS: usize = 11;
