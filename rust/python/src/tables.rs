//! Reads Arrow tables by columns: rows become lines of JSON and rows of embeddings, without a Python object for each.

use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::temporal_conversions::{as_date, as_datetime};
use arrow_array::types::{
    ArrowPrimitiveType, ArrowTimestampType, Date32Type, Date64Type, Float16Type, Float32Type, Float64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
};
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader, StringArray};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_json::writer::{Encoder, EncoderFactory, EncoderOptions, NullableEncoder, make_encoder};
use arrow_schema::{ArrowError, DataType, FieldRef, Schema, TimeUnit};
use chronomemory::{Attachment, Error, Ids, Result, write_f64, write_string};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use pyo3_arrow::PyRecordBatchReader;

use crate::boundary::{detached, to_python};

/// Lists of at least this many floats are taken for embeddings.
const MIN_EMBEDDING_LENGTH: usize = 32;

/// The most digits of a decimal that a float keeps. Longer decimals become text.
const FLOAT_DIGITS: u8 = 15;

/// Row, id, field and reason of a row that cannot be written.
type RefusedRow = (usize, Option<String>, String, String);

/// A stream of record batches, and how its columns become records.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct TableReader(Mutex<Source>);

struct Source {
    reader: Box<dyn RecordBatchReader + Send>,
    plan: Plan,
    /// The rows of the last batch that no part has yet.
    batch: Option<RecordBatch>,
    /// How many rows the parts had so far.
    rows: usize,
}

#[pymethods]
impl TableReader {
    #[new]
    fn new(
        py: Python<'_>,
        source: PyRecordBatchReader,
        fields: Option<Vec<(String, String)>>,
        vector: Option<String>,
    ) -> PyResult<Self> {
        let reader = source.into_reader()?;
        let plan = Plan::of(&reader.schema(), fields, vector).map_err(|fault| to_python(py, fault))?;
        Ok(TableReader(Mutex::new(Source {
            reader,
            plan,
            batch: None,
            rows: 0,
        })))
    }

    /// The next rows, at most so many; None at the end.
    fn next(&self, py: Python<'_>, most: usize) -> PyResult<Option<TablePart>> {
        detached(py, || {
            let mut source = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            source.next(most)
        })
    }
}

impl Source {
    fn next(&mut self, most: usize) -> Result<Option<TablePart>> {
        let batch = loop {
            match self.batch.take() {
                Some(batch) if batch.num_rows() > 0 => break batch,
                _ => match self.reader.next() {
                    None => return Ok(None),
                    Some(batch) => {
                        let batch = batch.map_err(|fault| refused("source", fault.to_string()))?;
                        self.plan.check(&batch)?;
                        self.batch = Some(batch);
                    }
                },
            }
        };
        let count = batch.num_rows().min(most);
        let part = TablePart::of(&batch.slice(0, count), &self.plan, self.rows)?;
        self.rows += count;
        self.batch = Some(batch.slice(count, batch.num_rows() - count));
        Ok(Some(part))
    }
}

/// Some rows of a table as lines, and the embeddings of some of them.
#[pyclass(frozen, module = "chronomemory._core")]
pub struct TablePart {
    text: Vec<u8>,
    #[pyo3(get)]
    first_row: usize,
    #[pyo3(get)]
    rows: usize,
    #[pyo3(get)]
    refusals: Vec<RefusedRow>,
    ids: Vec<(usize, String)>,
    floats: Vec<f32>,
    dim: usize,
}

#[pymethods]
impl TablePart {
    #[getter]
    fn text<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.text)
    }
}

impl TablePart {
    fn of(batch: &RecordBatch, plan: &Plan, first_row: usize) -> Result<Self> {
        let faults = Faults::default();
        let options = EncoderOptions::default().with_encoder_factory(Arc::new(Encoders(faults.clone())));
        let mut record = plan.record.writer(batch, &options)?;
        let ids = plan.id.as_ref().map(|id| id.texts(batch)).transpose()?;
        let vectors = plan.vector.map(|column| Vectors::of(batch, column)).transpose()?;
        let mut part = TablePart {
            text: Vec::new(),
            first_row,
            rows: batch.num_rows(),
            refusals: Vec::new(),
            ids: Vec::new(),
            floats: Vec::new(),
            dim: 0,
        };
        for row in 0..batch.num_rows() {
            let begin = part.text.len();
            let id = ids.as_ref().map(|ids| ids.is_valid(row).then(|| ids.value(row)));
            record.write(row, &mut part.text);
            let mut fault = faults.take();
            if id == Some(None) {
                fault = Some(("id".to_owned(), "the row has no id".to_owned()));
            }
            if let (None, Some(vectors)) = (&fault, &vectors) {
                fault = part.take_vector(vectors, row, id.flatten()).err();
            }
            if let Some((field, reason)) = fault {
                part.text.truncate(begin);
                let id = id.flatten().map(str::to_owned);
                part.refusals.push((first_row + row, id, field, reason));
            }
            // A refused row leaves an empty line, so that lines count rows.
            part.text.push(b'\n');
        }
        Ok(part)
    }

    fn take_vector(
        &mut self,
        vectors: &Vectors,
        row: usize,
        id: Option<&str>,
    ) -> std::result::Result<(), (String, String)> {
        let Some(numbers) = vectors.row(row) else {
            return Ok(());
        };
        let wrong = |reason: String| Err(("vector".to_owned(), reason));
        let numbers = match numbers {
            Ok(numbers) if numbers.iter().all(|number| number.is_finite()) => numbers,
            _ => return wrong("the vector has a null, NaN or infinite number".to_owned()),
        };
        if self.dim == 0 {
            self.dim = numbers.len();
        }
        if numbers.is_empty() || numbers.len() != self.dim {
            return wrong(format!(
                "the vector has {} numbers, expected {}",
                numbers.len(),
                self.dim
            ));
        }
        self.floats.extend_from_slice(numbers);
        self.ids.push((self.first_row + row, id.unwrap_or_default().to_owned()));
        Ok(())
    }

    /// Runs work on the embeddings of all rows but some; `None` if there are none.
    pub fn attach<T>(
        &self,
        without: &[usize],
        (space, model): (Option<&str>, Option<&str>),
        work: impl FnOnce(&Attachment<'_>) -> T,
    ) -> Option<T> {
        let mut ids = Ids::with_capacity(self.ids.len());
        let mut kept = Vec::new();
        for (place, (row, id)) in self.ids.iter().enumerate() {
            if !without.contains(row) {
                ids.push(id);
                if !without.is_empty() {
                    kept.extend_from_slice(&self.floats[place * self.dim..][..self.dim]);
                }
            }
        }
        let rows = if without.is_empty() { &self.floats } else { &kept };
        let attachment = Attachment {
            space,
            model,
            dim: self.dim,
            tokens: 0,
            ids: &ids,
            rows,
        };
        (!rows.is_empty()).then(|| work(&attachment))
    }
}

fn refused(field: &str, reason: impl Into<String>) -> Error {
    Error::Argument {
        field: field.to_owned(),
        reason: reason.into(),
    }
}

/// What the columns of a table become.
struct Plan {
    record: Node,
    id: Option<Place>,
    vector: Option<usize>,
    /// Columns that no field names; they may hold no embeddings.
    unnamed: Vec<usize>,
}

/// A column, or a field of a column of structs.
#[derive(Clone)]
struct Place(Vec<usize>);

enum Node {
    Column(Place),
    /// Keys as JSON with their colons.
    Object(Vec<(String, Node)>),
}

impl Plan {
    fn of(schema: &Schema, fields: Option<Vec<(String, String)>>, vector: Option<String>) -> Result<Self> {
        let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
        if let Some(twice) = (1..names.len()).find(|&at| names[..at].contains(&names[at])) {
            return Err(refused("source", format!("two columns are named {:?}", names[twice])));
        }
        let missing = |field: &str, name: &str| {
            let known = names.join(", ");
            refused(field, format!("the table has no column {name:?}; it has {known}"))
        };
        let vector = match &vector {
            Some(name) => Some(
                names
                    .iter()
                    .position(|known| known == name)
                    .ok_or_else(|| missing("vector", name))?,
            ),
            None => None,
        };
        let is_vector = |name: &str| vector.is_some_and(|column| names[column] == name);
        let rest = |named: &[(String, String)], prefix: &str| -> Vec<(String, String)> {
            let is_free = |name: &&&str| !is_vector(name) && !named.iter().any(|(_, source)| source == **name);
            let free = names.iter().filter(is_free);
            free.map(|name| (format!("{prefix}{name}"), (*name).to_owned()))
                .collect()
        };
        let mut root = Node::Object(Vec::new());
        let mut unnamed = Vec::new();
        let mut add = |path: &[&str], source: &str| {
            let place = place_of(schema, source).ok_or_else(|| missing("fields", source))?;
            root.insert(path, Node::Column(place))
        };
        match &fields {
            None => {
                for (target, source) in rest(&[], "") {
                    add(&[&target], &source)?;
                    unnamed.extend(schema.index_of(&source));
                }
            }
            Some(fields) => {
                if fields.iter().any(|(_, source)| source == "*") {
                    for (_, source) in rest(fields, "") {
                        add(&["data", &source], &source)?;
                        unnamed.extend(schema.index_of(&source));
                    }
                }
                for (target, source) in fields.iter().filter(|(_, source)| source != "*") {
                    add(&target.split('.').collect::<Vec<_>>(), source)?;
                }
            }
        }
        root.sort();
        let Node::Object(fields) = &root else {
            return Err(refused("fields", "there are none"));
        };
        let id = fields.iter().find_map(|(key, node)| match node {
            Node::Column(place) if key == "\"id\":" => Some(place.clone()),
            _ => None,
        });
        if vector.is_some() && id.is_none() {
            return Err(refused(
                "fields",
                "vectors belong to records: name the column of their ids, fields={\"id\": …}",
            ));
        }
        Ok(Plan {
            record: root,
            id,
            vector,
            unnamed,
        })
    }

    /// Refuses a batch with invalid contents, which other libraries hand over unchecked, and embeddings that no argument names.
    fn check(&self, batch: &RecordBatch) -> Result<()> {
        let schema = batch.schema();
        for (column, array) in batch.columns().iter().enumerate() {
            let name = schema.field(column).name();
            let checked = array.to_data().validate_full();
            checked.map_err(|fault| refused("source", format!("column {name:?}: {fault}")))?;
            let length = embedding_length(array);
            if self.unnamed.contains(&column) && length >= MIN_EMBEDDING_LENGTH {
                let reason = format!(
                    "column {name:?} holds lists of {length} numbers: attach them with vector={name:?}, or name the \
                     column in fields to keep the lists as data"
                );
                return Err(refused("vector", reason));
            }
        }
        Ok(())
    }
}

/// The place that a name or a path of names leads to.
fn place_of(schema: &Schema, source: &str) -> Option<Place> {
    if let Ok(column) = schema.index_of(source) {
        return Some(Place(vec![column]));
    }
    let (mut places, mut fields) = (Vec::new(), Some(schema.fields()));
    for name in source.split('.') {
        let (column, field) = fields?.find(name)?;
        places.push(column);
        fields = match field.data_type() {
            DataType::Struct(inner) => Some(inner),
            _ => None,
        };
    }
    Some(Place(places))
}

/// How long the first list of floats of a column is; 0 for other columns.
fn embedding_length(array: &ArrayRef) -> usize {
    let is_float = |field: &FieldRef| field.data_type().is_floating();
    match array.data_type() {
        DataType::FixedSizeList(field, length) if is_float(field) => *length as usize,
        DataType::List(field) if is_float(field) => {
            let lists = array.as_list::<i32>();
            (0..lists.len())
                .find(|&row| lists.is_valid(row))
                .map_or(0, |row| lists.value_length(row) as usize)
        }
        DataType::LargeList(field) if is_float(field) => {
            let lists = array.as_list::<i64>();
            (0..lists.len())
                .find(|&row| lists.is_valid(row))
                .map_or(0, |row| lists.value_length(row) as usize)
        }
        _ => 0,
    }
}

impl Node {
    fn insert(&mut self, path: &[&str], node: Node) -> Result<()> {
        let Some((first, rest)) = path.split_first() else {
            *self = node;
            return Ok(());
        };
        let Node::Object(fields) = self else {
            return Err(refused(
                "fields",
                format!("{first:?} lies inside a field that is a column itself"),
            ));
        };
        let mut key = Vec::new();
        write_string(first, &mut key);
        key.push(b':');
        let key = String::from_utf8(key).unwrap_or_default();
        let at = fields.iter().position(|(known, _)| *known == key).unwrap_or_else(|| {
            fields.push((key, Node::Object(Vec::new())));
            fields.len() - 1
        });
        fields[at].1.insert(rest, node)
    }

    /// Sorts the keys, because the engine reads sorted keys faster.
    fn sort(&mut self) {
        if let Node::Object(fields) = self {
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            fields.iter_mut().for_each(|(_, node)| node.sort());
        }
    }

    fn writer<'a>(&'a self, batch: &'a RecordBatch, options: &'a EncoderOptions) -> Result<Writer<'a>> {
        Ok(match self {
            Node::Column(place) => {
                let (field, array, parents) = place.array(batch);
                let encoder = make_encoder(field, array, options);
                let encoder = encoder.map_err(|fault| {
                    refused(
                        "source",
                        format!("column {:?}: {fault}; leave it out with fields", field.name()),
                    )
                })?;
                Writer::Value { encoder, parents }
            }
            Node::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, node)| Ok((key.as_str(), node.writer(batch, options)?)));
                Writer::Object(fields.collect::<Result<_>>()?)
            }
        })
    }
}

impl Place {
    /// The field and values, and which structs around them are null.
    fn array<'a>(&self, batch: &'a RecordBatch) -> (&'a FieldRef, &'a dyn Array, Vec<NullBuffer>) {
        let column = self.0[0];
        let mut field = &batch.schema_ref().fields()[column];
        let mut array: &dyn Array = batch.column(column);
        let mut parents = Vec::new();
        for &child in &self.0[1..] {
            let inner = array.as_struct();
            parents.extend(inner.nulls().cloned());
            field = &inner.fields()[child];
            array = inner.column(child);
        }
        (field, array, parents)
    }

    fn texts(&self, batch: &RecordBatch) -> Result<StringArray> {
        let (field, array, parents) = self.array(batch);
        let is_text = |kind: &DataType| kind.is_string() || *kind == DataType::Null;
        let is_id = match array.data_type() {
            DataType::Dictionary(_, values) => is_text(values),
            kind => is_text(kind),
        };
        if !is_id || !parents.is_empty() {
            let reason = format!("ids must be text, column {:?} is {}", field.name(), array.data_type());
            return Err(refused("id", reason));
        }
        let texts = cast(array, &DataType::Utf8).map_err(|fault| refused("id", fault.to_string()))?;
        Ok(texts.as_string().clone())
    }
}

/// Writes the values of a row as JSON.
enum Writer<'a> {
    Value {
        encoder: NullableEncoder<'a>,
        parents: Vec<NullBuffer>,
    },
    Object(Vec<(&'a str, Writer<'a>)>),
}

impl Writer<'_> {
    /// Returns whether there was a value; a null is left out.
    fn write(&mut self, row: usize, out: &mut Vec<u8>) -> bool {
        match self {
            Writer::Value { encoder, parents } => {
                let is_null = encoder.is_null(row) || parents.iter().any(|nulls| nulls.is_null(row));
                if !is_null {
                    encoder.encode(row, out);
                }
                !is_null
            }
            Writer::Object(fields) => {
                out.push(b'{');
                for (key, field) in fields {
                    let begin = out.len();
                    if out.last() != Some(&b'{') {
                        out.push(b',');
                    }
                    out.extend_from_slice(key.as_bytes());
                    if !field.write(row, out) {
                        out.truncate(begin);
                    }
                }
                out.push(b'}');
                true
            }
        }
    }
}

/// Lists of numbers as float32.
struct Vectors {
    lists: ArrayRef,
    values: ArrayRef,
}

impl Vectors {
    fn of(batch: &RecordBatch, column: usize) -> Result<Self> {
        let lists = batch.column(column);
        let values = match lists.data_type() {
            DataType::FixedSizeList(..) => lists.as_fixed_size_list().values(),
            DataType::List(_) => lists.as_list::<i32>().values(),
            DataType::LargeList(_) => lists.as_list::<i64>().values(),
            // A column without any value.
            DataType::Null => lists,
            other => {
                return Err(refused(
                    "vector",
                    format!("must be a column of lists of numbers, got {other}"),
                ));
            }
        };
        if !values.data_type().is_numeric() && *values.data_type() != DataType::Null {
            let reason = format!(
                "must be a column of lists of numbers, got lists of {}",
                values.data_type()
            );
            return Err(refused("vector", reason));
        }
        let values = cast(values, &DataType::Float32).map_err(|fault| refused("vector", fault.to_string()))?;
        Ok(Vectors {
            lists: Arc::clone(lists),
            values,
        })
    }

    /// The numbers of a row, or an error if one of them is null; `None` without a vector.
    fn row(&self, row: usize) -> Option<std::result::Result<&[f32], ()>> {
        let (begin, length) = match self.lists.data_type() {
            DataType::FixedSizeList(_, length) => {
                let lists = self.lists.as_fixed_size_list();
                (lists.value_offset(row) as usize, *length as usize)
            }
            DataType::List(_) => {
                let lists = self.lists.as_list::<i32>();
                (lists.value_offsets()[row] as usize, lists.value_length(row) as usize)
            }
            DataType::LargeList(_) => {
                let lists = self.lists.as_list::<i64>();
                (lists.value_offsets()[row] as usize, lists.value_length(row) as usize)
            }
            _ => return None,
        };
        if self.lists.is_null(row) {
            return None;
        }
        let values = self.values.as_primitive::<Float32Type>();
        let has_null = values.null_count() > 0 && (begin..begin + length).any(|at| values.is_null(at));
        Some(if has_null {
            Err(())
        } else {
            Ok(&values.values()[begin..begin + length])
        })
    }
}

/// What is wrong with the row that is being written: the field and the reason.
#[derive(Clone, Debug, Default)]
struct Faults(Arc<Mutex<Option<(String, String)>>>);

impl Faults {
    fn take(&self) -> Option<(String, String)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn set(&self, column: &str, reason: &str) {
        let fault = Some(("record".to_owned(), format!("column {column:?}: {reason}")));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fault;
    }
}

/// Encoders for values that JSON has no form for, or that need another one than Arrow's.
#[derive(Debug)]
struct Encoders(Faults);

impl EncoderFactory for Encoders {
    fn make_default_encoder<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        _options: &'a EncoderOptions,
    ) -> std::result::Result<Option<NullableEncoder<'a>>, ArrowError> {
        let made = match array.data_type() {
            DataType::Float16 => self.floats::<Float16Type>(field, array, f64::from),
            DataType::Float32 => self.floats::<Float32Type>(field, array, f64::from),
            DataType::Float64 => self.floats::<Float64Type>(field, array, |value| value),
            DataType::Timestamp(TimeUnit::Second, _) => self.times::<TimestampSecondType>(field, array),
            DataType::Timestamp(TimeUnit::Millisecond, _) => self.times::<TimestampMillisecondType>(field, array),
            DataType::Timestamp(TimeUnit::Microsecond, _) => self.times::<TimestampMicrosecondType>(field, array),
            DataType::Timestamp(TimeUnit::Nanosecond, _) => self.times::<TimestampNanosecondType>(field, array),
            DataType::Date32 => self.dates::<Date32Type>(field, array),
            DataType::Date64 => self.dates::<Date64Type>(field, array),
            DataType::Decimal32(digits, _)
            | DataType::Decimal64(digits, _)
            | DataType::Decimal128(digits, _)
            | DataType::Decimal256(digits, _)
                if *digits > FLOAT_DIGITS =>
            {
                let texts = cast(array, &DataType::Utf8)?;
                self.texts(field, array, move |row| {
                    Some(texts.as_string::<i32>().value(row).to_owned())
                })
            }
            kind if kind.is_binary() || matches!(kind, DataType::Dictionary(_, values) if values.is_binary()) => {
                return Err(ArrowError::InvalidArgumentError(
                    "JSON has no form for bytes".to_owned(),
                ));
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }
}

impl Encoders {
    /// Numbers as they are, NaN as null; infinite ones are refused.
    fn floats<'a, T: ArrowPrimitiveType>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        wide: fn(T::Native) -> f64,
    ) -> NullableEncoder<'a> {
        let values = array.as_primitive::<T>();
        let numbers: NullBuffer = values.values().iter().map(|&value| !wide(value).is_nan()).collect();
        let nulls = NullBuffer::union(Some(&numbers), values.nulls());
        let faults = self.0.clone();
        let encode = move |row: usize, out: &mut Vec<u8>| match wide(values.value(row)) {
            number if number.is_finite() => write_f64(number, out),
            _ => faults.set(field.name(), "the number is infinite, which JSON cannot represent"),
        };
        NullableEncoder::new(Box::new(Encode(encode)), nulls)
    }

    /// Moments as text in UTC; those without a zone count as UTC.
    fn times<'a, T: ArrowTimestampType>(&self, field: &'a FieldRef, array: &'a dyn Array) -> NullableEncoder<'a> {
        let values = array.as_primitive::<T>();
        self.texts(field, array, |row| {
            as_datetime::<T>(values.value(row)).map(|moment| format!("{moment:?}Z"))
        })
    }

    fn dates<'a, T: ArrowPrimitiveType>(&self, field: &'a FieldRef, array: &'a dyn Array) -> NullableEncoder<'a>
    where
        i64: From<T::Native>,
    {
        let values = array.as_primitive::<T>();
        self.texts(field, array, |row| {
            as_date::<T>(values.value(row).into()).map(|date| date.to_string())
        })
    }

    fn texts<'a>(
        &self,
        field: &'a FieldRef,
        array: &'a dyn Array,
        text: impl Fn(usize) -> Option<String> + 'a,
    ) -> NullableEncoder<'a> {
        let faults = self.0.clone();
        let encode = move |row: usize, out: &mut Vec<u8>| match text(row) {
            Some(text) => write_string(&text, out),
            None => faults.set(field.name(), "the time lies outside of what a calendar can represent"),
        };
        NullableEncoder::new(Box::new(Encode(encode)), array.nulls().cloned())
    }
}

/// A function as an encoder.
struct Encode<F>(F);

impl<F: FnMut(usize, &mut Vec<u8>)> Encoder for Encode<F> {
    fn encode(&mut self, row: usize, out: &mut Vec<u8>) {
        (self.0)(row, out);
    }
}
