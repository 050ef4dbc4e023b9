//! Writes records as lines of an export, with the times of creation and last change.

use super::rows::Dated;
use super::spelling::unspelled;
use crate::snapshot::Stamp;
use chronolog::event::draft_value::RECORD_FIELDS;
use chronolog::event::stamp;
use chronolog::json::members;

/// A record as a line of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportLine {
    /// Its id.
    pub id: String,
    /// Its kind.
    pub kind: String,
    /// The canonical record with its times, and a newline.
    pub line: Vec<u8>,
}

/// The places of id and kind among the fields.
const ID: usize = 4;
const KIND: usize = 6;
/// The first moment of the year 1, and the first one behind the year 9999.
const YEARS: std::ops::Range<i64> = -62_135_596_800_000_000..253_402_300_800_000_000;

impl Dated<'_> {
    /// The record as a line of an export; `None` if it has not exactly the fields of a record, or a time that has no spelling.
    pub fn export_line(&self) -> Option<ExportLine> {
        let record: &[u8] = &self.record;
        let mut values: [&[u8]; RECORD_FIELDS.len()] = Default::default();
        let mut fields = members(record);
        for (name, value) in RECORD_FIELDS.iter().zip(&mut values) {
            let (key, found) = fields.next()?;
            if key != name.as_bytes() {
                return None;
            }
            *value = found;
        }
        if fields.next().is_some() {
            return None;
        }
        let text = |quoted: &[u8]| Some(unspelled(quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?));
        // "created_at" comes behind "confidence", "updated_at" behind all others.
        let first = values[0].as_ptr() as usize - record.as_ptr() as usize + values[0].len();
        let (before, behind) = record.strip_suffix(b"}")?.split_at_checked(first)?;
        let mut line = before.to_vec();
        add_time(&mut line, "created_at", self.moments.created)?;
        line.extend_from_slice(behind);
        add_time(&mut line, "updated_at", self.moments.updated)?;
        line.extend_from_slice(b"}\n");
        Some(ExportLine {
            id: text(values[ID])?,
            kind: text(values[KIND])?,
            line,
        })
    }
}

/// Adds a time as Python spells it, if it is known; `None` if it has no spelling.
fn add_time(line: &mut Vec<u8>, name: &str, stamp: Stamp) -> Option<()> {
    let Some(micros) = stamp.micros() else {
        return Some(());
    };
    if !YEARS.contains(&micros) {
        return None;
    }
    let digits = stamp::digits(micros);
    // Whole seconds have no fraction.
    let shown = if micros % 1_000_000 == 0 { 19 } else { 26 };
    line.extend_from_slice(format!(",\"{name}\":\"").as_bytes());
    line.extend_from_slice(&digits[..shown]);
    line.extend_from_slice(b"+00:00\"");
    Some(())
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::snapshot::Moments;

    fn exported(record: &str, created: Option<i64>, updated: Option<i64>) -> Option<String> {
        let stamp = |micros: Option<i64>| micros.map_or(Stamp::UNKNOWN, |micros| Stamp::new(1, micros));
        let one = Dated {
            record: Cow::Borrowed(record.as_bytes()),
            moments: Moments::of_stamps(stamp(created), stamp(updated)),
        };
        one.export_line()
            .map(|one| String::from_utf8_lossy(&one.line).into_owned())
    }

    #[test]
    fn times_stand_in_canonical_order_and_as_python_spells_them() {
        let rest = concat!(
            r#""data":{},"epistemic_boundary":[],"evidence":[],"id":"a","is_hypothesis":false,"kind":"k","label":"","#,
            r#""model_assumptions":{},"recursion_depth":0,"source_type":"observed","status":"active""#
        );
        let record = format!(r#"{{"confidence":0.5,{rest}}}"#);
        let line = exported(&record, Some(1_000_000), Some(1_000_001)).expect("a line");
        let (created, updated) = ("1970-01-01T00:00:01+00:00", "1970-01-01T00:00:01.000001+00:00");
        let expected = format!(r#"{{"confidence":0.5,"created_at":"{created}",{rest},"updated_at":"{updated}"}}"#);
        assert_eq!(line, format!("{expected}\n"));
        assert_eq!(exported(&record, None, None), Some(format!("{record}\n")));
        assert_eq!(exported(&record, Some(i64::MAX), None), None);
        assert_eq!(exported(r#"{"confidence":0.5,"id":"a"}"#, None, None), None);
    }
}
