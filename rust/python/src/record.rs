//! Drafts a ChronoRecord, or a dict like one.

use chronomemory::{Error, FIELD_DEPTH, RECORD_FIELDS, RawField, defaults};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::draft_buffer::DraftBuffer;
use crate::enter::{invalid, shown, to_python};
use crate::shape::Shapes;
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

/// The twelve fields of a record in canonical order; what is missing has its default.
type Fields<'py> = [Option<Bound<'py, PyAny>>; 12];

/// Half as many bytes as an id has digits that nobody gave.
const ID_BYTES: usize = 16;

const CONFIDENCE: usize = 0;
const DATA: usize = 1;
const EPISTEMIC_BOUNDARY: usize = 2;
const EVIDENCE: usize = 3;
const ID: usize = 4;
const IS_HYPOTHESIS: usize = 5;
const KIND: usize = 6;
const LABEL: usize = 7;
const MODEL_ASSUMPTIONS: usize = 8;
const RECURSION_DEPTH: usize = 9;
const SOURCE_TYPE: usize = 10;
const STATUS: usize = 11;

/// The names of the fields as interned strings: most keys are the very same objects.
fn names(py: Python<'_>) -> [&Bound<'_, PyString>; 12] {
    [
        intern!(py, "confidence"),
        intern!(py, "data"),
        intern!(py, "epistemic_boundary"),
        intern!(py, "evidence"),
        intern!(py, "id"),
        intern!(py, "is_hypothesis"),
        intern!(py, "kind"),
        intern!(py, "label"),
        intern!(py, "model_assumptions"),
        intern!(py, "recursion_depth"),
        intern!(py, "source_type"),
        intern!(py, "status"),
    ]
}

/// Whether a record without an id gets one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Naming {
    /// It must have one.
    Given,
    /// It gets a random one.
    Random,
}

/// Puts a record into a draft; its recursion depth is the store's. Returns the id that it was given here, if any.
pub fn upsert(
    buffer: &mut DraftBuffer,
    record: &Bound<'_, PyAny>,
    depth: i64,
    face: Option<&str>,
    naming: Naming,
) -> PyResult<Option<String>> {
    let py = record.py();
    buffer.draft.make_room().map_err(|fault| to_python(py, fault))?;
    let class = record_class(py)?;
    // Nearly all are of that very class, which one comparison tells.
    let (fields, is_dict) = if record.get_type().is(class) {
        (from_object(record)?, false)
    } else if let Ok(dict) = record.cast::<PyDict>() {
        (from_dict(dict)?, true)
    } else if record.is_instance(class)? {
        (from_object(record)?, false)
    } else if let Ok(mapping) = record.cast::<PyMapping>() {
        let dict = PyDict::new(py);
        dict.update(mapping)?;
        (from_dict(&dict)?, true)
    } else {
        let reason = format!("must be a ChronoRecord or a dict, got {}", shown(record));
        return Err(invalid(py, "record", &reason));
    };
    // A dict that has one says so; a record always has one, and the empty one is none.
    let is_unnamed = match &fields[ID] {
        None => true,
        Some(id) => !is_dict && id.cast::<PyString>().is_ok_and(|id| id.is_empty().unwrap_or(false)),
    };
    let made = match naming {
        Naming::Random if is_unnamed && face.is_none() => Some(random_id(py)?),
        _ => None,
    };
    write(buffer, py, &fields, made.as_deref(), depth, face)?;
    Ok(made)
}

/// An id that nobody else has.
fn random_id(py: Python<'_>) -> PyResult<String> {
    let digits = random(py)?.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(digits)
}

/// Bytes that nobody can guess.
pub fn random(py: Python<'_>) -> PyResult<Vec<u8>> {
    static URANDOM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    URANDOM.import(py, "os", "urandom")?.call1((ID_BYTES,))?.extract()
}

/// Tells a record the id that it was given.
pub fn stamp_id(record: &Bound<'_, PyAny>, made: Option<&str>) -> PyResult<()> {
    let py = record.py();
    match made {
        Some(id) if record.is_instance(record_class(py)?)? => record.setattr(intern!(py, "id"), id),
        _ => Ok(()),
    }
}

/// Tells a record which depth it was written with.
pub fn stamp_depth(record: &Bound<'_, PyAny>, depth: i64) -> PyResult<()> {
    let py = record.py();
    let name = intern!(py, "recursion_depth");
    let class = record_class(py)?;
    let is_record = record.get_type().is(class) || record.is_instance(class)?;
    if is_record && record.getattr(name)?.extract::<i64>().ok() != Some(depth) {
        record.setattr(name, depth)?;
    }
    Ok(())
}

fn from_object<'py>(record: &Bound<'py, PyAny>) -> PyResult<Fields<'py>> {
    let mut fields = Fields::default();
    for (slot, name) in names(record.py()).into_iter().enumerate() {
        // The store gives the depth, whatever the record says.
        if slot != RECURSION_DEPTH {
            fields[slot] = Some(record.getattr(name)?);
        }
    }
    Ok(fields)
}

fn from_dict<'py>(dict: &Bound<'py, PyDict>) -> PyResult<Fields<'py>> {
    let py = dict.py();
    let names = names(py);
    let mut fields = Fields::default();
    for (key, value) in dict.iter() {
        let slot = match names.iter().position(|name| name.is(&key)) {
            Some(slot) => slot,
            None => slot_of(&key)?,
        };
        fields[slot] = Some(value);
    }
    Ok(fields)
}

fn slot_of(key: &Bound<'_, PyAny>) -> PyResult<usize> {
    let Ok(key) = key.cast::<PyString>() else {
        return Err(invalid(key.py(), "record", "the keys of a record are strings"));
    };
    let name = str_of(key, "record")?;
    RECORD_FIELDS
        .iter()
        .position(|field| *field == name)
        .ok_or_else(|| invalid(key.py(), name, "not a field of a record; put it under data"))
}

fn write(
    buffer: &mut DraftBuffer,
    py: Python<'_>,
    fields: &Fields<'_>,
    made: Option<&str>,
    depth: i64,
    face: Option<&str>,
) -> PyResult<()> {
    let fault = |error: Error| to_python(py, error);
    let DraftBuffer { draft, shapes, .. } = buffer;
    let mut writer = draft.upsert();
    writer.confidence(confidence(fields)?).map_err(fault)?;
    let data = writer.raw(RawField::Data);
    let start = data.len();
    write_dict(fields, DATA, shapes, data)?;
    writer.end_data(start).map_err(fault)?;
    write_list(
        fields,
        EPISTEMIC_BOUNDARY,
        shapes,
        writer.raw(RawField::EpistemicBoundary),
    )?;
    write_list(fields, EVIDENCE, shapes, writer.raw(RawField::Evidence))?;
    let id = made.map_or_else(|| text(fields, ID, ""), Ok)?;
    writer.id(id, face).map_err(fault)?;
    writer.is_hypothesis(is_hypothesis(fields)?);
    writer.kind(text(fields, KIND, defaults::KIND)?);
    writer.label(text(fields, LABEL, "")?);
    write_dict(
        fields,
        MODEL_ASSUMPTIONS,
        shapes,
        writer.raw(RawField::ModelAssumptions),
    )?;
    writer.recursion_depth(depth);
    writer.source_type(text(fields, SOURCE_TYPE, defaults::SOURCE_TYPE)?);
    writer.status(text(fields, STATUS, defaults::STATUS)?).map_err(fault)
}

fn wrong_type(value: &Bound<'_, PyAny>, slot: usize, wanted: &str) -> PyErr {
    let reason = format!("must be {wanted}, got {}", shown(value));
    invalid(value.py(), RECORD_FIELDS[slot], &reason)
}

fn text<'a>(fields: &'a Fields<'_>, slot: usize, default: &'static str) -> PyResult<&'a str> {
    match &fields[slot] {
        None => Ok(default),
        Some(value) => match value.cast_exact::<PyString>().or_else(|_| value.cast::<PyString>()) {
            Ok(text) => str_of(text, RECORD_FIELDS[slot]),
            Err(_) => Err(wrong_type(value, slot, "a string")),
        },
    }
}

fn confidence(fields: &Fields<'_>) -> PyResult<f64> {
    let Some(value) = &fields[CONFIDENCE] else {
        return Ok(defaults::CONFIDENCE);
    };
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value());
    }
    let plain = value::of_numpy(value)?;
    let value = plain.as_ref().unwrap_or(value);
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value());
    }
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(wrong_type(value, CONFIDENCE, "a number"));
    }
    // An integer too large for a float is no confidence either.
    Ok(value.extract::<f64>().unwrap_or(f64::INFINITY))
}

fn is_hypothesis(fields: &Fields<'_>) -> PyResult<bool> {
    match &fields[IS_HYPOTHESIS] {
        None => Ok(false),
        Some(value) => {
            if let Ok(truth) = value.cast::<PyBool>() {
                return Ok(truth.is_true());
            }
            let plain = value::of_numpy(value)?;
            match plain.as_ref().map(|plain| plain.cast::<PyBool>()) {
                Some(Ok(truth)) => Ok(truth.is_true()),
                _ => Err(wrong_type(value, IS_HYPOTHESIS, "True or False")),
            }
        }
    }
}

fn place(slot: usize) -> Field<'static> {
    Field {
        name: RECORD_FIELDS[slot],
        depth: FIELD_DEPTH,
    }
}

fn write_dict(fields: &Fields<'_>, slot: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    match &fields[slot] {
        None => out.extend_from_slice(b"{}"),
        Some(value) if value.is_exact_instance_of::<PyDict>() || value.is_instance_of::<PyDict>() => {
            return value::write(value, place(slot), shapes, out);
        }
        Some(value) => return Err(wrong_type(value, slot, "a dict")),
    }
    Ok(())
}

fn is_row(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>()
}

fn write_list(fields: &Fields<'_>, slot: usize, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    match &fields[slot] {
        None => out.extend_from_slice(b"[]"),
        Some(value) if value.is_exact_instance_of::<PyList>() || is_row(value) => {
            return value::write(value, place(slot), shapes, out);
        }
        Some(value) => return Err(wrong_type(value, slot, "a list")),
    }
    Ok(())
}
