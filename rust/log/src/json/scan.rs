//! Proves without allocation that a text is canonical, and finds the fields of an event or a record in it.
//!
//! About other texts it decides nothing: the parser gives the verdict. Functions take and return offsets, which stay in
//! registers; a cursor behind a reference would cost a memory access per step.

use super::cursor::Quoted;
use super::number::write_f64;
use super::special::{next_quote, next_special};
use super::{MAX_DEPTH, MAX_INT_DIGITS, MAX_LINE_BYTES};

/// Floats of at most this number of digits read back as themselves.
const EXACT_DIGITS: usize = 15;

/// Skips `literal`.
#[inline(always)]
fn skip_literal<const N: usize>(bytes: &[u8], at: usize, literal: &[u8; N]) -> Option<usize> {
    (bytes.get(at..)?.first_chunk::<N>()? == literal).then_some(at + N)
}

/// Skips a string from behind its opening quote. The result is the text between the quotes, and the offset of the second one.
#[inline(always)]
pub(super) fn scan_string(bytes: &[u8], start: usize) -> Option<(Quoted<'_>, usize)> {
    let (end, is_escaped) = match next_quote(bytes, start) {
        Some(end) => (end, false),
        None => (find_end_escaped(bytes, start)?, true),
    };
    let inner = &bytes[start..end];
    Some((Quoted { inner, is_escaped }, end))
}

#[cold]
#[inline(never)]
fn find_end_escaped(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = next_special(bytes, start);
    while bytes.get(at) == Some(&b'\\') {
        at = next_special(bytes, at + canonical_escape(&bytes[at..])?);
    }
    (bytes.get(at) == Some(&b'"')).then_some(at)
}

/// The length of an escape if it is the one that the writer would have used.
fn canonical_escape(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(1)? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => match bytes.get(2..6)? {
            // The five controls with a letter of their own are never written in hex.
            [b'0', b'0', b'0', b'8' | b'9' | b'a' | b'c' | b'd'] => None,
            [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f'] => Some(6),
            _ => None,
        },
        _ => None,
    }
}

/// Skips any value. If it is a container, it is number `depth` of those open.
#[inline(always)]
fn skip_value(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(scan_string(bytes, at + 1)?.1 + 1),
        b'{' => skip_object(bytes, at, depth),
        b'[' => skip_array(bytes, at + 1, depth),
        b't' => skip_literal(bytes, at, b"true"),
        b'f' => skip_literal(bytes, at, b"false"),
        b'n' => skip_literal(bytes, at, b"null"),
        _ => skip_number(bytes, at),
    }
}

fn skip_array(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    if *bytes.get(start)? == b']' {
        return Some(start + 1);
    }
    let mut at = start;
    loop {
        at = skip_value(bytes, at, depth + 1)? + 1;
        match bytes.get(at - 1)? {
            b',' => {}
            b']' => return Some(at),
            _ => return None,
        }
    }
}

fn skip_object(bytes: &[u8], start: usize, depth: usize) -> Option<usize> {
    skip_members(bytes, start, depth, true, |_, _, _| true)
}

/// Skips an object. `see` gets each key and where its value begins and ends, and returns false to refuse it.
#[inline(always)]
fn skip_members<'a>(
    bytes: &'a [u8],
    start: usize,
    depth: usize,
    is_sorted: bool,
    mut see: impl FnMut(&'a [u8], usize, usize) -> bool,
) -> Option<usize> {
    let mut at = skip_literal(bytes, start, b"{").filter(|_| depth <= MAX_DEPTH)?;
    if *bytes.get(at)? == b'}' {
        return Some(at + 1);
    }
    let mut before: Option<Quoted<'_>> = None;
    loop {
        let (key, end) = scan_string(bytes, skip_literal(bytes, at, b"\"")?)?;
        if is_sorted && before.is_some_and(|before| !before.sorts_before(&key)) {
            return None;
        }
        before = Some(key);
        let value = skip_literal(bytes, end, b"\":")?;
        at = skip_value(bytes, value, depth + 1)? + 1;
        if !see(key.inner, value, at - 1) {
            return None;
        }
        match bytes.get(at - 1)? {
            b',' => {}
            b'}' => return Some(at),
            _ => return None,
        }
    }
}

/// Skips a canonical number.
#[inline(always)]
fn skip_number(bytes: &[u8], start: usize) -> Option<usize> {
    let first = start + usize::from(*bytes.get(start)? == b'-');
    let point = skip_digits(bytes, first);
    let (count, leads_with_zero) = (point - first, bytes.get(first) == Some(&b'0'));
    if count == 0 || (count > 1 && leads_with_zero) {
        return None;
    }
    match bytes.get(point) {
        Some(b'.') => {
            let end = skip_digits(bytes, point + 1);
            let decimals = &bytes[point + 1..end];
            // So few digits name one float only: this is its shortest text unless it ends in zeros or is below 0.0001.
            let is_shortest = count + decimals.len() <= EXACT_DIGITS
                && (decimals == b"0" || !matches!(decimals, [] | [.., b'0']))
                && !(leads_with_zero && decimals.starts_with(b"0000"))
                && bytes.get(end) != Some(&b'e');
            if is_shortest {
                Some(end)
            } else {
                skip_float(bytes, start)
            }
        }
        Some(b'e') => skip_float(bytes, start),
        _ => (count <= MAX_INT_DIGITS && !(leads_with_zero && first > start)).then_some(point),
    }
}

#[inline(always)]
fn skip_digits(bytes: &[u8], start: usize) -> usize {
    let mut at = start;
    while let Some(b'0'..=b'9') = bytes.get(at) {
        at += 1;
    }
    at
}

/// Skips a float that only reading it and writing it again can prove.
#[cold]
#[inline(never)]
fn skip_float(bytes: &[u8], start: usize) -> Option<usize> {
    let is_part = |byte: &&u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e');
    let end = start + bytes[start..].iter().take_while(is_part).count();
    let mut written = Vec::new();
    write_f64(float_in(&bytes[start..end])?, &mut written);
    (written == bytes[start..end]).then_some(end)
}

fn float_in(number: &[u8]) -> Option<f64> {
    let float = std::str::from_utf8(number).ok()?.parse().ok();
    float.filter(|float: &f64| float.is_finite())
}

/// Skips a canonical integer that fits into 64 bits.
#[inline(always)]
fn scan_i64(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let end = skip_number(bytes, start)?;
    Some((std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?, end))
}

/// A piece of a text, from its first byte to the one after its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset of the byte after the last.
    pub end: u32,
}

impl Span {
    /// The bytes of `text` that the span covers; nothing if it belongs to a longer text.
    #[must_use]
    pub fn of(self, text: &[u8]) -> &[u8] {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    // No text that is scanned is longer than 16 MiB, so nothing is cut off here.
    #[inline(always)]
    fn new(start: usize, end: usize) -> Span {
        Span {
            start: start as u32,
            end: end as u32,
        }
    }
}

/// Where the fields of an event stand in its line; strings without quotes, escapes included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EventSpans {
    /// What happened.
    pub op: Span,
    /// The hash of the event before: 64 hex digits or nothing.
    pub prev_hash: Span,
    /// The record, with its braces.
    pub record: Span,
    /// Whom it happened to.
    pub record_id: Span,
    /// How many inferences deep the writer was.
    pub recursion_depth: i64,
    /// The number of the event, at most 2^63 - 1.
    pub seq: u64,
    /// When it happened.
    pub ts: Span,
    /// Fields of the record, with offsets from the start of [`EventSpans::record`].
    pub fields: RecordSpans,
}

/// Where some fields of a record stand, from its `{` on; strings without quotes, escapes included.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RecordSpans {
    /// The value of `id`, if it is a string.
    pub id: Option<Span>,
    /// The value of `kind`, if it is a string.
    pub kind: Option<Span>,
    /// The value of `status`, if it is a string.
    pub status: Option<Span>,
    /// The value of `confidence`, if it is a number and not too large for a float.
    pub confidence: Option<f64>,
}

/// Proves that a line is byte for byte the canonical form of an event, and finds its fields.
///
/// `None` means only that the proof failed: the line may be an event in another spelling.
#[must_use]
pub fn scan_event(line: &[u8]) -> Option<EventSpans> {
    if line.len() > MAX_LINE_BYTES || simdutf8::basic::from_utf8(line).is_err() {
        return None;
    }
    let at = skip_hex_digits(line, skip_literal(line, 0, b"{\"hash\":\"")?)?;
    let (op, at) = scan_text(line, skip_literal(line, at, b"\",\"op\":\"")?)?;
    let start = skip_literal(line, at, b",\"prev_hash\":\"")?;
    let end = match line.get(start)? {
        b'"' => start,
        _ => skip_hex_digits(line, start)?,
    };
    let prev_hash = Span::new(start, end);
    let start = skip_literal(line, end, b"\",\"record\":")?;
    let (fields, at) = scan_record_at(line, start)?;
    let record = Span::new(start, at);
    let (record_id, at) = scan_text(line, skip_literal(line, at, b",\"record_id\":\"")?)?;
    let (recursion_depth, at) = scan_i64(line, skip_literal(line, at, b",\"recursion_depth\":")?)?;
    let (seq, at) = scan_i64(line, skip_literal(line, at, b",\"seq\":")?)?;
    let seq = u64::try_from(seq).ok()?;
    let (ts, at) = scan_text(line, skip_literal(line, at, b",\"ts\":\"")?)?;
    let at = skip_literal(line, at, b"}")?;
    (at == line.len()).then_some(EventSpans {
        op,
        prev_hash,
        record,
        record_id,
        recursion_depth,
        seq,
        ts,
        fields,
    })
}

/// Proves that a text is the canonical record of an event (the second container), and finds its fields.
///
/// `None` means only that the proof failed: it may be a record in another spelling.
#[must_use]
pub fn scan_record(record: &[u8]) -> Option<RecordSpans> {
    if record.len() > MAX_LINE_BYTES || simdutf8::basic::from_utf8(record).is_err() {
        return None;
    }
    let (fields, at) = scan_record_at(record, 0)?;
    (at == record.len()).then_some(fields)
}

/// Shows `see` key and value of each member of an object that is canonical but for the order of its keys, and is the container
/// number `depth`, until `see` returns false.
///
/// `None` if it refused one, or if the text could not be proved canonical; it may still be a valid object.
pub fn scan_members<'a>(object: &'a [u8], depth: usize, mut see: impl FnMut(&'a [u8], &'a [u8]) -> bool) -> Option<()> {
    simdutf8::basic::from_utf8(object).ok()?;
    let end = skip_members(object, 0, depth, false, |key, start, end| see(key, &object[start..end]))?;
    (end == object.len()).then_some(())
}

#[inline(always)]
fn skip_hex_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.first_chunk::<64>()?;
    // Without an early exit, so that the compiler compares many digits at once.
    let is_hex = digits.iter().fold(true, |is_hex, byte| {
        is_hex & (byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6)
    });
    is_hex.then_some(at + 64)
}

/// Skips a string from behind its opening quote; where its text is, and the offset behind the closing quote.
#[inline(always)]
fn scan_text(bytes: &[u8], start: usize) -> Option<(Span, usize)> {
    let end = scan_string(bytes, start)?.1;
    Some((Span::new(start, end), end + 1))
}

/// How many containers are open inside of a record: the event and the record.
const RECORD_DEPTH: usize = 2;

#[inline(always)]
fn scan_record_at(bytes: &[u8], origin: usize) -> Option<(RecordSpans, usize)> {
    scan_usual_record(bytes, origin).or_else(|| scan_any_record(bytes, origin))
}

/// Skips a record with exactly the twelve fields that records have, in their order.
#[inline(always)]
fn scan_usual_record(bytes: &[u8], origin: usize) -> Option<(RecordSpans, usize)> {
    const INSIDE: usize = RECORD_DEPTH + 1;
    let field = |text: Span| Some(Span::new(text.start as usize - origin, text.end as usize - origin));
    let start = skip_literal(bytes, origin, b"{\"confidence\":")?;
    let at = skip_number(bytes, start)?;
    let confidence = float_in(&bytes[start..at]);
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"data\":")?, INSIDE)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"epistemic_boundary\":")?, INSIDE)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"evidence\":")?, INSIDE)?;
    let (id, at) = scan_text(bytes, skip_literal(bytes, at, b",\"id\":\"")?)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"is_hypothesis\":")?, INSIDE)?;
    let (kind, at) = scan_text(bytes, skip_literal(bytes, at, b",\"kind\":\"")?)?;
    let (_, at) = scan_text(bytes, skip_literal(bytes, at, b",\"label\":\"")?)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"model_assumptions\":")?, INSIDE)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"recursion_depth\":")?, INSIDE)?;
    let (_, at) = scan_text(bytes, skip_literal(bytes, at, b",\"source_type\":\"")?)?;
    let (status, at) = scan_text(bytes, skip_literal(bytes, at, b",\"status\":\"")?)?;
    let at = match skip_literal(bytes, at, b"}") {
        Some(at) => at,
        // A salt may follow: most lines have one.
        None => skip_literal(bytes, scan_text(bytes, skip_literal(bytes, at, b",\"~\":\"")?)?.1, b"}")?,
    };
    let fields = RecordSpans {
        id: field(id),
        kind: field(kind),
        status: field(status),
        confidence,
    };
    Some((fields, at))
}

#[inline(never)]
fn scan_any_record(bytes: &[u8], origin: usize) -> Option<(RecordSpans, usize)> {
    let mut fields = RecordSpans::default();
    let text =
        |start: usize, end: usize| (bytes[start] == b'"').then(|| Span::new(start + 1 - origin, end - 1 - origin));
    // These four names need no escapes, so their only canonical spelling is the raw one.
    let at = skip_members(bytes, origin, RECORD_DEPTH, true, |key, start, end| {
        match key {
            b"id" => fields.id = text(start, end),
            b"kind" => fields.kind = text(start, end),
            b"status" => fields.status = text(start, end),
            b"confidence" => fields.confidence = float_in(&bytes[start..end]),
            _ => {}
        }
        true
    })?;
    Some((fields, at))
}

#[cfg(test)]
mod tests {
    use super::super::{parse, write_value};
    use super::*;

    /// Whether the scan takes the whole text for canonical. It must agree with the round trip through a value.
    fn is_accepted(text: &str) -> bool {
        let is_accepted = skip_value(text.as_bytes(), 0, 1) == Some(text.len());
        let mut out = Vec::new();
        if let Ok(value) = parse(text.as_bytes()) {
            write_value(&value, &mut out);
        }
        assert_eq!(is_accepted, out == text.as_bytes(), "{text}");
        is_accepted
    }

    #[test]
    fn only_canonical_texts_pass() {
        let canonical = r#"
            "\"\\\b\f\n\r\t" "\u0000\u000b\u001f" "/é😀" [] {} [1,[],{"a":{}},null,true,false]
            {"":1,"\u0000":2,"\n":3,"!":4,"A":5,"a":6,"aa":7,"é":8,"😀":9} {"a\n":1,"a\"":2,"aA":3,"a\\":4,"a]":5}
            {"abcdefgh":1,"abcdefgh1":2,"abcdefgh2":3,"abcdefgi":4}
            0 7 -7 10 12345678 123456789012345678 -123456789012345678 9223372036854775807 9223372036854775808
            0.0 -0.0 1.0 0.5 0.95 -0.7 0.0001 0.00012345 0.001 10.0 123456.789 12345678901234.5 123456789012345.0
            1234567890123456.0 9999999999999998.0 0.1234567890123456 1e-05 1.5e-05 1e+16 1.5e+16 1e+100 5e-324
            1.7976931348623157e+308 562949953421312.2 1000000000000000.0 0.30000000000000004"#;
        let others = r#"
            "\u0008" "\u000a" "\u001F" "\u0020" "\u00e9" "\/" "\u2028" "\u00" "\x" " "\" "\u00
            {"A":1,"\n":2} {"a":1,"a":2} {"\n":1,"\n":2} {"b":1,"a":2} {"abcdefgh2":1,"abcdefgh1":2} {"a]":1,"a\\":2}
            [1,] [,1] [1 [1} {"a":1,} {"a" {"a": tru nulll
            - -0 00 01 -01 +1 1. .5 -.5 1.00 0.50 00.5 01.5 0.00 -0.00 0.00001 0.00009 0.000012345 1e5 1E+16 1e16
            1.0e+16 1e-5 1e-005 1e+15 10000000000000000.0 12345678901234567.0 0.1e1 1.5e 1e 1e+ 1e400 -1e+400
            0.12345678901234567 562949953421312.3 0.1000000000000000055 1.0e5 1-2 1.2.3 1+1 0x1 2.9802322387695313e-08
            NaN inf nan infinity"#;
        assert!(canonical.split_whitespace().all(is_accepted));
        assert!(!others.split_whitespace().any(is_accepted));
        let mut spaced = "[ ];{ };[1, 2];{\"a\": 1}; 1;1 ;\"\n\";\"\u{1f}\"".split(';');
        assert!(!spaced.any(is_accepted));
        assert!(is_accepted(&"9".repeat(MAX_INT_DIGITS)) && !is_accepted(&"9".repeat(MAX_INT_DIGITS + 1)));
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let nested = |depth: usize| [&open.repeat(depth), "[]", &close.repeat(depth)].concat();
            assert!(is_accepted(&nested(MAX_DEPTH - 1)) && !is_accepted(&nested(MAX_DEPTH)));
        }
        let digits = "1234567890".repeat(2);
        let lengths = (1..=20).flat_map(|length| (1..=20).map(move |decimals| (length, decimals)));
        let plain = lengths.filter(|(length, decimals)| {
            let (number, zeros) = (&digits[..*decimals], "0".repeat((*length).min(8)));
            is_accepted(&format!("{}.{number}", &digits[..*length])) | is_accepted(&format!("0.{zeros}{number}"))
        });
        assert!(plain.count() > 100);
    }

    const HASH: &str = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";
    const RECORD: &str = concat!(
        r#"{"confidence":0.95,"data":{"a":[1,2.5,"x"],"b":{}},"epistemic_boundary":[],"evidence":["e:1","e:2"],"#,
        r#""id":"r-1","is_hypothesis":false,"kind":"fact","label":"née \"x\"","model_assumptions":{},"#,
        r#""recursion_depth":0,"source_type":"observed","status":"active"}"#
    );

    fn line(record: &str) -> String {
        let before = format!(r#"{{"hash":"{HASH}","op":"upsert","prev_hash":"{HASH}","record":"#);
        let after = r#","record_id":"r-1","recursion_depth":-3,"seq":42,"ts":"2026-01-02T03:04:05.000006Z"}"#;
        [&before, record, after].concat()
    }

    #[test]
    fn the_limits_hold() {
        let empty = line(r#"{"id":""}"#).len();
        let padded = |length: usize| line(&format!(r#"{{"id":"{}"}}"#, "x".repeat(length - empty)));
        assert!(scan_event(padded(MAX_LINE_BYTES).as_bytes()).is_some());
        assert_eq!(scan_event(padded(MAX_LINE_BYTES + 1).as_bytes()), None);
        // The event is container 1 and its record container 2, also where the record is alone.
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for (record, depth) in [(r#"{"a":{}}"#, 198), (RECORD, 197)] {
            let nested = |depth: usize| record.replacen("{}", &deep(depth), 1);
            assert!(scan_event(line(&nested(depth)).as_bytes()).is_some());
            assert!(scan_record(nested(depth).as_bytes()).is_some());
            assert_eq!(scan_event(line(&nested(depth + 1)).as_bytes()), None);
            assert_eq!(scan_record(nested(depth + 1).as_bytes()), None);
        }
    }
}
