//! Adds records and other changes of Python to a draft of the engine.

use chronomemory::{Draft, Error, FIELD_DEPTH, RECORD_FIELDS, defaults, parse_json, write_i64};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple, PyType};

use crate::boundary::{bad_choice, invalid, must, shown, to_python};
use crate::json::{self, Shapes, argument_text, of_numpy, text_of};
use crate::{Dict, Object};

/// Half as many bytes as a random id has digits.
const ID_BYTES: usize = 16;

/// Positions of two fields in canonical order.
const ID: usize = 4;
const RECURSION_DEPTH: usize = 9;

/// The memory for one draft, which the next one reuses.
#[derive(Default)]
pub struct DraftBuffer {
    pub draft: Draft,
    /// The recursion depth of the store, which its records get.
    pub depth: i64,
    shapes: Shapes,
}

/// A field of a record; `None` if it is missing.
type Field<'py> = Option<Object<'py>>;

/// The fields of a record in canonical order.
type Fields<'py> = [Field<'py>; RECORD_FIELDS.len()];

/// The public class of records.
pub fn record_class(py: Python<'_>) -> PyResult<&Bound<'_, PyType>> {
    static CLASS: PyOnceLock<Py<PyType>> = PyOnceLock::new();
    CLASS.import(py, "chronomemory.record", "ChronoRecord")
}

/// The names of the fields as interned strings: most keys of dicts are the same objects.
pub fn names(py: Python<'_>) -> &'static [Py<PyString>; RECORD_FIELDS.len()] {
    static NAMES: PyOnceLock<[Py<PyString>; RECORD_FIELDS.len()]> = PyOnceLock::new();
    NAMES.get_or_init(py, || RECORD_FIELDS.map(|name| PyString::intern(py, name).unbind()))
}

impl DraftBuffer {
    /// Adds a record. With `assigns_id` one without an id gets a random id, which is
    /// returned.
    pub fn upsert(&mut self, record: &Object<'_>, face: Option<&str>, assigns_id: bool) -> PyResult<Option<String>> {
        let py = record.py();
        self.draft.make_room().map_err(|fault| to_python(py, fault))?;
        let class = record_class(py)?;
        // Nearly all records are of exactly this class, which takes one comparison.
        let (fields, is_dict) = if let Ok(dict) = record.cast::<PyDict>() {
            (from_dict(dict)?, true)
        } else if record.get_type().is(class) || record.is_instance(class)? {
            (from_object(record)?, false)
        } else if let Ok(mapping) = record.cast::<PyMapping>() {
            let dict = PyDict::new(py);
            dict.update(mapping)?;
            (from_dict(&dict)?, true)
        } else {
            let reason = format!("must be a ChronoRecord or a dict, got {}", shown(record));
            return Err(invalid(py, "record", &reason));
        };
        // A dict without an id lacks the key; a ChronoRecord without one has an empty id.
        let is_unnamed = match &fields[ID] {
            None => true,
            Some(id) => !is_dict && id.cast::<PyString>().is_ok_and(|id| id.is_empty().unwrap_or(false)),
        };
        let made = match assigns_id && is_unnamed && face.is_none() {
            true => Some(random(py)?.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
            false => None,
        };
        self.write(py, &fields, made.as_deref(), face)?;
        Ok(made)
    }

    /// Writes the fields in canonical order.
    fn write(&mut self, py: Python<'_>, fields: &Fields<'_>, made: Option<&str>, face: Option<&str>) -> PyResult<()> {
        let fault = |error: Error| to_python(py, error);
        let Self { draft, shapes, depth } = self;
        let mut writer = draft.upsert();
        writer.confidence(confidence_of(&fields[0])?).map_err(fault)?;
        let out = writer.field();
        let start = out.len();
        container(&fields[1], "data", true, shapes, out)?;
        writer.end_data(start).map_err(fault)?;
        container(&fields[2], "epistemic_boundary", false, shapes, writer.field())?;
        container(&fields[3], "evidence", false, shapes, writer.field())?;
        let id = made.map_or_else(|| text(&fields[ID], "id", ""), Ok)?;
        writer.id(id, face).map_err(fault)?;
        writer.is_hypothesis(truth(&fields[5], "is_hypothesis")?);
        writer.kind(text(&fields[6], "kind", defaults::KIND)?);
        writer.text(text(&fields[7], "label", "")?);
        container(&fields[8], "model_assumptions", true, shapes, writer.field())?;
        write_i64(*depth, writer.field());
        writer.text(text(&fields[10], "source_type", defaults::SOURCE_TYPE)?);
        let status = text(&fields[11], "status", defaults::STATUS)?;
        writer.status(status).map_err(fault)
    }

    /// Adds one entry of a mixed batch.
    pub fn change(&mut self, verb: &str, what: &Object<'_>, face: Option<&str>) -> PyResult<()> {
        let py = what.py();
        let done = match verb {
            "upsert" => return self.upsert(what, face, false).map(|_| ()),
            "delete" => self.draft.delete(written_id(&record_id(what)?)?, face),
            "patch" => {
                let (id, patch): (Object<'_>, Dict<'_>) = what.extract()?;
                let text = self.inside_event(&patch, "patch")?;
                let face = face.unwrap_or_default();
                self.draft.patch(written_id(&record_id(&id)?)?, face, &text)
            }
            "act" => {
                let text = self.inside_event(what.cast()?, "act")?;
                let payload = parse_json(&text).map_err(|fault| invalid(py, "act", &fault.to_string()))?;
                self.draft.act(face.unwrap_or_default(), &payload, self.depth)
            }
            other => return Err(bad_choice(py, "verb", other, "one of upsert, delete, patch, act")),
        };
        done.map_err(|fault| to_python(py, fault))
    }

    /// The JSON of a dict that takes the place of a record in its event.
    fn inside_event(&mut self, dict: &Dict<'_>, name: &str) -> PyResult<Vec<u8>> {
        let mut text = Vec::new();
        json::write(dict, (name, 1), &mut self.shapes, &mut text)?;
        Ok(text)
    }
}

/// Sixteen random bytes.
pub fn random(py: Python<'_>) -> PyResult<Vec<u8>> {
    static URANDOM: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    URANDOM.import(py, "os", "urandom")?.call1((ID_BYTES,))?.extract()
}

/// Sets the id and the recursion depth that a `ChronoRecord` was written with.
pub fn stamp(record: &Object<'_>, id: Option<&str>, depth: Option<i64>) -> PyResult<()> {
    let py = record.py();
    let (class, name) = (record_class(py)?, intern!(py, "recursion_depth"));
    if !record.get_type().is(class) && !record.is_instance(class)? {
        return Ok(());
    }
    if let Some(id) = id {
        record.setattr(intern!(py, "id"), id)?;
    }
    match depth {
        Some(depth) if record.getattr(name)?.extract::<i64>().ok() != Some(depth) => record.setattr(name, depth),
        _ => Ok(()),
    }
}

fn from_object<'py>(record: &Object<'py>) -> PyResult<Fields<'py>> {
    let py = record.py();
    let mut fields = Fields::default();
    for (slot, name) in names(py).iter().enumerate() {
        // The store gives the depth, whatever the record says.
        if slot != RECURSION_DEPTH {
            fields[slot] = Some(record.getattr(name.bind(py))?);
        }
    }
    Ok(fields)
}

fn from_dict<'py>(dict: &Dict<'py>) -> PyResult<Fields<'py>> {
    let names = names(dict.py());
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

fn slot_of(key: &Object<'_>) -> PyResult<usize> {
    let Ok(key) = key.cast::<PyString>() else {
        return Err(invalid(key.py(), "record", "the keys of a record are strings"));
    };
    let name = text_of(key, "record")?;
    let slot = RECORD_FIELDS.iter().position(|field| *field == name);
    slot.ok_or_else(|| invalid(key.py(), name, "not a field of a record; put it under data"))
}

fn wrong_type(value: &Object<'_>, name: &str, wanted: &str) -> PyErr {
    invalid(value.py(), name, &format!("must be {wanted}, got {}", shown(value)))
}

fn text<'a>(value: &'a Field<'_>, name: &str, default: &'static str) -> PyResult<&'a str> {
    let Some(value) = value else { return Ok(default) };
    match value.cast_exact::<PyString>().or_else(|_| value.cast::<PyString>()) {
        Ok(text) => text_of(text, name),
        Err(_) => Err(wrong_type(value, name, "a string")),
    }
}

fn confidence_of(value: &Field<'_>) -> PyResult<f64> {
    let Some(value) = value else {
        return Ok(defaults::CONFIDENCE);
    };
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value());
    }
    let plain = of_numpy(value)?;
    let value = plain.as_ref().unwrap_or(value);
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(number.value());
    }
    if !value.is_instance_of::<PyInt>() || value.is_instance_of::<PyBool>() {
        return Err(wrong_type(value, "confidence", "a number"));
    }
    // An integer too large for a float is no confidence either.
    Ok(value.extract::<f64>().unwrap_or(f64::INFINITY))
}

fn truth(value: &Field<'_>, name: &str) -> PyResult<bool> {
    let Some(value) = value else { return Ok(false) };
    if let Ok(truth) = value.cast::<PyBool>() {
        return Ok(truth.is_true());
    }
    match of_numpy(value)?.as_ref().map(|plain| plain.cast::<PyBool>()) {
        Some(Ok(truth)) => Ok(truth.is_true()),
        _ => Err(wrong_type(value, name, "True or False")),
    }
}

/// Writes a dict or a list.
fn container(value: &Field<'_>, name: &str, is_dict: bool, shapes: &mut Shapes, out: &mut Vec<u8>) -> PyResult<()> {
    let Some(value) = value else {
        out.extend_from_slice(if is_dict { b"{}" } else { b"[]" });
        return Ok(());
    };
    let fits = match is_dict {
        true => value.is_instance_of::<PyDict>(),
        false => value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>(),
    };
    if !fits {
        return Err(wrong_type(value, name, if is_dict { "a dict" } else { "a list" }));
    }
    json::write(value, (name, FIELD_DEPTH), shapes, out)
}

/// The text of an id that an event is to name: no record has an empty id.
fn written_id<'a>(id: &'a Bound<'_, PyString>) -> PyResult<&'a str> {
    match argument_text(id, "id")? {
        "" => Err(must("id", "not be empty", id)),
        text => Ok(text),
    }
}

/// An id, if it is a string.
pub fn record_id<'py>(id: &Object<'py>) -> PyResult<Bound<'py, PyString>> {
    match id.cast::<PyString>() {
        Ok(id) => Ok(id.clone()),
        Err(_) => Err(must("id", "be a string", id)),
    }
}
