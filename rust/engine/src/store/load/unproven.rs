//! Takes records from bytes that nothing proves, and marks them.
//!
//! A record that comes from an altered base says so in its data, until somebody writes it anew. A record that an event spoke
//! of which is lost may be older than it should be, or withdrawn: it is put on hold.

use std::io;

use chronolog::disk::{DiskFile, read_upto};
use chronolog::event::faces::{VECTORS, face_of};
use chronolog::json::{self, RecordSpans, Value};
use chronolog::memory::Refused;
use chronomemory_state::snapshot::{Moments, Taker};
use chronomemory_state::state::{State, parsed};

/// The field of `data` that marks a record from bytes that nothing proves.
pub(in crate::store) const UNPROVEN: &str = "@unproven";
/// The field of `data` that marks a record of which a later event is lost.
pub(in crate::store) const UNSETTLED: &str = "@unsettled";
/// The status of a plain record that is put on hold.
const UNSETTLED_STATUS: &str = "unsettled";
/// What a mark adds to a record, and more.
const MOST_MARK_BYTES: usize = 256;
/// A line of a base is not longer than this.
const MOST_BYTES: usize = json::MAX_LINE_BYTES + 2;

/// Takes the records of a base, marked.
pub(in crate::store) struct Marking<'a>(pub &'a mut State);

impl Taker for Marking<'_> {
    fn make_room(&mut self, bytes: usize) -> Result<(), Refused> {
        Taker::make_room(self.0, bytes + MOST_MARK_BYTES)
    }

    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        // What is said about embeddings is checked row by row.
        if face_of(id) == Some(VECTORS) {
            self.0.take(record, fields, moments);
            return;
        }
        let reason = Value::Str("a repair took it from a base that is not the one the log names".to_owned());
        put_marked(self.0, parsed(record), UNPROVEN, reason, moments);
    }

    fn date(&mut self, id: &[u8], moments: Moments) {
        self.0.date(id, moments);
    }

    fn start_over(&mut self) {
        self.0.start_over();
    }
}

fn put_marked(state: &mut State, mut record: Value, mark: &str, reason: Value, moments: Option<Moments>) {
    let mut data = match record.remove("data") {
        Some(data @ Value::Object(_)) => data,
        _ => Value::Object(Vec::new()),
    };
    data.set(mark, reason);
    record.set("data", data);
    let mut text = Vec::new();
    json::write_value(&record, &mut text);
    if let Some(fields) = json::scan_record(&text) {
        state.take(&text, fields, moments);
    }
}

/// Puts a record on hold; false if there is no such record.
pub(in crate::store) fn put_on_hold(state: &mut State, id: &str, reason: &str) -> bool {
    let Some(mut record) = state.get(id).map(parsed) else {
        return false;
    };
    let status = record.get("status").and_then(Value::as_str);
    // What it was before it was on hold for the first time is what counts.
    let earlier = record
        .get("data")
        .and_then(|data| data.get(UNSETTLED)?.get("status")?.as_str());
    let was = earlier.or(status).unwrap_or("active").to_owned();
    let mark = Value::object([("reason", Value::Str(reason.to_owned())), ("status", Value::Str(was))]);
    // The faces know only their own statuses.
    if face_of(id.as_bytes()).is_none() {
        record.set("status", Value::Str(UNSETTLED_STATUS.to_owned()));
    }
    put_marked(state, record, UNSETTLED, mark, None);
    true
}

/// Takes every line of a base that is a record, whatever stands between them; says how many there were.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn take_lines(file: &dyn DiskFile, taker: &mut dyn Taker) -> io::Result<u64> {
    let length = file.length()?;
    let (mut offset, mut taken) = (0, 0);
    let mut buffer = Vec::new();
    while offset < length || !buffer.is_empty() {
        let got = read_upto(file, &mut buffer, offset, 1024 * 1024)?;
        offset += got as u64;
        let whole = if got == 0 {
            buffer.len()
        } else {
            memchr::memrchr(b'\n', &buffer).map_or(0, |newline| newline + 1)
        };
        for line in buffer[..whole].split(|byte| *byte == b'\n') {
            let record = line.strip_suffix(b",").unwrap_or(line);
            if let Some(fields) = json::scan_record(record).filter(|fields| fields.id.is_some()) {
                taker.make_room(record.len())?;
                taker.take(record, fields, None);
                taken += 1;
            }
        }
        buffer.drain(..whole);
        if buffer.len() > MOST_BYTES {
            buffer.clear();
        }
    }
    Ok(taken)
}
