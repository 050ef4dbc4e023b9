//! A draft: the changes that a caller wants, as canonical bytes, before the log gives them a place.
//!
//! They are checked and complete, and get a seq, a moment and a hash from the log. Python objects and JSON go through
//! the same [`RecordWriter`].

use std::ops::Range;
use std::sync::Arc;

use super::draft_value::RECORD_FIELDS;
use super::expiry::check_expiry;
use super::faces::{act_id, face_of, is_of_acts};
use super::{IncomingEvents, Op};
use crate::error::{Error, Result};
use crate::json::{self, RecordSpans, Span, Value};
use crate::memory::{self, Refused};
use crate::scope::{SeenAs, Viewer, check, given, stamp};

/// A draft keeps at most this much memory from one commit to the next.
pub const SPARE_BYTES: usize = 8 * 1024 * 1024;

/// What the rest of a line may need beside record and id.
const ENVELOPE_BYTES: usize = 512;
/// So much is free in a large draft before the next change begins.
const AHEAD_BYTES: usize = 1024 * 1024;
/// How many containers are open around a field of a record: the event and the record.
pub const FIELD_DEPTH: usize = 2;

/// One change of one record.
#[derive(Clone, Debug)]
pub struct RecordChange {
    /// What it does.
    pub op: Op,
    /// Where the fields lie in the record.
    pub fields: RecordSpans,
    /// Whether the record is known to have no scope and no expiry.
    pub is_plain: bool,
    id: Range<usize>,
    record: Range<usize>,
}

/// Changes that become one commit.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    text: Vec<u8>,
    changes: Vec<RecordChange>,
    /// Who writes the changes, and on what terms: the records are stamped with that scope.
    pub author: Author,
}

impl Draft {
    /// Empties the draft for the next change; its memory is kept, unless it is large.
    pub fn recycle(&mut self) {
        if self.room() > SPARE_BYTES {
            *self = Self::default();
        }
        self.clear();
    }

    /// The changes, in order.
    pub fn changes(&self) -> &[RecordChange] {
        &self.changes
    }

    /// How much memory it keeps.
    pub fn room(&self) -> usize {
        self.text.capacity()
    }

    /// Forgets everything, to be filled anew.
    pub fn clear(&mut self) {
        self.text.clear();
        self.changes.clear();
    }

    /// Leaves out the changes that are refused.
    pub fn retain(&mut self, mut is_kept: impl FnMut(usize) -> bool) {
        let mut place = 0;
        self.changes.retain(|_| {
            place += 1;
            is_kept(place - 1)
        });
    }

    /// Whether nothing is to be said.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Whether any change is a patch.
    pub fn has_patches(&self) -> bool {
        self.changes.iter().any(|change| change.op == Op::Patch)
    }

    /// The memory that its changes need, to be written and applied.
    pub fn coming(&self) -> IncomingEvents {
        IncomingEvents::of(self.changes.iter().map(|change| {
            let (id, record) = (self.id(change), self.record(change));
            (id.len() + record.len(), Some((change.op, id, record)))
        }))
    }

    /// Asks for memory for the next change. A draft that is still small needs none that could not be had.
    #[inline]
    pub fn make_room(&mut self) -> Result<()> {
        memory::check()?;
        if self.text.len() > AHEAD_BYTES && self.text.capacity() - self.text.len() < AHEAD_BYTES {
            self.text.try_reserve(self.text.len()).map_err(Refused::from)?;
        }
        Ok(self.changes.try_reserve(1).map_err(Refused::from)?)
    }

    /// A change's id as it stands between quotes in canonical JSON.
    pub fn id(&self, change: &RecordChange) -> &[u8] {
        &self.text[change.id.clone()]
    }

    /// A change's canonical record.
    pub fn record(&self, change: &RecordChange) -> &[u8] {
        &self.text[change.record.clone()]
    }

    /// Begins a whole record; its fields follow in canonical order.
    pub fn upsert(&mut self) -> RecordWriter<'_> {
        let start = self.text.len();
        RecordWriter {
            draft: self,
            start,
            written: 0,
            fields: RecordSpans::default(),
            is_shared: false,
        }
    }

    /// Makes a record a tombstone. Errors: `Invalid` for an id that may not be written here.
    pub fn delete(&mut self, id: &str, face: Option<&str>) -> Result<()> {
        check_id(id, face)?;
        let start = self.text.len();
        self.text.extend_from_slice(b"{\"id\":");
        let id = self.write_id(id);
        self.text.extend_from_slice(b",\"status\":\"tombstone\"}");
        self.push(Op::Delete, id, start, RecordSpans::default(), false)
    }

    /// Patches a face's record with an RFC 7396 merge patch. Errors: `Invalid` for an id that may not be written here.
    pub fn patch(&mut self, id: &str, face: &str, patch: &[u8]) -> Result<()> {
        check_id(id, Some(face))?;
        let id = self.write_id(id);
        let start = self.text.len();
        self.text.extend_from_slice(patch);
        self.push(Op::Patch, id, start, RecordSpans::default(), false)
    }

    fn write_id(&mut self, id: &str) -> Range<usize> {
        let start = self.text.len();
        json::write_string(id, &mut self.text);
        start + 1..self.text.len() - 1
    }

    /// Writes an act of a face; records that it creates have this depth. Errors: `Invalid` without acts, or for no object.
    pub fn act(&mut self, face: &str, payload: &Value, depth: i64) -> Result<()> {
        let Some(id) = act_id(face) else {
            return Err(Error::invalid("act", format!("the face {face:?} has no acts")));
        };
        let mut payload = payload.clone();
        if payload.as_object().is_none() {
            return Err(Error::invalid("act", "not an object"));
        }
        if depth != 0 {
            payload.set("depth", Value::from(depth));
        }
        let record = payload.to_bytes();
        self.put(Op::Act, id.as_bytes(), &record, RecordSpans::default())
    }

    /// Takes over a change of another draft with this canonical record. Errors: `TooLarge`.
    pub fn take_over(&mut self, change: &RecordChange, id: &[u8], record: &[u8]) -> Result<()> {
        let fields = match change.op {
            Op::Upsert => json::scan_record(record).unwrap_or(change.fields),
            _ => change.fields,
        };
        self.put(change.op, id, record, fields)
    }

    /// Takes over a change by its parts.
    pub fn put(&mut self, op: Op, id: &[u8], record: &[u8], fields: RecordSpans) -> Result<()> {
        let start = self.text.len();
        self.text.extend_from_slice(id);
        let (id, start) = (start..self.text.len(), self.text.len());
        self.text.extend_from_slice(record);
        self.push(op, id, start, fields, false)
    }

    fn push(&mut self, op: Op, id: Range<usize>, start: usize, fields: RecordSpans, is_shared: bool) -> Result<()> {
        let record = start..self.text.len();
        let length = [&id, &record].map(|part| json::escaped_length(&self.text[part.clone()]));
        if length[0] + length[1] + ENVELOPE_BYTES > json::MAX_LINE_BYTES {
            return Err(Error::too_large("record", "its line would be over 16 MiB"));
        }
        // Whether the id is the one in the record: it may stand before that, as others gave it.
        let id_at = id.start.checked_sub(start).filter(|at| *at > 0);
        let is_plain = !check_expiry(&self.text[record.clone()], id_at)? && is_shared;
        self.changes.push(RecordChange {
            op,
            fields,
            is_plain,
            id,
            record,
        });
        Ok(())
    }
}

/// What precedes the value of each field of a record, in canonical order.
const KEYS: [&str; RECORD_FIELDS.len()] = [
    "{\"confidence\":",
    ",\"data\":",
    ",\"epistemic_boundary\":",
    ",\"evidence\":",
    ",\"id\":",
    ",\"is_hypothesis\":",
    ",\"kind\":",
    ",\"label\":",
    ",\"model_assumptions\":",
    ",\"recursion_depth\":",
    ",\"source_type\":",
    ",\"status\":",
];

/// Writes the twelve fields of a record. They must come in canonical order.
pub struct RecordWriter<'a> {
    draft: &'a mut Draft,
    start: usize,
    /// How many fields were begun.
    written: usize,
    fields: RecordSpans,
    is_shared: bool,
}

impl RecordWriter<'_> {
    /// Begins the next field; the caller appends its canonical value.
    pub fn field(&mut self) -> &mut Vec<u8> {
        let text = &mut self.draft.text;
        text.extend_from_slice(KEYS[self.written].as_bytes());
        self.written += 1;
        text
    }

    /// Writes the next field, which is a string.
    pub fn text(&mut self, value: &str) -> Span {
        let text = self.field();
        let start = text.len() + 1;
        json::write_string(value, text);
        Span {
            start: (start - self.start) as u32,
            end: (self.draft.text.len() - 1 - self.start) as u32,
        }
    }

    /// The confidence, which is the first field. Errors: `Invalid` outside 0..1.
    pub fn confidence(&mut self, value: f64) -> Result<()> {
        if !(0.0..=1.0).contains(&value) {
            return Err(Error::invalid(
                "confidence",
                format!("must be from 0 to 1, got {value}"),
            ));
        }
        // -0.0 is inside the range but would be another spelling of the same belief.
        let value = value + 0.0;
        json::write_f64(value, self.field());
        self.fields.confidence = Some(value);
        Ok(())
    }

    /// Ends `data`, which begins at this offset, by stamping the writer's scope on it. Errors: `Invalid` if it has another.
    pub fn end_data(&mut self, start: usize) -> Result<()> {
        let Draft { text, author, .. } = &mut *self.draft;
        self.is_shared = author.settle_scope(text, start)?;
        Ok(())
    }

    /// The id, after the evidence. Errors: `Invalid` for an empty id or one that belongs to another face.
    pub fn id(&mut self, value: &str, face: Option<&str>) -> Result<()> {
        check_id(value, face)?;
        if is_of_acts(value.as_bytes()) {
            return Err(Error::invalid(
                "id",
                format!("ids such as {value:?} are kept for what happens to several records"),
            ));
        }
        self.fields.id = Some(self.text(value));
        Ok(())
    }

    /// Whether it is a hypothesis, after the id.
    pub fn is_hypothesis(&mut self, value: bool) {
        let value: &[u8] = if value { b"true" } else { b"false" };
        self.field().extend_from_slice(value);
    }

    /// The kind, after that.
    pub fn kind(&mut self, value: &str) {
        self.fields.kind = Some(self.text(value));
    }

    /// The status, which is the last field. Errors: `TooLarge` if the line would be too long.
    pub fn status(mut self, value: &str) -> Result<()> {
        self.fields.status = Some(self.text(value));
        self.draft.text.push(b'}');
        let id = self.fields.id.unwrap_or_default();
        let id = self.start + id.start as usize..self.start + id.end as usize;
        self.draft.push(Op::Upsert, id, self.start, self.fields, self.is_shared)
    }
}

fn check_id(id: &str, face: Option<&str>) -> Result<()> {
    if id.is_empty() {
        return Err(Error::invalid("id", "must not be empty"));
    }
    match (face_of(id.as_bytes()), face) {
        (owner, writer) if owner == writer => Ok(()),
        (Some(owner), _) => Err(Error::invalid(
            "id",
            format!("ids such as {id:?} belong to the {owner} face"),
        )),
        (None, _) => Err(Error::invalid(
            "id",
            format!("{id:?} has no prefix of the {} face", face.unwrap_or("")),
        )),
    }
}

/// The writer of a draft.
#[derive(Clone, Debug, Default)]
pub struct Author {
    /// The writer.
    pub writer: Arc<Viewer>,
    /// The viewer that it writes for, if that is another: that one must give the names that a store requires.
    pub acts_for: Option<Arc<Viewer>>,
    /// Whether that one means all who use the store, where a store requires names.
    pub is_public: bool,
    /// Whether the records were in a store before: what everyone brings back carries what it carried, a scope or not.
    pub is_import: bool,
    /// The scope of the writer as it is spelled in a record, since every record is stamped with it; nothing without names.
    pub spelled: Arc<[u8]>,
}

impl Author {
    /// A writer without further terms.
    pub fn plainly(writer: &Arc<Viewer>) -> Self {
        let spelled = match writer.who() {
            Viewer::Named { scope, .. } if !scope.is_shared() => scope.spelled().into(),
            _ => Arc::default(),
        };
        Self {
            // What has expired may be written anew, seen or not.
            writer: match writer.sees_expired() {
                true => Arc::new(writer.who().clone()),
                false => Arc::clone(writer),
            },
            spelled,
            ..Self::default()
        }
    }

    /// The same for records that were in a store before.
    #[must_use]
    pub fn importing(&self, is_import: bool) -> Self {
        Self {
            is_import,
            ..self.clone()
        }
    }

    /// Whether a name of a level was given, or need not be.
    pub fn gives(&self, level: usize) -> bool {
        match self.acts_for.as_ref().unwrap_or(&self.writer).who() {
            Viewer::Named { scope, .. } => self.is_public || scope.names()[level].is_some(),
            _ => true,
        }
    }

    /// Stamps the right scope on `data` at the end of a text; says whether that is none. Errors: `Invalid` if it has another.
    pub fn settle_scope(&self, text: &mut Vec<u8>, start: usize) -> Result<bool> {
        match &*self.writer {
            // An own record may carry one more name: writing it back changes its contents, not its scope.
            Viewer::Named { .. } => stamp(text, start, &self.spelled, |given| {
                self.writer.sees(given) == Some(SeenAs::Own)
            })?,
            _ if self.is_import => {}
            _ => check(&text[start..])?,
        }
        Ok(given(&text[start..]).is_none())
    }
}
