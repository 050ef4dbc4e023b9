//! The header and the keys around the records of a state that was written down.

use chronolog::json::{self, Value};

/// What leads over to the records of a snapshot.
const RECORDS: &[u8] = b",\"records\":[";
/// How a base of earlier versions begins: it has no moments.
pub const OPEN_RECORDS: &[u8] = b"{\"records\":[";
/// How a base begins.
pub const OPEN_MOMENTS: &[u8] = b"{\"moments\":[";
/// The line that leads over from the moments to the records.
pub const TO_RECORDS: &[u8] = b"],\"records\":[";
/// The line that leads over from the records to the moments of those that came later.
pub const TO_LATER_MOMENTS: &[u8] = b"],\"later_moments\":[";
/// The fields that are lists.
const LISTS: [&str; 3] = ["moments", "records", "later_moments"];

/// Of what event a state is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The last event that the state contains.
    pub seq: u64,
    /// That event's hash.
    pub last_hash: String,
    /// That event's moment.
    pub ts: String,
}

impl Header {
    fn fields(&self) -> Vec<u8> {
        let mut text = format!("\"seq\":{},\"last_hash\":", self.seq).into_bytes();
        json::write_string(&self.last_hash, &mut text);
        text.extend_from_slice(b",\"ts\":");
        json::write_string(&self.ts, &mut text);
        text
    }

    /// As it stands before the records of a snapshot.
    pub(super) fn spell(&self) -> Vec<u8> {
        [b"{", &self.fields()[..], RECORDS].concat()
    }

    /// As it stands behind the last list of a base.
    pub(super) fn spell_behind(&self, salt: Option<&str>) -> Vec<u8> {
        let salt = salt.map(|salt| format!(",\"salt\":\"{salt}\"")).unwrap_or_default();
        [b"\n],", &self.fields()[..], salt.as_bytes(), b"}\n"].concat()
    }

    /// What a whole state says of itself.
    pub(super) fn of(value: &Value) -> Option<Self> {
        Some(Self {
            seq: u64::try_from(value.get("seq")?.as_i64()?).ok()?,
            last_hash: value.get("last_hash")?.as_str()?.to_owned(),
            ts: value.get("ts").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }

    /// What the first line of a snapshot says.
    pub(super) fn of_first(line: &[u8]) -> Option<Self> {
        line.strip_suffix(RECORDS)?;
        let value = json::parse(&[line, b"]}"].concat()).ok()?;
        let is_plain = LISTS.iter().all(|name| *name == "records" || value.get(name).is_none());
        is_plain.then(|| Self::of(&value))?
    }

    /// What the last line of a base says.
    pub fn of_last(line: &[u8]) -> Option<Self> {
        let opened = [b"{", line.strip_prefix(b"],")?].concat();
        let value = json::parse(&opened).ok()?;
        // The lists stand before; others behind them would be a second of their name.
        if LISTS.iter().any(|name| value.get(name).is_some()) {
            return None;
        }
        Self::of(&value)
    }
}
