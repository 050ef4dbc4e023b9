//! The moments at which a record was made and was spoken of last, and how a base spells them.
//!
//! In a base this is a row of four numbers a record: what the events said that are in the archive now. A number that is
//! not known is `null`, and counts as lower than any other.

use chronolog::json::{self, Value};

/// The event that made a record, or the last one that spoke of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stamp {
    /// Its seq; below 0 if it is not known.
    seq: i64,
    /// Its moment in microseconds since 1970; the lowest number if it is not known.
    micros: i64,
}

impl Stamp {
    /// Of an event that nobody knows.
    pub const UNKNOWN: Self = Self {
        seq: -1,
        micros: i64::MIN,
    };

    /// Of an event with this seq at this moment.
    pub fn new(seq: u64, micros: i64) -> Self {
        Self {
            seq: i64::try_from(seq).unwrap_or(i64::MAX),
            micros,
        }
    }

    /// Of the two numbers that [`Moments::numbers`] gives for a stamp.
    pub fn of_numbers(seq: i64, micros: i64) -> Self {
        Self { seq, micros }
    }

    /// The two numbers.
    pub fn numbers(&self) -> [i64; 2] {
        [self.seq, self.micros]
    }

    /// Its seq, if it is known.
    pub fn seq(&self) -> Option<u64> {
        u64::try_from(self.seq).ok()
    }

    /// Its moment in microseconds since 1970, if it is known.
    pub fn micros(&self) -> Option<i64> {
        (self.micros > i64::MIN).then_some(self.micros)
    }

    /// Reads a stamp from an array of its two numbers.
    pub fn read(value: &Value) -> Option<Self> {
        let [seq, micros] = value.as_array()? else {
            return None;
        };
        Some(Self::new(u64::try_from(seq.as_i64()?).ok()?, micros.as_i64()?))
    }

    /// An array of the two numbers; `null` if one is not known.
    pub fn value(&self) -> Value {
        let numbers = self
            .seq()
            .zip(self.micros())
            .map(|_| vec![Value::from(self.seq), Value::from(self.micros)]);
        numbers.map_or(Value::Null, Value::Array)
    }

    /// This one, but not before another: seqs and moments of another tool's log may go back.
    #[must_use]
    pub fn not_before(self, other: Self) -> Self {
        Self {
            seq: self.seq.max(other.seq),
            micros: self.micros.max(other.micros),
        }
    }
}

/// Whether a line of the log that cannot be read may have changed a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// Every event about the record was read.
    None,
    /// A damaged line names the record.
    Named,
    /// A damaged or missing line does not show which record it was about.
    Possible,
}

/// Both ends of what events said of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moments {
    /// The event that made it.
    pub created: Stamp,
    /// The last one that spoke of it.
    pub updated: Stamp,
    /// Whether a later event may be missing. It is derived from the log and not part of a base.
    pub doubt: Doubt,
}

impl Moments {
    /// Of a record of which every event was read.
    pub const fn of_stamps(created: Stamp, updated: Stamp) -> Self {
        Self {
            created,
            updated,
            doubt: Doubt::None,
        }
    }

    /// Seq and moment of both, one after the other; what is not known is -1 and the lowest number.
    pub fn numbers(&self) -> [i64; 4] {
        [
            self.created.seq,
            self.created.micros,
            self.updated.seq,
            self.updated.micros,
        ]
    }

    /// Spells them as canonical JSON.
    pub fn spell(&self, out: &mut Vec<u8>) {
        let mut before = b'[';
        for (number, unknown) in self.numbers().into_iter().zip([-1, i64::MIN, -1, i64::MIN]) {
            out.push(before);
            before = b',';
            if number > unknown {
                json::write_i64(number, out);
            } else {
                out.extend_from_slice(b"null");
            }
        }
        out.push(b']');
    }

    /// Reads what `spell` wrote; `None` if it is anything else, however much like it.
    pub fn read(line: &[u8]) -> Option<Self> {
        let mut parts = line.strip_prefix(b"[")?.strip_suffix(b"]")?.split(|byte| *byte == b',');
        let mut next = |unknown: i64| match parts.next()? {
            b"null" => Some(unknown),
            digits => number(digits).filter(|number| *number > unknown),
        };
        let numbers = [next(-1)?, next(i64::MIN)?, next(-1)?, next(i64::MIN)?];
        let [created_seq, created, updated_seq, updated] = numbers;
        let stamps = [(created_seq, created), (updated_seq, updated)].map(|(seq, micros)| Stamp { seq, micros });
        let is_sound = parts.next().is_none() && created_seq <= updated_seq && created <= updated;
        is_sound.then(|| Self::of_stamps(stamps[0], stamps[1]))
    }
}

/// A whole number as canonical JSON spells it.
fn number(digits: &[u8]) -> Option<i64> {
    let bare = digits.strip_prefix(b"-").unwrap_or(digits);
    let is_canonical = matches!(bare, [b'1'..=b'9', ..]) || digits == b"0";
    if !is_canonical || !bare.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(moments: &Moments) -> String {
        let mut text = Vec::new();
        moments.spell(&mut text);
        String::from_utf8(text).expect("text")
    }

    /// A row as another tool may spell it.
    fn of_other_tool(row: &str) -> Option<Moments> {
        Moments::read(&json::parse(row.as_bytes()).expect("JSON").to_bytes())
    }

    #[test]
    fn a_row_survives_its_spelling() {
        for row in [
            "[0,0,0,0]",
            "[1,-5,9223372036854775807,9223372036854775807]",
            "[null,null,7,1779105600123456]",
            "[3,null,7,null]",
            "[null,null,null,null]",
            "[4,-9223372036854775807,4,0]",
        ] {
            let read = Moments::read(row.as_bytes()).expect(row);
            assert_eq!(spelled(&read), row);
            assert_eq!(of_other_tool(row), Some(read));
        }
    }

    #[test]
    fn both_ways_in_refuse_alike() {
        for row in [
            "[]",
            "[1,2,3]",
            "[1,2,3,4,5]",
            "[2,0,1,0]",
            "[1,5,1,4]",
            "[1,0,null,0]",
            "[-1,0,1,0]",
            "[1,-9223372036854775808,1,0]",
            "[1,2,3,9223372036854775808]",
            "[1.0,2,3,4]",
            "[true,2,3,4]",
            "[\"1\",2,3,4]",
            "{}",
            "null",
        ] {
            assert_eq!(Moments::read(row.as_bytes()), None, "{row}");
            assert_eq!(of_other_tool(row), None, "{row}");
        }
        // Not as we spell it, and the same all the same.
        assert_eq!(Moments::read(b"[1, 2,3,4]"), None);
        assert_eq!(Moments::read(b"[-0,2,3,4]"), None);
        assert!(of_other_tool("[-0, 2,3,4]").is_some());
    }

    #[test]
    fn what_goes_back_stays_where_it_was() {
        let (early, late) = (Stamp::new(5, 10), Stamp::new(3, 20));
        assert_eq!(late.not_before(early), Stamp::new(5, 20));
        assert_eq!(early.not_before(Stamp::UNKNOWN), early);
        assert_eq!((Stamp::UNKNOWN.seq(), Stamp::UNKNOWN.micros()), (None, None));
    }
}
