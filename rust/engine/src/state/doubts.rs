//! Tells which records a line of the log was about that cannot be read any more.
//!
//! Only the id that the damaged bytes still show is used. Where they show none, every record that was written before the
//! line may be meant.

use memchr::memmem;

use super::records::{NO_CLASS, State};
use super::spelling::unspelled;
use crate::json;
use crate::scope::Viewer;
use crate::snapshot::Doubt;

/// The id of a line that opens a batch: it is about no record.
const BEGIN_ID: &[u8] = b"__begin__";

impl State {
    /// A line behind event `seq` cannot be read, or is missing if there are no bytes of it.
    pub fn note_lost_line(&mut self, line: &[u8], seq: u64) {
        match shown_id(line) {
            Some(BEGIN_ID) => {}
            Some(id) => self.doubt(id),
            None => {
                let doubts = self.moments.doubts_mut();
                doubts.lost_behind = doubts.lost_behind.max(Some(seq));
            }
        }
    }

    /// An event about a record is lost, the id given as it stands between quotes in canonical JSON. An id without a record
    /// is passed over: nothing is handed out under it.
    pub fn doubt(&mut self, id: &[u8]) {
        if let Some(slot) = self.slot_spelled(id) {
            self.moments.doubts_mut().named.insert(slot);
        }
    }

    /// How many of the records that somebody sees are in doubt, and the ids of those that lost events name.
    pub fn in_doubt(&self, viewer: &Viewer) -> (u64, Vec<String>) {
        let (mut records, mut ids) = (0, Vec::new());
        let slots = self.moments.doubts.iter().flat_map(|_| 0..self.slots.len() as u32);
        for slot in slots.filter(|&slot| self.slots[slot as usize].class != NO_CLASS && self.is_seen(viewer, slot)) {
            let doubt = self.moments.get(slot).doubt;
            records += u64::from(doubt != Doubt::None);
            if doubt == Doubt::Named {
                ids.push(unspelled(self.id_of(slot)));
            }
        }
        (records, ids)
    }
}

/// The id that a damaged line shows, as it stands between quotes: a line of ours names its record twice, a patch once.
fn shown_id(line: &[u8]) -> Option<&[u8]> {
    let has = |key: &[u8], value: &[u8]| {
        [&b""[..], b" "]
            .iter()
            .any(|gap| memmem::find(line, &[key, gap, value].concat()).is_some())
    };
    let start = memmem::rfind(line, b"\"record_id\":")? + 12;
    let start = start + line[start..].iter().take_while(|byte| **byte == b' ').count();
    let quoted = &line[start..json::end_of_string(line, start)?];
    let id = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (id == BEGIN_ID || has(b"\"id\":", quoted) || has(b"\"op\":", b"\"patch\"")).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_shows_its_id_only_where_it_is_certain() {
        for (line, shown) in [
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (r#"{"record": {"id": "tea"}, "record_id": "tea", ?"#, Some("tea")),
            (
                r#"?"op":"patch","record":{"label":"x"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tex","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"act","record":{"ids":["a"]},"record_id":"act:blocks","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"begin","record":{"events":?},"record_id":"__begin__","seq":1}"#,
                Some("__begin__"),
            ),
            (r#"?"op":"upsert","record":{"id":"tea"},"record_id":"te"#, None),
            ("", None),
        ] {
            assert_eq!(shown_id(line.as_bytes()), shown.map(str::as_bytes), "{line}");
        }
    }
}
