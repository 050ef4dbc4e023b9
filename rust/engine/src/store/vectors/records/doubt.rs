//! Names the records whose embeddings are in doubt because a line about them is lost.
//!
//! A lost line may have replaced an embedding, or taken it back: then the one before it is found again, and it is one that
//! the log names and whose digest is right. So it stays, and is named. The belief itself is none the worse.

use super::format::{group_row, group_space, space_name};
use chronolog::event::faces::{VECTORS, face_of};
use chronolog::json::Value;
use chronomemory_state::state::{State, parsed};

/// How many records are named.
const MOST_NAMED: usize = 20;

/// What to tell of a line that seems to speak of these records and to take back these rows; `None` if it is about none.
pub(in crate::store) fn doubt(state: &State, ids: &[String], gone: &[u32]) -> Option<String> {
    let group = ids.iter().find_map(|id| Some((id, group_space(id.as_bytes())?)));
    let is_of_record = |id: &&String| face_of(id.as_bytes()) != Some(VECTORS);
    let mut records: Vec<String> = ids.iter().filter(is_of_record).cloned().collect();
    let Some((group, space)) = group else {
        let space = ids.iter().find_map(|id| space_name(id.as_bytes()));
        let of_space = space.map(|space| format!("the embeddings in space {space:?} may be older ones, or missing"));
        return told(&records)
            .map(|named| format!("{named} may be an older one, or missing"))
            .or(of_space);
    };
    if records.is_empty() {
        records = named_by(state, group, gone);
    }
    told(&records).map(|named| format!("{named} in space {space:?} may be an older one, or missing"))
}

/// The records whose rows a group names: these rows, or all if it is not known which.
fn named_by(state: &State, group: &str, gone: &[u32]) -> Vec<String> {
    let Some(record) = state.get(group).map(parsed) else {
        return Vec::new();
    };
    let ids = record
        .get("data")
        .and_then(|data| data.get("ids"))
        .and_then(Value::as_array);
    let first = group_row(group.as_bytes()).unwrap_or_default();
    let rows = (first..).zip(ids.unwrap_or_default());
    rows.filter(|(row, _)| gone.is_empty() || gone.contains(row))
        .filter_map(|(_, id)| id.as_str().map(str::to_owned))
        .collect()
}

fn told(records: &[String]) -> Option<String> {
    let shown: Vec<String> = records.iter().take(MOST_NAMED).map(|id| format!("{id:?}")).collect();
    let more = records.len().saturating_sub(MOST_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    (!shown.is_empty()).then(|| format!("the embedding of {}{more}", shown.join(", ")))
}
