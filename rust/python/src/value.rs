//! How does a Python object become canonical bytes? Directly: no JSON text in between, no copy of the dict.

use chronomemory::{MAX_DEPTH, MAX_INT_DIGITS, write_f64, write_i64, write_string};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};

use crate::enter::invalid;
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
    // Nearly all values are of these very classes, which one comparison tells.
    if let Ok(text) = object.cast_exact::<PyString>() {
        write_string(str_of(text, field.name)?, out);
    } else if let Ok(number) = object.cast_exact::<PyInt>() {
        write_int(number, field, out)?;
    } else if let Ok(number) = object.cast_exact::<PyFloat>() {
        write_float(number, field, out)?;
    } else if let Ok(dict) = object.cast_exact::<PyDict>() {
        write_dict(dict, field, shapes, out)?;
    } else if let Ok(list) = object.cast_exact::<PyList>() {
        write_items(list.iter(), object.py(), field, shapes, out)?;
    } else if object.is_none() {
        out.extend_from_slice(b"null");
    } else if let Ok(truth) = object.cast_exact::<PyBool>() {
        out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
    } else {
        write_subclass(object, field, shapes, out)?;
    }
    Ok(())
}

fn write_subclass(object: &Bound<'_, PyAny>, field: Field<'_>, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(text) = object.cast::<PyString>() {
        write_string(str_of(text, field.name)?, out);
        Ok(())
    } else if let Ok(number) = object.cast::<PyFloat>() {
        write_float(number, field, out)
    } else if let Ok(number) = object.cast::<PyInt>() {
        write_int(number, field, out)
    } else if let Ok(dict) = object.cast::<PyDict>() {
        write_dict(dict, field, shapes, out)
    } else if let Ok(list) = object.cast::<PyList>() {
        write_items(list.iter(), object.py(), field, shapes, out)
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        write_items(tuple.iter(), object.py(), field, shapes, out)
    } else {
        let kind = object.get_type().name()?;
        Err(invalid(
            object.py(),
            field.name,
            &format!("a {kind} is nothing that JSON can carry"),
        ))
    }
}

fn write_float(number: &Bound<'_, PyFloat>, field: Field<'_>, out: &mut Vec<u8>) -> PyResult<()> {
    let value = number.value();
    if !value.is_finite() {
        return Err(invalid(
            number.py(),
            field.name,
            &format!("{value} is not a number that JSON can carry"),
        ));
    }
    write_f64(value, out);
    Ok(())
}

/// The text of a string; half a surrogate pair has none.
pub fn str_of<'a>(text: &'a Bound<'_, PyString>, field: &str) -> PyResult<&'a str> {
    text.to_str()
        .map_err(|fault| invalid(text.py(), field, &half_of_a_pair(text.py(), &fault)))
}

fn half_of_a_pair(py: Python<'_>, fault: &PyErr) -> String {
    match fault.value(py).getattr("start") {
        Ok(start) => format!("the character at {start} is half of a surrogate pair"),
        Err(_) => "half of a surrogate pair is not text".to_owned(),
    }
}

fn write_int(number: &Bound<'_, PyInt>, field: Field<'_>, out: &mut Vec<u8>) -> PyResult<()> {
    if let Ok(small) = number.extract::<i64>() {
        write_i64(small, out);
        return Ok(());
    }
    let py = number.py();
    let too_long = || invalid(py, field.name, "an integer of more than 4300 digits");
    // The base class spells it: a subclass may have a repr of its own.
    let digits = py
        .get_type::<PyInt>()
        .call_method1("__repr__", (number,))
        .map_err(|_| too_long())?;
    let digits = digits.cast::<PyString>()?.to_str()?.to_owned();
    if digits.trim_start_matches('-').len() > MAX_INT_DIGITS {
        return Err(too_long());
    }
    out.extend_from_slice(digits.as_bytes());
    Ok(())
}

fn deeper<'a>(py: Python<'_>, field: Field<'a>) -> PyResult<Field<'a>> {
    if field.depth >= MAX_DEPTH {
        return Err(invalid(py, field.name, "nested deeper than 200 levels in its event"));
    }
    Ok(Field {
        depth: field.depth + 1,
        ..field
    })
}

fn write_items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    py: Python<'py>,
    field: Field<'_>,
    shapes: &mut Shapes,
    out: &mut Vec<u8>,
) -> PyResult<()> {
    let inner = deeper(py, field)?;
    out.push(b'[');
    for (index, item) in items.enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(&item, inner, shapes, out)?;
    }
    out.push(b']');
    Ok(())
}

fn write_dict(dict: &Bound<'_, PyDict>, field: Field<'_>, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    let py = dict.py();
    let inner = deeper(py, field)?;
    let mut pairs = Pairs::new();
    for (key, value) in dict.iter() {
        let key = match key.cast_into_exact::<PyString>() {
            Ok(key) => key,
            Err(other) => match other.into_inner().cast_into::<PyString>() {
                Ok(key) => key,
                Err(_) => return Err(invalid(py, field.name, "JSON keys are strings")),
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
        |shapes, value, out| write(value, inner, shapes, out),
        |reason| invalid(py, field.name, reason),
    )
}
