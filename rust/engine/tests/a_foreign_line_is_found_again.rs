//! A line of another tool that lost a byte is found again, whichever byte it was and however it is spelled.

use chronomemory::testing::digest::Hex;
use chronomemory::testing::event::line::{Event, Trust};
use chronomemory::testing::event::mend::{Budget, Neighbours, mend, mend_cut};
use chronomemory::testing::json;
use chronomemory::{Value, sha256};

type Spelling = fn(&Value, &mut Vec<u8>);
const SPACED: Spelling = json::write_value_spaced;
const COMPACT: Spelling = json::write_value;

/// One place of so many is tried: without optimisation a search takes its time. `tests/faults/mended.py` tries them all.
const SOME: usize = 5;

/// A line as the standard library of another language writes it: the fields in the order of their making.
fn line(prev: &str, id: &str, spell: Spelling, is_sorted: bool) -> Vec<u8> {
    let record = format!(
        "{{\"id\": \"{id}\", \"label\": \"tea, \\\"hot\\\"\", \"confidence\": 0.7, \"data\": {{\"zeta\": [1, true], \"a\": {{}}}}}}"
    );
    let fields = [
        ("seq", "2".to_owned()),
        ("ts", "\"2026-01-01T09:00:00Z\"".to_owned()),
        ("op", "\"upsert\"".to_owned()),
        ("record_id", format!("\"{id}\"")),
        ("record", record),
        ("prev_hash", format!("\"{prev}\"")),
        ("recursion_depth", "0".to_owned()),
    ];
    let pairs = |fields: &[(&str, String)]| {
        let pairs: Vec<String> = fields
            .iter()
            .map(|(key, value)| format!("\"{key}\": {value}"))
            .collect();
        format!("{{{}}}", pairs.join(", "))
    };
    let mut payload = Vec::new();
    spell(
        &json::parse(pairs(&fields).as_bytes()).expect("a good line"),
        &mut payload,
    );
    let mut all = fields.to_vec();
    all.insert(6, ("hash", format!("\"{}\"", sha256(&payload).text())));
    if is_sorted {
        all.sort();
    }
    pairs(&all).into_bytes()
}

fn hash_of(line: &[u8]) -> Hex {
    Event::read(line, Trust::Nothing).expect("a good line").hash(line)
}

fn is_readable(line: &[u8]) -> bool {
    Event::read(line, Trust::Nothing).is_ok()
}

/// What is found is the line byte for byte, or only its spaces are others.
#[track_caller]
fn assert_mended(damaged: &[u8], whole: &[u8], neighbours: Neighbours, what: &str) {
    if damaged.contains(&b'\n') || is_readable(damaged) {
        return;
    }
    let found = mend(damaged, neighbours, &mut Budget::of(100_000_000)).unwrap_or_default();
    let without_spaces = |line: &[u8]| {
        line.iter()
            .copied()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect()
    };
    let (found, whole): (Vec<u8>, Vec<u8>) = (without_spaces(&found), without_spaces(whole));
    assert_eq!(found, whole, "{what}: {}", String::from_utf8_lossy(damaged));
}

/// The last line of a log is named by no other.
fn for_every_line(check: impl Fn(&[u8], Neighbours)) {
    let head = sha256(b"before");
    let lines = [(SPACED, false, true), (COMPACT, false, false), (SPACED, true, true)];
    for (spell, is_sorted, is_named) in lines {
        let whole = line(head.text(), "gr\u{fc}n", spell, is_sorted);
        let neighbours = Neighbours {
            before: Some(Some(head)),
            after: is_named.then(|| hash_of(&whole)),
        };
        check(&whole, neighbours);
    }
}

#[test]
fn any_altered_byte_is_found_again() {
    for_every_line(|whole, neighbours| {
        for at in 0..whole.len() {
            let mut altered = whole.to_vec();
            for byte in [whole[at] ^ 1 << (at % 8), b"\"q"[at % 2]] {
                altered[at] = byte;
                assert_mended(&altered, whole, neighbours, "altered");
            }
        }
    });
}

#[test]
fn any_lost_byte_is_found_again() {
    for_every_line(|whole, neighbours| {
        for at in (0..whole.len()).step_by(SOME) {
            let lost = [&whole[..at], &whole[at + 1..]].concat();
            assert_mended(&lost, whole, neighbours, "lost");
        }
    });
}

#[test]
fn any_byte_that_slipped_in_is_found() {
    for_every_line(|whole, neighbours| {
        for at in (0..=whole.len()).step_by(SOME) {
            let more = [&whole[..at], b"7", &whole[at..]].concat();
            assert_mended(&more, whole, neighbours, "slipped in");
        }
    });
}

#[test]
fn a_line_that_a_newline_cut_is_one_again() {
    for_every_line(|whole, neighbours| {
        let expected = [whole, b"\n"].concat();
        for at in 1..whole.len() {
            let found = mend_cut(&whole[..at], &whole[at + 1..], neighbours);
            assert_eq!(found.as_ref(), Some(&expected), "in the place of byte {at}");
            let found = mend_cut(&whole[..at], &whole[at..], neighbours).unwrap_or_default();
            let found = &found[..found.len().saturating_sub(1)];
            assert_eq!(hash_of(found), hash_of(whole), "before byte {at}");
        }
    });
}

#[test]
fn two_lines_that_grew_together_are_two_again() {
    for end in ["", "\r"] {
        let first = [&line("", "one", SPACED, false), end.as_bytes()].concat();
        let second = line(hash_of(&first).text(), "two", COMPACT, false);
        let expected = [&first[..], b"\n", &second[..], b"\n"].concat();
        let neighbours = Neighbours {
            before: Some(None),
            after: Some(hash_of(&second)),
        };
        for between in [&b"J"[..], b""] {
            let grown = [&first[..], between, &second[..]].concat();
            assert_eq!(mend(&grown, neighbours, &mut Budget::of(0)), Some(expected.clone()));
        }
    }
}

#[test]
fn an_escape_is_found_again() {
    let plain = line("", "\u{fc}", SPACED, false);
    let text = String::from_utf8(plain.clone()).expect("a good line");
    let whole = text.replace('\u{fc}', "\\u00fc").into_bytes();
    assert_eq!(hash_of(&whole), hash_of(&plain));
    let start = memchr::memmem::find(&whole, b"\\u00fc").expect("a good line");
    for at in start..start + 6 {
        let mut altered = whole.clone();
        altered[at] = b'4';
        let found = mend(&altered, Neighbours::default(), &mut Budget::of(100_000_000)).unwrap_or_default();
        assert_eq!(
            hash_of(&found[..found.len().saturating_sub(1)]),
            hash_of(&whole),
            "byte {at}"
        );
    }
}

#[test]
fn nothing_is_made_up() {
    let whole = line("", "tea", SPACED, false);
    let elsewhere = Neighbours {
        before: Some(Some(sha256(b"elsewhere"))),
        after: None,
    };
    let mut altered = whole;
    altered[100] ^= 1;
    assert_eq!(mend(&altered, elsewhere, &mut Budget::of(10_000_000)), None);
    assert_eq!(mend(&altered, Neighbours::default(), &mut Budget::of(10)), None);
    altered[90] ^= 1;
    assert_eq!(mend(&altered, Neighbours::default(), &mut Budget::of(10_000_000)), None);
}
