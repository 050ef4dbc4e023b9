//! How does a ChronoRecord, or a dict like one, become a draft?

use chronomemory::error::Error;
use chronomemory::event::draft::{Draft, FIELD_DEPTH, RawField};
use chronomemory::event::draft_value::{RECORD_FIELDS, defaults};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::enter::{invalid, to_python};
use crate::value::{self, Field, str_of};

/// The public class of records.
pub fn record_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS
        .get_or_try_init(py, || {
            let module = PyModule::import(py, "chronomemory.record")?;
            Ok(module.getattr("ChronoRecord")?.cast_into::<PyType>()?.unbind())
        })
        .map(|class| class.bind(py))
}

/// Where the fields of a record come from.
enum Source<'a, 'py> {
    Object(&'a Bound<'py, PyAny>),
    Dict(&'a Bound<'py, PyDict>),
}

impl<'py> Source<'_, 'py> {
    fn get(&self, name: &Bound<'py, PyString>) -> PyResult<Option<Bound<'py, PyAny>>> {
        match self {
            Self::Object(object) => object.getattr(name).map(Some),
            Self::Dict(dict) => dict.get_item(name),
        }
    }
}

/// Puts a record into a draft; its recursion depth is the store's.
pub fn upsert(draft: &mut Draft, record: &Bound<'_, PyAny>, depth: i64, face: Option<&str>) -> PyResult<()> {
    let py = record.py();
    if let Ok(dict) = record.cast::<PyDict>() {
        return from_dict(draft, dict, depth, face);
    }
    if record.is_instance(record_class(py)?)? {
        return write(draft, py, &Source::Object(record), depth, face);
    }
    if record.cast::<PyMapping>().is_ok() {
        let dict = PyDict::new(py);
        dict.update(record.cast::<PyMapping>()?)?;
        return from_dict(draft, &dict, depth, face);
    }
    let kind = record.get_type().name()?;
    Err(invalid(
        py,
        "record",
        &format!("a {kind} is neither a ChronoRecord nor a dict"),
    ))
}

fn from_dict(draft: &mut Draft, dict: &Bound<'_, PyDict>, depth: i64, face: Option<&str>) -> PyResult<()> {
    for key in dict.keys() {
        let Ok(key) = key.cast_into::<PyString>() else {
            return Err(invalid(dict.py(), "record", "the keys of a record are strings"));
        };
        let name = str_of(&key, "record")?;
        if !RECORD_FIELDS.contains(&name) {
            return Err(invalid(dict.py(), name, "not a field of a record; put it under data"));
        }
    }
    write(draft, dict.py(), &Source::Dict(dict), depth, face)
}

fn write<'py>(
    draft: &mut Draft,
    py: Python<'py>,
    source: &Source<'_, 'py>,
    depth: i64,
    face: Option<&str>,
) -> PyResult<()> {
    let fault = |error: Error| to_python(py, error);
    let mut writer = draft.upsert();
    writer.confidence(confidence(source, py)?).map_err(fault)?;
    write_raw(source, py, RawField::Data, writer.raw(RawField::Data))?;
    write_raw(
        source,
        py,
        RawField::EpistemicBoundary,
        writer.raw(RawField::EpistemicBoundary),
    )?;
    write_raw(source, py, RawField::Evidence, writer.raw(RawField::Evidence))?;
    let id = text(source, "id", intern!(py, "id"))?;
    writer.id(or(&id, "id", "")?, face).map_err(fault)?;
    writer.is_hypothesis(is_hypothesis(source, py)?);
    let kind = text(source, "kind", intern!(py, "kind"))?;
    writer.kind(or(&kind, "kind", defaults::KIND)?);
    let label = text(source, "label", intern!(py, "label"))?;
    writer.label(or(&label, "label", "")?);
    write_raw(
        source,
        py,
        RawField::ModelAssumptions,
        writer.raw(RawField::ModelAssumptions),
    )?;
    writer.recursion_depth(depth);
    let source_type = text(source, "source_type", intern!(py, "source_type"))?;
    writer.source_type(or(&source_type, "source_type", defaults::SOURCE_TYPE)?);
    let status = text(source, "status", intern!(py, "status"))?;
    writer.status(or(&status, "status", defaults::STATUS)?).map_err(fault)
}

fn wrong_type(value: &Bound<'_, PyAny>, field: &str, wanted: &str) -> PyErr {
    let kind = value.get_type().name().map(|name| name.to_string()).unwrap_or_default();
    invalid(value.py(), field, &format!("a {kind} is not {wanted}"))
}

fn text<'py>(
    source: &Source<'_, 'py>,
    name: &str,
    key: &Bound<'py, PyString>,
) -> PyResult<Option<Bound<'py, PyString>>> {
    match source.get(key)? {
        None => Ok(None),
        Some(value) => match value.cast::<PyString>() {
            Ok(text) => Ok(Some(text.clone())),
            Err(_) => Err(wrong_type(&value, name, "a string")),
        },
    }
}

fn or<'a>(text: &'a Option<Bound<'_, PyString>>, name: &str, default: &'static str) -> PyResult<&'a str> {
    text.as_ref().map_or(Ok(default), |text| str_of(text, name))
}

fn confidence(source: &Source<'_, '_>, py: Python<'_>) -> PyResult<f64> {
    let Some(value) = source.get(intern!(py, "confidence"))? else {
        return Ok(defaults::CONFIDENCE);
    };
    let is_number = value.is_instance_of::<PyFloat>() || value.is_instance_of::<PyInt>();
    if !is_number || value.is_instance_of::<PyBool>() {
        return Err(wrong_type(&value, "confidence", "a number"));
    }
    // An integer too large for a float is no confidence either.
    Ok(value.extract::<f64>().unwrap_or(f64::INFINITY))
}

fn is_hypothesis(source: &Source<'_, '_>, py: Python<'_>) -> PyResult<bool> {
    match source.get(intern!(py, "is_hypothesis"))? {
        None => Ok(false),
        Some(value) => match value.cast::<PyBool>() {
            Ok(truth) => Ok(truth.is_true()),
            Err(_) => Err(wrong_type(&value, "is_hypothesis", "True or False")),
        },
    }
}

fn write_raw(source: &Source<'_, '_>, py: Python<'_>, field: RawField, out: &mut Vec<u8>) -> PyResult<()> {
    let (key, is_list) = match field {
        RawField::Data => (intern!(py, "data"), false),
        RawField::EpistemicBoundary => (intern!(py, "epistemic_boundary"), true),
        RawField::Evidence => (intern!(py, "evidence"), true),
        RawField::ModelAssumptions => (intern!(py, "model_assumptions"), false),
    };
    let Some(value) = source.get(key)? else {
        out.extend_from_slice(if is_list { b"[]" } else { b"{}" });
        return Ok(());
    };
    let fits = if is_list {
        value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
    } else {
        value.is_instance_of::<PyDict>()
    };
    if !fits {
        return Err(wrong_type(
            &value,
            field.name(),
            if is_list { "a list" } else { "a dict" },
        ));
    }
    let place = Field {
        name: field.name(),
        depth: FIELD_DEPTH,
    };
    value::write(&value, place, out)
}
