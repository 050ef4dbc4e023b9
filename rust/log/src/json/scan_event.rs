//! Recognises an event or a record that is spelled exactly as we would, and finds its parts.

use super::MAX_LINE_BYTES;
use super::scan::{find_end, skip_literal, skip_members, skip_value};
use super::scan_number::{scan_i64, scan_number};

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

/// Where the fields of an event stand in its line. Spans of strings lie between the quotes and hold the text as it
/// is written, escapes included.
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

/// Where the fields of a record stand that loading looks at. Offsets count from the record's `{`; spans lie between
/// the quotes and hold the text as it is written, escapes included.
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

/// Proves that a line (without its line end) is UTF-8 and, byte for byte, the canonical form of an event with its
/// eight fields, and finds them.
///
/// `None` says only that the proof failed: the line may be a good event in another spelling.
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

/// Proves that a text is UTF-8 and one canonical JSON object, and finds the fields of a record in it.
///
/// Its depth is counted as in its event, of which it is the second container.
/// `None` says only that the proof failed: the text may be a good record in another spelling.
#[must_use]
pub fn scan_record(record: &[u8]) -> Option<RecordSpans> {
    if record.len() > MAX_LINE_BYTES || simdutf8::basic::from_utf8(record).is_err() {
        return None;
    }
    let (fields, at) = scan_record_at(record, 0, 2)?;
    (at == record.len()).then_some(fields)
}

/// Passes 64 lower-case hex digits.
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

/// Passes a record with exactly the twelve fields that records have. Their order is known, so there is nothing to
/// compare or look up.
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
    use super::*;

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
