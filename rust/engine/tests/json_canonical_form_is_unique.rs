//! A value has one canonical text, and the scan accepts that text and no other.

use chronomemory::testing::json::{EventSpans, parse, scan_event, scan_record, write_value, write_value_spaced};
use chronomemory::{Value, write_f64, write_string};
use proptest::collection::vec;
use proptest::prelude::*;

fn written(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    write_value(value, &mut out);
    out
}

/// Characters on which writers differ: quotes, controls, neighbours of a backslash, line separators, all widths.
fn text() -> impl Strategy<Value = String> {
    let awkward = prop::sample::select(
        "\"\\\u{0}\u{1}\u{8}\t\n\u{b}\u{c}\r\u{1f} !/[]^abz\u{7f}\u{80}\u{85}é\u{7ff}\u{2028}\u{2029}\u{ffff}😀\u{10ffff}"
            .chars()
            .collect::<Vec<_>>(),
    );
    let character = prop_oneof![4 => prop::char::range('a', 'f'), 2 => awkward, 1 => any::<char>()];
    vec(character, 0..40).prop_map(|characters| characters.into_iter().collect())
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![
        any::<f64>().prop_filter("JSON has no other", |float| float.is_finite()),
        (any::<i32>(), 0..12).prop_map(|(digits, decimals)| f64::from(digits) / 10_f64.powi(decimals)),
        any::<i64>().prop_map(|whole| whole as f64),
        (any::<u32>(), 0..40).prop_map(|(odd, power)| f64::from(odd) / 2_f64.powi(power)),
    ]
}

fn int() -> impl Strategy<Value = Value> {
    prop_oneof![
        (-20_i64..20).prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        "-?[1-9][0-9]{15,40}".prop_filter_map("digits make an integer", |digits| Value::decimal(&digits)),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        int(),
        float().prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::Array),
            vec((prop_oneof!["[ab]{0,10}", text()], inner), 0..5).prop_map(Value::object),
        ]
    })
}

/// A record: the usual twelve fields, some of them, or any others.
fn record() -> impl Strategy<Value = Value> {
    let names = [
        "confidence",
        "data",
        "epistemic_boundary",
        "evidence",
        "id",
        "is_hypothesis",
        "kind",
        "label",
        "model_assumptions",
        "recursion_depth",
        "source_type",
        "status",
    ];
    let usual = (float(), vec(text(), 5), vec(value(), 6)).prop_map(move |(confidence, texts, values)| {
        let mut texts = texts.into_iter().map(Value::from);
        let mut values = values.into_iter();
        let mut take = |name: &str| match name {
            "confidence" => Some(Value::from(confidence)),
            "id" | "kind" | "label" | "source_type" | "status" => texts.next(),
            _ => values.next(),
        };
        Value::object(
            names
                .iter()
                .filter_map(|name| Some((*name, take(name)?)))
                .collect::<Vec<_>>(),
        )
    });
    let name = prop_oneof![3 => prop::sample::select(names.to_vec()).prop_map(str::to_owned), 1 => text()];
    prop_oneof![usual, vec((name, value()), 0..14).prop_map(Value::object)]
}

fn event() -> impl Strategy<Value = Value> {
    let small = prop_oneof![(0_i64..100), any::<i64>()];
    let fields = (
        "[0-9a-f]{64}",
        text(),
        "([0-9a-f]{64})?",
        record(),
        text(),
        small,
        0..i64::MAX,
        text(),
    );
    fields.prop_map(|(hash, op, prev_hash, record, record_id, recursion_depth, seq, ts)| {
        Value::object([
            ("hash", Value::from(hash)),
            ("op", Value::from(op)),
            ("prev_hash", Value::from(prev_hash)),
            ("record", record),
            ("record_id", Value::from(record_id)),
            ("recursion_depth", Value::from(recursion_depth)),
            ("seq", Value::from(seq)),
            ("ts", Value::from(ts)),
        ])
    })
}

/// What a careless or a hostile hand may do to a text.
#[derive(Clone, Debug)]
enum Damage {
    Replace(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Repeat(prop::sample::Index, usize),
    Swap(prop::sample::Index, prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    let byte = || {
        let near =
            prop::sample::select(b"\"\\{}[]:,.-+eE0123456789abfnrtu/ \n\t\r\x00\x1f\x7f\x80\xc2\xe2\xff".to_vec());
        prop_oneof![4 => near, 1 => any::<u8>()]
    };
    let piece = prop::sample::select(vec![
        "0", ".0", "00", "-", "e5", "e+16", "e-05", "\\u0008", "\\u001F", "\\u001f", "\\/", "\\n", "\\u2028",
        "\u{2028}", "\"a\":1,", ",\"a\":1", "\"a\":1", "null", "[]", "{}", "1", ",", " ",
    ]);
    let piece = prop_oneof![piece.prop_map(|piece| piece.as_bytes().to_vec()), vec(byte(), 1..3)];
    prop_oneof![
        (any::<prop::sample::Index>(), byte()).prop_map(|(at, byte)| Damage::Replace(at, byte)),
        (any::<prop::sample::Index>(), piece).prop_map(|(at, piece)| Damage::Insert(at, piece)),
        (any::<prop::sample::Index>(), 1_usize..4).prop_map(|(at, length)| Damage::Remove(at, length)),
        (any::<prop::sample::Index>(), 1_usize..30).prop_map(|(at, length)| Damage::Repeat(at, length)),
        any::<(prop::sample::Index, prop::sample::Index)>().prop_map(|(one, other)| Damage::Swap(one, other)),
    ]
}

fn damaged(text: &[u8], damages: &[Damage]) -> Vec<u8> {
    let mut bytes = text.to_vec();
    for damage in damages {
        let length = bytes.len();
        if length == 0 {
            break;
        }
        match damage {
            Damage::Replace(at, byte) => bytes[at.index(length)] = *byte,
            Damage::Insert(at, piece) => drop(bytes.splice(at.index(length)..at.index(length), piece.iter().copied())),
            Damage::Remove(at, count) => drop(bytes.drain(at.index(length)..(at.index(length) + count).min(length))),
            Damage::Repeat(at, count) => {
                let piece = bytes[at.index(length)..(at.index(length) + count).min(length)].to_vec();
                drop(bytes.splice(at.index(length)..at.index(length), piece));
            }
            Damage::Swap(one, other) => bytes.swap(one.index(length), other.index(length)),
        }
    }
    bytes
}

/// Says the same as the scan, by way of the parser: the spans must hold exactly the fields.
fn check_spans(line: &[u8], event: &Value, spans: &EventSpans) {
    let raw = |text: Option<&Value>| {
        let quoted = text.map(written).unwrap_or_default();
        quoted[1..quoted.len() - 1].to_vec()
    };
    assert_eq!(spans.op.of(line), raw(event.get("op")));
    assert_eq!(spans.prev_hash.of(line), raw(event.get("prev_hash")));
    assert_eq!(spans.record_id.of(line), raw(event.get("record_id")));
    assert_eq!(spans.ts.of(line), raw(event.get("ts")));
    assert_eq!(Some(spans.seq), event.get("seq").and_then(Value::as_u64));
    assert_eq!(
        Some(spans.recursion_depth),
        event.get("recursion_depth").and_then(Value::as_i64)
    );
    let record = event.get("record").expect("an event has a record");
    let text = spans.record.of(line);
    assert_eq!(text, written(record));
    for (name, span) in [
        ("id", spans.fields.id),
        ("kind", spans.fields.kind),
        ("status", spans.fields.status),
    ] {
        let expected = record.get(name).filter(|value| value.as_str().is_some());
        assert_eq!(
            span.map(|span| span.of(text).to_vec()),
            expected.map(|value| raw(Some(value))),
            "{name}"
        );
    }
    let confidence = record.get("confidence").and_then(Value::as_f64);
    assert_eq!(spans.fields.confidence.map(f64::to_bits), confidence.map(f64::to_bits));
    assert_eq!(scan_record(text), Some(spans.fields));
}

const NAMES: [&str; 8] = [
    "hash",
    "op",
    "prev_hash",
    "record",
    "record_id",
    "recursion_depth",
    "seq",
    "ts",
];

fn names(event: &Value) -> Vec<&str> {
    event
        .as_object()
        .unwrap_or_default()
        .iter()
        .map(|pair| pair.0.as_str())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn what_is_written_reads_back_and_is_written_the_same(value in value()) {
        let compact = written(&value);
        let read = parse(&compact).expect("canonical text is JSON");
        prop_assert_eq!(&read, &value);
        prop_assert_eq!(&written(&read), &compact);
        let mut spaced = Vec::new();
        write_value_spaced(&value, &mut spaced);
        prop_assert_eq!(parse(&spaced), Ok(value));
    }

    #[test]
    fn the_order_of_the_pairs_does_not_matter(pairs in vec((text(), 0_i64..9), 0..8)) {
        let spell = |pairs: &mut dyn Iterator<Item = &(String, i64)>| {
            let mut out = b"{".to_vec();
            for (at, (key, number)) in pairs.enumerate() {
                out.extend_from_slice(if at > 0 { b" , " } else { b"" });
                write_string(key, &mut out);
                out.extend_from_slice(format!(" : {number}").as_bytes());
            }
            out.push(b'}');
            parse(&out)
        };
        let (forth, back) = (spell(&mut pairs.iter()), spell(&mut pairs.iter().rev()));
        let mut keys: Vec<&str> = pairs.iter().map(|pair| pair.0.as_str()).collect();
        keys.sort_unstable();
        let given = keys.len();
        keys.dedup();
        prop_assert_eq!(forth.is_ok(), given == keys.len());
        if let Ok(object) = forth {
            prop_assert_eq!(names(&object), keys);
            prop_assert!(scan_record(&written(&object)).is_some());
            prop_assert_eq!(Ok(object), back);
        }
    }

    #[test]
    fn a_float_reads_back_bit_for_bit(float in float()) {
        let mut out = Vec::new();
        write_f64(float, &mut out);
        let read = parse(&out).ok().as_ref().and_then(Value::as_f64);
        prop_assert_eq!(read.map(f64::to_bits), Some(float.to_bits()));
    }

    #[test]
    fn every_canonical_event_passes_the_scan(event in event()) {
        let line = written(&event);
        match (scan_event(&line), event.get("record")) {
            (Some(spans), Some(Value::Object(_))) => check_spans(&line, &event, &spans),
            (spans, _) => prop_assert!(false, "{:?} for {}", spans, String::from_utf8_lossy(&line)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5_000))]

    #[test]
    fn the_scan_accepts_no_other_text(event in event(), damages in vec(damage(), 1..4)) {
        let line = damaged(&written(&event), &damages);
        let read = parse(&line);
        let canonical = read.as_ref().is_ok_and(|value| written(value) == line);
        match scan_event(&line) {
            Some(spans) => {
                prop_assert!(canonical, "{}", String::from_utf8_lossy(&line));
                let event = read.expect("canonical text is JSON");
                prop_assert_eq!(names(&event), NAMES);
                check_spans(&line, &event, &spans);
            }
            None => {
                // Nothing canonical is turned away either, as long as it is an event.
                let is_event = read.is_ok_and(|event| looks_like_an_event(&event));
                prop_assert!(!(canonical && is_event), "{}", String::from_utf8_lossy(&line));
            }
        }
    }

    #[test]
    fn the_scan_of_a_record_is_the_round_trip(record in record(), damages in vec(damage(), 0..4)) {
        let text = damaged(&written(&record), &damages);
        let canonical = parse(&text).is_ok_and(|value| value.as_object().is_some() && written(&value) == text);
        prop_assert_eq!(scan_record(&text).is_some(), canonical, "{}", String::from_utf8_lossy(&text));
    }
}

fn looks_like_an_event(event: &Value) -> bool {
    let hex = |name: &str| {
        let text = event.get(name).and_then(Value::as_str).unwrap_or("?");
        text.bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            .then_some(text.len())
    };
    names(event) == NAMES
        && hex("hash") == Some(64)
        && matches!(hex("prev_hash"), Some(0 | 64))
        && ["op", "record_id", "ts"]
            .iter()
            .all(|name| event.get(name).and_then(Value::as_str).is_some())
        && event.get("record").and_then(Value::as_object).is_some()
        && event.get("recursion_depth").and_then(Value::as_i64).is_some()
        && event.get("seq").and_then(Value::as_i64).is_some_and(|seq| seq >= 0)
}
