//! Recognises texts that are already spelled as we would spell them.
//!
//! About other texts it decides nothing: the slow path gives the verdict. Functions take and return places, which travel in
//! registers; a cursor behind a reference would cost a memory access per step.

use super::number::spell;
use super::special::{next_quote, next_special};
use super::{MAX_DEPTH, MAX_INT_DIGITS, MAX_LINE_BYTES};

/// Passes `literal`.
#[inline(always)]
pub(super) fn skip_literal<const N: usize>(bytes: &[u8], at: usize, literal: &[u8; N]) -> Option<usize> {
    (bytes.get(at..)?.first_chunk::<N>()? == literal).then_some(at + N)
}

/// A string: the place of its closing quote, and whether it holds a backslash.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) end: usize,
    pub(super) escaped: bool,
}

/// Passes the inside of a string, from behind its opening quote.
#[inline(always)]
pub(super) fn find_end(bytes: &[u8], start: usize) -> Option<Text> {
    match next_quote(bytes, start) {
        Some(end) => Some(Text { end, escaped: false }),
        None => find_end_escaped(bytes, start),
    }
}

#[cold]
#[inline(never)]
fn find_end_escaped(bytes: &[u8], start: usize) -> Option<Text> {
    let mut at = next_special(bytes, start);
    while bytes.get(at) == Some(&b'\\') {
        at = next_special(bytes, at + canonical_escape(&bytes[at..])?);
    }
    (bytes.get(at) == Some(&b'"')).then_some(Text { end: at, escaped: true })
}

/// The length of the escape that begins here, if it is the one the writer would have used.
fn canonical_escape(bytes: &[u8]) -> Option<usize> {
    match *bytes.get(1)? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(2),
        b'u' => match bytes.get(2..6)? {
            // The five controls with a letter of their own are never spelled in hex.
            [b'0', b'0', b'0', b'8' | b'9' | b'a' | b'c' | b'd'] => None,
            [b'0', b'0', b'0' | b'1', b'0'..=b'9' | b'a'..=b'f'] => Some(6),
            _ => None,
        },
        _ => None,
    }
}

/// Passes any value. If it is a container, it is number `depth` of those open.
#[inline(always)]
pub(super) fn skip_value(bytes: &[u8], at: usize, depth: usize) -> Option<usize> {
    match bytes.get(at)? {
        b'"' => Some(find_end(bytes, at + 1)?.end + 1),
        b'{' => skip_object(bytes, at + 1, depth),
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
    skip_members(bytes, start, depth, |_, _, _| ())
}

/// Passes an object, from behind its brace, and shows `see` each key and where its value begins and ends.
#[inline(always)]
pub(super) fn skip_members(
    bytes: &[u8],
    start: usize,
    depth: usize,
    mut see: impl FnMut(&[u8], usize, usize),
) -> Option<usize> {
    if depth > MAX_DEPTH {
        return None;
    }
    if *bytes.get(start)? == b'}' {
        return Some(start + 1);
    }
    let mut at = start;
    let mut before = None;
    loop {
        let opened = skip_literal(bytes, at, b"\"")?;
        let text = find_end(bytes, opened)?;
        let key = ScannedKey::new(bytes, opened, text);
        if before.is_some_and(|before: ScannedKey| !before.stands_before(&key)) {
            return None;
        }
        before = Some(key);
        let value = skip_literal(bytes, text.end, b"\":")?;
        at = skip_value(bytes, value, depth + 1)? + 1;
        see(key.raw, value, at - 1);
        match bytes.get(at - 1)? {
            b',' => {}
            b'}' => return Some(at),
            _ => return None,
        }
    }
}

#[derive(Clone, Copy)]
struct ScannedKey<'a> {
    raw: &'a [u8],
    escaped: bool,
    /// Its first eight bytes as a number that sorts like them, filled up with zeros.
    head: u64,
}

impl<'a> ScannedKey<'a> {
    #[inline(always)]
    fn new(bytes: &'a [u8], start: usize, text: Text) -> ScannedKey<'a> {
        let raw = &bytes[start..text.end];
        let head = match bytes[start..].first_chunk::<8>() {
            Some(head) if raw.len() < 8 => u64::from_be_bytes(*head) & !(u64::MAX >> (8 * raw.len())),
            Some(head) => u64::from_be_bytes(*head),
            None => raw
                .iter()
                .rev()
                .fold(0, |head, &byte| head >> 8 | u64::from(byte) << 56),
        };
        ScannedKey {
            raw,
            escaped: text.escaped,
            head,
        }
    }

    #[inline(always)]
    fn stands_before(&self, next: &ScannedKey) -> bool {
        if self.escaped || next.escaped {
            return decoded(self.raw).lt(decoded(next.raw));
        }
        if self.head == next.head {
            self.raw < next.raw
        } else {
            self.head < next.head
        }
    }
}

/// The bytes that an escaped text stands for; raw texts sort differently, because of the backslash.
fn decoded(raw: &[u8]) -> impl Iterator<Item = u8> {
    let mut rest = raw;
    std::iter::from_fn(move || {
        let (byte, length) = match *rest {
            [] => return None,
            [b'\\', b'u', _, _, high, low, ..] => ((high - b'0') << 4 | char::from(low).to_digit(16)? as u8, 6),
            [b'\\', b'b', ..] => (0x08, 2),
            [b'\\', b'f', ..] => (0x0c, 2),
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', itself, ..] => (itself, 2),
            [plain, ..] => (plain, 1),
        };
        rest = &rest[length..];
        Some(byte)
    })
}

/// Passes a canonical number.
#[inline(always)]
pub(super) fn skip_number(bytes: &[u8], at: usize) -> Option<usize> {
    match bytes.get(at..at + 2) {
        // Most integers have one digit, and the place after it is then known without computing anything.
        Some([b'0'..=b'9', b',' | b'}' | b']']) => Some(at + 1),
        _ => Some(scan_number(bytes, at)?.0),
    }
}

/// Passes a canonical number; the place after it and its value, infinite if it is too large.
#[inline(always)]
pub(super) fn scan_number(bytes: &[u8], start: usize) -> Option<(usize, f64)> {
    let negative = *bytes.get(start)? == b'-';
    let first = start + usize::from(negative);
    let (point, whole) = digits(bytes, first, 0);
    let count = point - first;
    if count == 0 || (count > 1 && bytes[first] == b'0') {
        return None;
    }
    let next = bytes.get(point).copied().unwrap_or(b' ');
    let (end, size) = match next {
        b'.' => {
            let (end, mantissa) = digits(bytes, point + 1, whole);
            let decimals = end - point - 1;
            // Fifteen digits name one float only, so this is its shortest spelling but for zeros and small numbers.
            let plain = (1..=MAX_PLAIN_DIGITS - 1).contains(&decimals)
                && count + decimals <= MAX_PLAIN_DIGITS
                && (bytes[end - 1] != b'0' || decimals == 1)
                && (mantissa >= SMALLEST_PLAIN[decimals] || (mantissa == 0 && decimals == 1));
            if !plain || bytes.get(end) == Some(&b'e') {
                return scan_as_float(bytes, start);
            }
            // Both numbers are exact, so the quotient is correctly rounded.
            (end, mantissa as f64 / POWERS_OF_TEN[decimals])
        }
        b'e' => return scan_as_float(bytes, start),
        _ if count > EXACT_DIGITS => return scan_large_int(bytes, start, first, point),
        _ if whole == 0 && negative => return None,
        _ => (point, whole as f64),
    };
    Some((end, if negative { -size } else { size }))
}

/// Passes a canonical integer that fits into 64 bits.
#[inline(always)]
pub(super) fn scan_i64(bytes: &[u8], start: usize) -> Option<(usize, i64)> {
    if let Some([digit @ b'0'..=b'9', b',']) = bytes.get(start..start + 2) {
        return Some((start + 1, i64::from(digit - b'0')));
    }
    let negative = *bytes.get(start)? == b'-';
    let first = start + usize::from(negative);
    let (end, size) = digits(bytes, first, 0);
    let count = end - first;
    if count == 0 || (bytes[first] == b'0' && end - start > 1) {
        return None;
    }
    if count > EXACT_DIGITS {
        return Some((end, std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?));
    }
    Some((end, if negative { -(size as i64) } else { size as i64 }))
}

/// Numbers of so many digits always fit into 63 bits.
const EXACT_DIGITS: usize = 18;

/// Decimals of so many digits read back as themselves from a float.
const MAX_PLAIN_DIGITS: usize = 15;

const POWERS_OF_TEN: [f64; MAX_PLAIN_DIGITS] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
];

/// The mantissa of 0.0001 with as many decimals as the index; with fewer, anything but zero is large enough.
const SMALLEST_PLAIN: [u64; MAX_PLAIN_DIGITS] = [
    1,
    1,
    1,
    1,
    1,
    10,
    100,
    1_000,
    10_000,
    100_000,
    1_000_000,
    10_000_000,
    100_000_000,
    1_000_000_000,
    10_000_000_000,
];

/// Appends digits to the number `before`; gives the place behind them and the number modulo 2^64.
#[inline(always)]
fn digits(bytes: &[u8], start: usize, before: u64) -> (usize, u64) {
    const ONES: u64 = u64::MAX / 255;
    let (mut at, mut number) = (start, before);
    // Eight bytes in one step: numbers are mostly short and their length is what a processor guesses wrong.
    while let Some(eight) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*eight) ^ (ONES * u64::from(b'0'));
        // A digit is 0..=9 now: its high half is empty, also after adding six. Only the first other byte counts.
        let others = (word | word.wrapping_add(ONES * 6)) & (ONES * 0xf0);
        let count = others.trailing_zeros() as usize / 8;
        if count > 0 {
            // Move the digits to the top and leave zeros below, as if the number had leading ones.
            let aligned = word << (64 - 8 * count);
            let pairs = aligned.wrapping_mul(10).wrapping_add(aligned >> 8);
            let low = (pairs & 0x0000_00ff_0000_00ff).wrapping_mul((1_000_000 << 32) + 100);
            let high = (pairs >> 16 & 0x0000_00ff_0000_00ff).wrapping_mul((10_000 << 32) + 1);
            number = number
                .wrapping_mul(SCALES[count])
                .wrapping_add(low.wrapping_add(high) >> 32);
            at += count;
        }
        if count < 8 {
            return (at, number);
        }
    }
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        number = number.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    (at, number)
}

const SCALES: [u64; 9] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000];

/// Passes a float that only reading it and spelling it again can prove.
#[cold]
#[inline(never)]
fn scan_as_float(bytes: &[u8], start: usize) -> Option<(usize, f64)> {
    let rest = &bytes[start..];
    let length = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e'));
    let text = &rest[..length.unwrap_or(rest.len())];
    let float = std::str::from_utf8(text)
        .ok()?
        .parse()
        .ok()
        .filter(|float: &f64| float.is_finite())?;
    (spell(float).as_bytes() == text).then_some((start + text.len(), float))
}

#[cold]
#[inline(never)]
fn scan_large_int(bytes: &[u8], start: usize, first: usize, end: usize) -> Option<(usize, f64)> {
    let float = std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()?;
    (end - first <= MAX_INT_DIGITS).then_some((end, float))
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
/// `None` says only that the proof failed: the line may be an event in another spelling.
#[must_use]
pub fn scan_event(line: &[u8]) -> Option<EventSpans> {
    if line.len() > MAX_LINE_BYTES || simdutf8::basic::from_utf8(line).is_err() {
        return None;
    }
    let at = skip_literal(line, 0, b"{\"hash\":\"")?;
    let at = skip_hex_digits(line, at)?;
    let (op, at) = scan_text(line, skip_literal(line, at, b"\",\"op\":\"")?)?;
    let start = skip_literal(line, at, b",\"prev_hash\":\"")?;
    let end = if line.get(start) == Some(&b'"') {
        start
    } else {
        skip_hex_digits(line, start)?
    };
    let prev_hash = Span::new(start, end);
    let start = skip_literal(line, end, b"\",\"record\":")?;
    let (fields, at) = scan_record_at(line, start, 2)?;
    let record = Span::new(start, at);
    let (record_id, at) = scan_text(line, skip_literal(line, at, b",\"record_id\":\"")?)?;
    let (at, recursion_depth) = scan_i64(line, skip_literal(line, at, b",\"recursion_depth\":")?)?;
    let (at, seq) = scan_i64(line, skip_literal(line, at, b",\"seq\":")?)?;
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
/// `None` says only that the proof failed: it may be a record in another spelling.
#[must_use]
pub fn scan_record(record: &[u8]) -> Option<RecordSpans> {
    if record.len() > MAX_LINE_BYTES || simdutf8::basic::from_utf8(record).is_err() {
        return None;
    }
    let (fields, at) = scan_record_at(record, 0, 2)?;
    (at == record.len()).then_some(fields)
}

/// Shows `see` key and value of each member of an object that is canonical but for the order of its keys, and is the container
/// number `depth`, until `see` returns false.
///
/// `None` if it refused one, or if the text could not be proved canonical; it may still be a valid object.
pub fn scan_members<'a>(object: &'a [u8], depth: usize, mut see: impl FnMut(&'a str, &'a str) -> bool) -> Option<()> {
    let object = simdutf8::basic::from_utf8(object).ok()?;
    let bytes = object.as_bytes();
    let mut at = skip_literal(bytes, 0, b"{")?;
    loop {
        let opened = skip_literal(bytes, at, b"\"")?;
        let end = find_end(bytes, opened)?.end;
        let value = skip_literal(bytes, end, b"\":")?;
        at = skip_value(bytes, value, depth + 1)? + 1;
        if !see(&object[opened..end], &object[value..at - 1]) {
            return None;
        }
        match bytes.get(at - 1)? {
            b',' => {}
            b'}' => return (at == bytes.len()).then_some(()),
            _ => return None,
        }
    }
}

#[inline(always)]
fn skip_hex_digits(bytes: &[u8], at: usize) -> Option<usize> {
    let digits = bytes.get(at..)?.first_chunk::<64>()?;
    // Looks at all of them, whatever the first ones say: that way the compiler compares many at once.
    let hex = digits.iter().fold(true, |hex, byte| {
        hex & (byte.wrapping_sub(b'0') < 10 || byte.wrapping_sub(b'a') < 6)
    });
    hex.then_some(at + 64)
}

/// Passes a string from behind its opening quote; where its text stands and the place after the closing quote.
#[inline(always)]
fn scan_text(bytes: &[u8], start: usize) -> Option<(Span, usize)> {
    let end = find_end(bytes, start)?.end;
    Some((Span::new(start, end), end + 1))
}

/// Passes a record that is the container number `depth`.
#[inline(always)]
fn scan_record_at(bytes: &[u8], origin: usize, depth: usize) -> Option<(RecordSpans, usize)> {
    scan_usual_record(bytes, origin, depth).or_else(|| scan_any_record(bytes, origin, depth))
}

/// Passes a record with exactly the twelve fields that records have, in their order.
#[inline(always)]
fn scan_usual_record(bytes: &[u8], origin: usize, depth: usize) -> Option<(RecordSpans, usize)> {
    let field = |text: Span| Some(Span::new(text.start as usize - origin, text.end as usize - origin));
    let at = skip_literal(bytes, origin, b"{\"confidence\":")?;
    let (at, confidence) = scan_number(bytes, at)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"data\":")?, depth + 1)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"epistemic_boundary\":")?, depth + 1)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"evidence\":")?, depth + 1)?;
    let (id, at) = scan_text(bytes, skip_literal(bytes, at, b",\"id\":\"")?)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"is_hypothesis\":")?, depth + 1)?;
    let (kind, at) = scan_text(bytes, skip_literal(bytes, at, b",\"kind\":\"")?)?;
    let (_, at) = scan_text(bytes, skip_literal(bytes, at, b",\"label\":\"")?)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"model_assumptions\":")?, depth + 1)?;
    let at = skip_value(bytes, skip_literal(bytes, at, b",\"recursion_depth\":")?, depth + 1)?;
    let (_, at) = scan_text(bytes, skip_literal(bytes, at, b",\"source_type\":\"")?)?;
    let (status, at) = scan_text(bytes, skip_literal(bytes, at, b",\"status\":\"")?)?;
    let at = match skip_literal(bytes, at, b"}") {
        Some(at) => at,
        // A salt may follow: most lines have one.
        None => skip_literal(bytes, scan_text(bytes, skip_literal(bytes, at, b",\"~\":\"")?)?.1, b"}")?,
    };
    let confidence = Some(confidence).filter(|float| float.is_finite());
    Some((
        RecordSpans {
            id: field(id),
            kind: field(kind),
            status: field(status),
            confidence,
        },
        at,
    ))
}

#[inline(never)]
fn scan_any_record(bytes: &[u8], origin: usize, depth: usize) -> Option<(RecordSpans, usize)> {
    let mut fields = RecordSpans::default();
    let text =
        |start: usize, end: usize| (bytes[start] == b'"').then(|| Span::new(start + 1 - origin, end - 1 - origin));
    let opened = skip_literal(bytes, origin, b"{")?;
    // These four names need no escapes, so their only canonical spelling is the raw one.
    let at = skip_members(bytes, opened, depth, |key, start, end| match key {
        b"id" => fields.id = text(start, end),
        b"kind" => fields.kind = text(start, end),
        b"status" => fields.status = text(start, end),
        b"confidence" => {
            fields.confidence = scan_number(bytes, start)
                .map(|number| number.1)
                .filter(|float| float.is_finite());
        }
        _ => {}
    })?;
    Some((fields, at))
}

#[cfg(test)]
mod tests {
    use super::super::{Value, parse, write_value};
    use super::*;

    /// Whether the scan takes the whole text for canonical; and that it is right.
    fn accepted(text: &str) -> bool {
        let accepted = skip_value(text.as_bytes(), 0, 1) == Some(text.len());
        let mut out = Vec::new();
        if let Ok(value) = parse(text.as_bytes()) {
            write_value(&value, &mut out);
        }
        assert_eq!(
            accepted,
            out == text.as_bytes(),
            "the scan and the round trip agree on {text}"
        );
        accepted
    }

    #[test]
    fn only_canonical_escapes_pass() {
        for text in [
            r#""\"\\\b\f\n\r\t""#,
            r#""\u0000\u000b\u001f""#,
            "\"/\u{7f}é\u{2028}😀\"",
        ] {
            assert!(accepted(text), "{text}");
        }
        for escape in r"\u0008 \u000a \u001F \u0020 \u00e9 \/ \u2028 \ \u00 \x".split(' ') {
            assert!(!accepted(&format!("\"{escape}\"")), "{escape}");
        }
        for text in [r#"""#, r#""\"#, "\"\\u00", "\"\n\"", "\"\u{1f}\""] {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn keys_ascend_by_what_they_say() {
        for text in [
            r#"{"":1,"\u0000":2,"\n":3," ":4,"A":5,"a":6,"aa":7,"é":8,"😀":9}"#,
            r#"{"a\n":1,"a\"":2,"aA":3,"a\\":4,"a]":5}"#,
            r#"{"abcdefgh":1,"abcdefgh1":2,"abcdefgh2":3,"abcdefgi":4}"#,
        ] {
            assert!(accepted(text), "{text}");
        }
        for text in [
            r#"{"A":1,"\n":2}"#,
            r#"{"a":1,"a":2}"#,
            r#"{"\n":1,"\n":2}"#,
            r#"{"b":1,"a":2}"#,
            r#"{"abcdefgh2":1,"abcdefgh1":2}"#,
            r#"{"abcdefgh":1,"abcdefgh":2}"#,
            r#"{"a]":1,"a\\":2}"#,
        ] {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn there_is_no_room_for_white_space() {
        for text in ["[]", "{}", r#"[1,[],{"a":{}},null,true,false]"#] {
            assert!(accepted(text), "{text}");
        }
        let texts = r#"[ ];{ };[1, 2];[1,];[,1];[1;[1};{"a": 1};{"a":1,};{"a";{"a":;tru;nulll"#;
        for text in texts.split(';') {
            assert!(!accepted(text), "{text}");
        }
    }

    #[test]
    fn depth_is_counted_in_open_containers() {
        let arrays = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(accepted(&arrays(MAX_DEPTH)));
        assert!(!accepted(&arrays(MAX_DEPTH + 1)));
        let objects = |depth: usize| format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert!(accepted(&objects(MAX_DEPTH)));
        assert!(!accepted(&objects(MAX_DEPTH + 1)));
    }

    /// Whether the scan takes a text for a canonical number; and that it is right, whatever stands behind it.
    fn number_accepted(text: &str) -> bool {
        let mut rewritten = Vec::new();
        let read = parse(text.as_bytes()).ok();
        if let Some(value) = &read {
            write_value(value, &mut rewritten);
        }
        let canonical = !text.is_empty() && rewritten == text.as_bytes();
        let float = read
            .as_ref()
            .and_then(Value::as_f64)
            .map(f64::to_bits)
            .filter(|_| canonical);
        let int = read.as_ref().and_then(Value::as_i64).filter(|_| canonical);
        for behind in ["", "}", "]", ",", ",\"seq\":1234567}"] {
            let padded = format!("{text}{behind}");
            let bytes = padded.as_bytes();
            let whole = |end: &usize| *end == text.len();
            assert_eq!(skip_number(bytes, 0).filter(whole).is_some(), canonical, "{padded}");
            let found = scan_number(bytes, 0).filter(|found| whole(&found.0));
            assert_eq!(found.is_some(), canonical, "{padded}");
            let finite = found.map(|found| found.1).filter(|float| float.is_finite());
            assert_eq!(finite.map(f64::to_bits), float, "{padded}");
            let small = scan_i64(bytes, 0).filter(|found| whole(&found.0)).map(|found| found.1);
            assert_eq!(small, int, "{padded}");
        }
        canonical
    }

    #[test]
    fn the_one_spelling_passes() {
        let texts = "0 7 -7 10 12345678 123456789 1234567890123456 123456789012345678 -123456789012345678 \
            9223372036854775807 -9223372036854775808 9223372036854775808 0.0 -0.0 1.0 0.5 0.95 -0.7 0.0001 \
            0.00012345 0.001 10.0 123456.789 12345678901234.5 123456789012345.0 1234567890123456.0 \
            9999999999999998.0 0.1234567890123456 1e-05 1.5e-05 1e+16 1.5e+16 1e+100 5e-324 \
            1.7976931348623157e+308 562949953421312.2 1000000000000000.0 0.30000000000000004";
        for text in texts.split(' ') {
            assert!(number_accepted(text), "{text}");
        }
    }

    #[test]
    fn no_other_spelling_passes() {
        let texts = "- -0 00 01 -01 +1 1. .5 -.5 1.00 0.50 00.5 01.5 0.00 -0.00 0.00001 0.00009 0.000012345 1e5 \
            1E+16 1e16 1.0e+16 1e-5 1e-005 1e+15 10000000000000000.0 12345678901234567.0 0.1e1 1.5e 1e 1e+ 1e400 \
            -1e+400 0.12345678901234567 562949953421312.3 0.1000000000000000055 1.0e5 1-2 1.2.3 1+1 0x1 \
            2.9802322387695313e-08 NaN inf nan infinity";
        for text in texts.split(' ').chain([""]) {
            assert!(!number_accepted(text), "{text}");
        }
    }

    #[test]
    fn every_length_is_judged() {
        let digits = "1234567890".repeat(4);
        let mut plain = 0;
        for length in 1..=digits.len() {
            assert!(number_accepted(&digits[..length]));
            for decimals in 1..=20 {
                plain += u32::from(number_accepted(&format!(
                    "{}.{}",
                    &digits[..length],
                    &digits[..decimals]
                )));
                let zeros = "0".repeat(length.min(8));
                plain += u32::from(number_accepted(&format!("0.{zeros}{}", &digits[..decimals])));
            }
        }
        assert!(plain > 100, "{plain}");
        assert!(number_accepted(&"9".repeat(MAX_INT_DIGITS)));
        assert!(!number_accepted(&"9".repeat(MAX_INT_DIGITS + 1)));
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

    fn text(span: Option<Span>, whole: &str) -> Option<&str> {
        span.and_then(|span| std::str::from_utf8(span.of(whole.as_bytes())).ok())
    }

    #[test]
    fn the_fields_of_an_event_are_found() {
        let line = line(RECORD);
        let spans = scan_event(line.as_bytes()).expect("a canonical event");
        assert_eq!(text(Some(spans.op), &line), Some("upsert"));
        assert_eq!(text(Some(spans.prev_hash), &line), Some(HASH));
        assert_eq!(text(Some(spans.record), &line), Some(RECORD));
        assert_eq!(text(Some(spans.record_id), &line), Some("r-1"));
        assert_eq!(text(Some(spans.ts), &line), Some("2026-01-02T03:04:05.000006Z"));
        assert_eq!((spans.recursion_depth, spans.seq), (-3, 42));
        assert_eq!(text(spans.fields.id, RECORD), Some("r-1"));
        assert_eq!(text(spans.fields.kind, RECORD), Some("fact"));
        assert_eq!(text(spans.fields.status, RECORD), Some("active"));
        assert_eq!(spans.fields.confidence, Some(0.95));
        assert_eq!(scan_record(RECORD.as_bytes()), Some(spans.fields));
    }

    #[test]
    fn records_of_any_shape_are_found() {
        let tombstone = r#"{"id":"r-1","status":"tombstone"}"#;
        let line = line(tombstone);
        let fields = scan_event(line.as_bytes())
            .map(|spans| spans.fields)
            .unwrap_or_default();
        assert_eq!(text(fields.id, tombstone), Some("r-1"));
        assert_eq!(text(fields.status, tombstone), Some("tombstone"));
        assert_eq!((fields.kind, fields.confidence), (None, None));
        assert_eq!(scan_record(b"{}"), Some(RecordSpans::default()));
        let other = br#"{"confidence":1,"id":7,"kind":null,"status":["x"]}"#;
        let expected = RecordSpans {
            confidence: Some(1.0),
            ..RecordSpans::default()
        };
        assert_eq!(scan_record(other), Some(expected));
        let one_more = RECORD.replace("\"active\"", "\"active\",\"zeal\":1");
        let fields = scan_record(one_more.as_bytes()).unwrap_or_default();
        assert_eq!(
            (text(fields.kind, &one_more), fields.confidence),
            (Some("fact"), Some(0.95))
        );
        // A field of an inner object is not the record's.
        assert_eq!(
            scan_record(br#"{"data":{"id":"x","kind":"y"}}"#),
            Some(RecordSpans::default())
        );
    }

    #[test]
    fn any_other_line_takes_the_slow_path() {
        let good = line(RECORD);
        let first = good.replace(&format!("prev_hash\":\"{HASH}"), "prev_hash\":\"");
        assert!(scan_event(good.as_bytes()).is_some());
        assert!(scan_event(first.as_bytes()).is_some());
        assert!(scan_event(good.replace("née", "\u{2028}").as_bytes()).is_some());
        for (from, to) in [
            ("{\"hash\"", " {\"hash\""),
            ("Z\"}", "Z\"} "),
            ("Z\"}", "Z\"}\r"),
            ("Z\"}", "Z\",\"x\":1}"),
            ("\"op\":\"upsert\",", ""),
            ("\"op\":\"upsert\"", "\"op\":1"),
            ("\"op\":\"upsert\"", "\"nop\":1,\"op\":\"upsert\""),
            ("hash\":\"0", "hash\":\"A"),
            ("hash\":\"0", "hash\":\""),
            ("hash\":\"0", "hash\":\"00"),
            ("\"seq\":42", "\"seq\":-1"),
            ("\"seq\":42", "\"seq\":42.0"),
            ("\"seq\":42", "\"seq\":042"),
            ("\"seq\":42", "\"seq\":9223372036854775808"),
            ("\"seq\":42", "\"seq\":true"),
            ("depth\":-3", "depth\":-0"),
            ("depth\":-3", "depth\":-9223372036854775809"),
            (RECORD, "null"),
            (RECORD, "[]"),
            ("0.95", "0.950"),
            ("née", "n\\u00e9e"),
            ("née", "\\u2028"),
        ] {
            assert_ne!(good, good.replace(from, to), "{from}");
            assert_eq!(scan_event(good.replace(from, to).as_bytes()), None, "{from} -> {to}");
        }
        let mut bytes = good.into_bytes();
        let accent = bytes.iter().position(|&byte| byte == 0xc3).unwrap_or_default();
        bytes[accent] = 0xff;
        assert_eq!(scan_event(&bytes), None);
        assert_eq!(scan_event(b""), None);
    }

    #[test]
    fn the_borders_hold() {
        let padded = |length: usize| {
            let empty = line(r#"{"id":""}"#).len();
            line(&format!(r#"{{"id":"{}"}}"#, "x".repeat(length - empty)))
        };
        assert!(scan_event(padded(MAX_LINE_BYTES).as_bytes()).is_some());
        assert_eq!(scan_event(padded(MAX_LINE_BYTES + 1).as_bytes()), None);
        // The event is container 1 and its record container 2, also where the record stands alone.
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let nested = |depth: usize| format!(r#"{{"a":{}}}"#, deep(depth));
        assert!(scan_event(line(&nested(198)).as_bytes()).is_some());
        assert_eq!(scan_event(line(&nested(199)).as_bytes()), None);
        assert!(scan_record(nested(198).as_bytes()).is_some());
        assert_eq!(scan_record(nested(199).as_bytes()), None);
        let usual = |depth: usize| RECORD.replace("\"b\":{}", &format!("\"b\":{}", deep(depth)));
        assert!(scan_event(line(&usual(197)).as_bytes()).is_some());
        assert_eq!(scan_event(line(&usual(198)).as_bytes()), None);
    }
}
