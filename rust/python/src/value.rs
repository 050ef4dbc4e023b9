//! Writes a Python object as canonical bytes, directly: no JSON text in between, no copy of the dict.

use chronomemory::{MAX_DEPTH, MAX_INT_DIGITS, write_f64, write_i64, write_string};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::refusal::{Refusal, Step};
use crate::shape::{Pairs, Shapes};

/// Where a value stands, for the error that names it.
#[derive(Clone, Copy)]
pub struct Field<'a> {
    /// The field's name.
    pub name: &'a str,
    /// How many containers are open around its value.
    pub depth: usize,
}

/// Writes any object that JSON can carry.
pub fn write(object: &Bound<'_, PyAny>, field: Field<'_>, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    put(object, field.depth, shapes, out).map_err(|refusal| refusal.told(object.py(), field.name))
}

type Outcome = Result<(), Refusal>;

fn put(object: &Bound<'_, PyAny>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
    // Nearly all values are of these very classes, which one comparison tells.
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

fn put_other(object: &Bound<'_, PyAny>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
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
        let instead = instead_of(&kind);
        Err(Refusal::new(format!(
            "a {kind} is nothing that JSON can carry{instead}"
        )))
    }
}

/// What to write instead of a value that would not come back as what it was.
fn instead_of(kind: &str) -> &'static str {
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

/// A number or truth of NumPy as one of Python, with the very same value.
pub fn of_numpy<'py>(object: &Bound<'py, PyAny>) -> PyResult<Option<Bound<'py, PyAny>>> {
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

fn put_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> Outcome {
    let text = text
        .to_str()
        .map_err(|fault| Refusal::new(half_of_a_pair(text.py(), &fault)))?;
    write_string(text, out);
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

/// The text of a string; half a surrogate pair has none.
pub fn str_of<'a>(text: &'a Bound<'_, PyString>, field: &str) -> PyResult<&'a str> {
    text.to_str()
        .map_err(|fault| Refusal::new(half_of_a_pair(text.py(), &fault)).told(text.py(), field))
}

fn half_of_a_pair(py: Python<'_>, fault: &PyErr) -> String {
    match fault.value(py).getattr("start") {
        Ok(start) => format!("the character at {start} is half of a surrogate pair"),
        Err(_) => "half of a surrogate pair is not text".to_owned(),
    }
}

fn put_int(number: &Bound<'_, PyInt>, out: &mut Vec<u8>) -> Outcome {
    if let Ok(small) = number.extract::<i64>() {
        write_i64(small, out);
        return Ok(());
    }
    let too_long = || Refusal::new(format!("an integer of more than {MAX_INT_DIGITS} digits"));
    // The base class spells it: a subclass may have a repr of its own.
    let digits = number
        .py()
        .get_type::<PyInt>()
        .call_method1("__repr__", (number,))
        .map_err(|_| too_long())?;
    let digits = digits.extract::<String>()?;
    if digits.trim_start_matches('-').len() > MAX_INT_DIGITS {
        return Err(too_long());
    }
    out.extend_from_slice(digits.as_bytes());
    Ok(())
}

fn deeper(depth: usize) -> Result<usize, Refusal> {
    if depth >= MAX_DEPTH {
        // No path: it would be as long as the value is deep.
        return Err(Refusal::of_field(format!(
            "nested deeper than {MAX_DEPTH} levels in its event"
        )));
    }
    Ok(depth + 1)
}

fn put_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
    shapes: &mut Shapes,
    out: &mut Vec<u8>,
) -> Outcome {
    let inner = deeper(depth)?;
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put(&item, inner, shapes, out).map_err(|refusal| refusal.inside(|| Step::Place(index)))?;
    }
    out.push(b']');
    Ok(())
}

fn put_dict(dict: &Bound<'_, PyDict>, depth: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> Outcome {
    let inner = deeper(depth)?;
    let mut pairs = Pairs::new();
    for (key, value) in dict.iter() {
        let key = match key.cast_into_exact::<PyString>() {
            Ok(key) => key,
            Err(other) => match other.into_inner().cast_into::<PyString>() {
                Ok(key) => key,
                Err(_) => return Err(Refusal::new("JSON keys are strings".to_owned())),
            },
        };
        pairs.push((key, value));
    }
    if pairs.is_empty() {
        out.extend_from_slice(b"{}");
        return Ok(());
    }
    shapes.write(
        &pairs,
        out,
        |shapes, place, out| {
            let (key, value) = &pairs[place];
            put(value, inner, shapes, out).map_err(|refusal| refusal.inside(|| Step::Key(key.to_string())))
        },
        |reason| Refusal::new(reason.to_owned()),
    )
}
