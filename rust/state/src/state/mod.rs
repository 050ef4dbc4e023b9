//! The state: for every id the last record that the log has of it, and what is looked up beside it.
//!
//! Of every id it keeps a [`slots`] entry that leads to the canonical bytes, with the stamps of the events that made and changed the
//! record, a [`catalog`] of kinds and statuses so that a query costs what it returns, the [`scopes`] that records carry, and a
//! [`timeline`] that leads from a record to its events. It is derived from base and log alone and can be rebuilt at any time.

mod apply;
mod base_rows;
mod catalog;
mod changes;
mod compare;
mod listing;
mod query;
mod records;
mod restated;
mod rows;
mod scopes;
mod sealing;
mod seen;
mod slots;
mod timeline;

pub use base_rows::{BaseRows, BaseSegment};
pub use catalog::{Catalog, Class};
pub use changes::{Changes, Edition, StateId, Watermark};
pub use compare::{differences, having, unlike};
pub use listing::{By, Listing, MadeAt, PageEnd};
pub use query::{Query, SlotSieve};
pub use records::State;
pub use rows::{Dated, Frozen, Row};
pub use scopes::{Directory, Sight};
pub use sealing::Unsealed;
pub use slots::SlotTable;
pub use timeline::Timeline;

use chronolog::json::{self, Value};

/// A text as it stands between quotes in canonical JSON.
pub fn spelled(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    json::write_string(text, &mut out);
    out.pop();
    out.remove(0);
    out
}

/// And back.
pub fn unspelled(text: &[u8]) -> String {
    let quoted = [b"\"", text, b"\""].concat();
    match json::parse(&quoted) {
        Ok(Value::Str(text)) => text,
        _ => String::from_utf8_lossy(text).into_owned(),
    }
}

/// The record that bytes spell.
pub fn parsed(record: &[u8]) -> Value {
    match json::parse(record) {
        Ok(value @ Value::Object(_)) => value,
        _ => Value::Object(Vec::new()),
    }
}

#[cfg(test)]
mod tests {
    //! Puts records into a state, for the tests of this module.

    use super::State;
    use chronolog::event::draft_value::defaults;
    use chronolog::event::{Known, Op};
    use chronolog::json;

    /// Applies an event about a record.
    pub(in crate::state) fn says(state: &mut State, op: Op, seq: u64, id: &str, record: &str) {
        let known = Known {
            op,
            seq,
            hash: b"",
            offset: seq,
            id: id.as_bytes(),
            record: record.as_bytes(),
            fields: json::scan_record(record.as_bytes()).expect("a record"),
        };
        state.apply(known, 0, false);
    }

    /// Applies an event about a record without content.
    pub(in crate::state) fn hears(state: &mut State, op: Op, seq: u64, id: &str) {
        let record = format!("{{\"id\":\"{id}\",\"kind\":\"{}\"}}", defaults::KIND);
        says(state, op, seq, id, &record);
    }
}
