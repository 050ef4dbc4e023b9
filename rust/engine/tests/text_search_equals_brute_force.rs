//! Whatever was put in, replaced, dropped, sealed and read back from a file: the best are those that brute force finds.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chronomemory::testing::disk::{Bytes, MemoryFile};
use chronomemory::testing::json::scan_record;
use chronomemory::testing::segment::ContainerWriter;
use chronomemory::testing::state::{Class, Row, spelled};
use chronomemory::testing::text::file::{self, Source};
use chronomemory::testing::text::{ContextMark, Fields, FoundField, LinkedRecord, Sealed, TextIndex};
use chronomemory::{DiskFile, TextFilter, asked};
use proptest::prelude::*;

const VOCABULARY: [&str; 12] = [
    "the", "apple", "river", "stone", "music", "night", "winter", "garden", "paper", "signal", "was", "it",
];
const K1: f64 = 0.9;
const B: f64 = 0.4;

#[derive(Clone, Debug)]
enum Step {
    Put(u32, Vec<usize>),
    Drop(u32),
    Seal,
    ThroughFile,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let words = prop::collection::vec(0..VOCABULARY.len(), 0..9);
    let step = prop_oneof![
        8 => (0..40_u32, words).prop_map(|(slot, words)| Step::Put(slot, words)),
        1 => (0..40_u32).prop_map(Step::Drop),
        1 => Just(Step::Seal),
        1 => Just(Step::ThroughFile),
    ];
    prop::collection::vec(step, 1..120)
}

fn class() -> Class {
    Class {
        kind: (*b"fact").into(),
        status: (*b"active").into(),
        face: false,
    }
}

fn put(index: &mut TextIndex, slot: u32, words: &[usize]) {
    let text: Vec<&str> = words.iter().map(|&word| VOCABULARY[word]).collect();
    put_record(
        index,
        slot,
        &format!("{{\"id\":\"{slot}\",\"label\":\"{}\"}}", text.join(" ")),
    );
}

fn put_record(index: &mut TextIndex, slot: u32, record: &str) {
    let class = class();
    index.put(&Row {
        slot,
        id_span: scan_record(record.as_bytes())
            .and_then(|fields| fields.id)
            .expect("an id"),
        record: Cow::Borrowed(record.as_bytes()),
        class: &class,
        confidence: 1.0,
        seq: 1,
    });
}

/// The id of a record in a slot: some are blocks, and some are links between blocks, which call these by their names alone.
fn id_of(slot: u32) -> String {
    let prefix = ["block:", "bedge:", "", "k\u{e4}\n\\"][slot as usize % 4];
    format!("{prefix}{slot}")
}

fn spelled_text(text: &str) -> String {
    String::from_utf8(spelled(text)).expect("UTF-8")
}

/// A record with links, a speaker, a time and a group, drawn from some numbers.
fn talk(slot: u32, numbers: &[usize]) -> String {
    let named = |(at, &number): (usize, &usize)| match at % 2 {
        0 => spelled_text(&id_of(number as u32 * 3)),
        _ => (number * 4).to_string(),
    };
    let links: Vec<String> = numbers
        .iter()
        .enumerate()
        .map(|number| format!("\"{}\"", named(number)))
        .collect();
    let mut data = format!("\"links\":[{}]", links.join(","));
    if numbers.len().is_multiple_of(2) {
        data += ",\"made_by\":\"likeness\"";
    }
    if let Some(number) = numbers.first() {
        data += &format!(",\"session\":{number}");
    }
    if let Some(number) = numbers.get(1) {
        data += &format!(",\"speaker\":\"{}\"", VOCABULARY[*number]);
    }
    if let Some(number) = numbers.get(2) {
        data += &format!(",\"time\":{}", number * 86_400);
    }
    format!(
        "{{\"data\":{{{data}}},\"id\":\"{}\",\"label\":\"\"}}",
        spelled_text(&id_of(slot))
    )
}

/// The context fields of the record in a slot, and the slots that its links lead to.
fn context_by_the_book(index: &TextIndex, known: &BTreeMap<u32, Vec<usize>>, slot: u32) -> (Vec<String>, Vec<u32>) {
    let slots: BTreeMap<String, u32> = known.keys().map(|&slot| (id_of(slot), slot)).collect();
    let (mut said, mut named) = (Vec::new(), Vec::new());
    let record = talk(slot, &known[&slot]);
    index.fields().read(record.as_bytes(), &mut |found| match found {
        FoundField::Link(name) => {
            let prefix = if id_of(slot).starts_with("bedge:") {
                "block:"
            } else {
                ""
            };
            named.extend(slots.get(&format!("{prefix}{name}")));
        }
        FoundField::Group(field, value) => said.push(format!("group {field} {value}")),
        FoundField::Speaker(name) => said.push(format!("speaker {name}")),
        FoundField::Time(_, micros) => said.push(format!("time {micros}")),
        FoundField::Text(..) | FoundField::Tag(_) => {}
    });
    if id_of(slot).starts_with("bedge:") && record.contains("likeness") {
        said.push("likeness".to_owned());
    }
    said.sort();
    (said, named)
}

/// The same as an index tells it.
fn context_of(index: &TextIndex, slot: u32) -> (Vec<String>, Vec<u32>) {
    let doc = index.doc_of(slot).expect("a document");
    let mut said: Vec<String> = index
        .marks_of(doc)
        .map(|mark| match mark {
            ContextMark::Group([high, low, value @ ..]) => {
                format!(
                    "group {} {}",
                    u16::from_be_bytes([*high, *low]),
                    String::from_utf8_lossy(value)
                )
            }
            ContextMark::Group(_) => "no group".to_owned(),
            ContextMark::Speaker(name) => format!("speaker {name}"),
            ContextMark::Likeness => "likeness".to_owned(),
        })
        .collect();
    said.extend(index.time_of(doc).map(|micros| format!("time {micros}")));
    said.sort();
    let named = index.links_of(doc).filter_map(|link| match link {
        LinkedRecord::Slot(slot) => Some(slot),
        LinkedRecord::Id(prefix, name) => (0..48).find(|&slot| id_of(slot) == format!("{prefix}{name}")),
    });
    (said, named.filter(|&slot| index.doc_of(slot).is_some()).collect())
}

/// Scores by the book; the label weighs twice.
fn brute(known: &BTreeMap<u32, Vec<usize>>, stems: &[String]) -> BTreeMap<u32, f64> {
    let stem = |word: usize| asked(VOCABULARY[word])[0].clone();
    let counts: BTreeMap<u32, Vec<String>> = known
        .iter()
        .filter(|(_, words)| !words.is_empty())
        .map(|(&slot, words)| (slot, words.iter().map(|&word| stem(word)).collect()))
        .collect();
    let total: usize = counts.values().map(|words| 2 * words.len()).sum();
    let average = total as f64 / counts.len().max(1) as f64;
    let mut scores = BTreeMap::new();
    for asked in stems {
        let with = counts.values().filter(|words| words.contains(asked)).count() as f64;
        let idf = (1.0 + (counts.len() as f64 - with + 0.5) / (with + 0.5)).ln();
        for (&slot, words) in &counts {
            let count = 2.0 * words.iter().filter(|word| *word == asked).count() as f64;
            if count > 0.0 {
                let norm = K1 * (1.0 - B + B * 2.0 * words.len() as f64 / average);
                *scores.entry(slot).or_insert(0.0) += idf * count * (K1 + 1.0) / (count + norm);
            }
        }
    }
    scores
}

fn written(index: &TextIndex) -> Vec<u8> {
    let file = Arc::new(MemoryFile::default());
    file::write(file.clone(), &source(), index.sealed()).expect("written");
    file.contents()
}

fn opened(bytes: &[u8]) -> Option<(Source, Sealed)> {
    file::open(Bytes(bytes.to_vec()).map(u64::MAX).expect("memory"))
}

fn source() -> Source {
    Source {
        origin: Some([3; 32]),
        events: 9,
        seq: 7,
        head: "ab".repeat(32),
        choice: None,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_history_is_ranked_by_the_book(
        steps in steps(),
        question in prop::collection::vec(0..VOCABULARY.len(), 1..6),
        limit in 1..12_usize,
    ) {
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        let mut known: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(slot, words) => {
                    put(&mut index, slot, &words);
                    known.insert(slot, words);
                }
                Step::Drop(slot) => {
                    index.drop_slot(slot);
                    known.remove(&slot);
                }
                Step::Seal => index.seal(),
                Step::ThroughFile => {
                    index.seal();
                    let (found, sealed) = opened(&written(&index)).expect("what was written can be opened");
                    prop_assert_eq!(found, source());
                    index = TextIndex::new(Fields::default(), sealed);
                }
            }
        }
        prop_assert_eq!(index.len(), known.len());
        let text: Vec<&str> = question.iter().map(|&word| VOCABULARY[word]).collect();
        let stems = asked(&text.join(" "));
        let best = index.question(&stems, &TextFilter::default()).best(limit);
        let mut expected: Vec<(u32, f64)> = brute(&known, &stems).into_iter().collect();
        expected.sort_by(|one, other| other.1.total_cmp(&one.1));
        prop_assert_eq!(best.len(), expected.len().min(limit));
        let scores: BTreeMap<u32, f64> = expected.iter().copied().collect();
        for (&(doc, score), place) in best.iter().zip(&expected) {
            prop_assert!((score - scores[&index.slot_of(doc)]).abs() < 1e-9);
            prop_assert!((score - place.1).abs() < 1e-6);
        }
        let slots: Vec<(i64, u32)> =
            best.iter().map(|&(doc, score)| ((-score * 1e12) as i64, index.slot_of(doc))).collect();
        prop_assert!(slots.is_sorted(), "of equals the older comes first: {:?}", slots);
    }

    /// Context columns, in memory and in a file, give the same context as the records.
    #[test]
    fn the_context_of_a_document_is_that_of_its_record(steps in steps()) {
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        let mut known: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for step in steps {
            match step {
                Step::Put(slot, numbers) => {
                    put_record(&mut index, slot, &talk(slot, &numbers));
                    known.insert(slot, numbers);
                }
                Step::Drop(slot) => {
                    index.drop_slot(slot);
                    known.remove(&slot);
                }
                Step::Seal => index.seal(),
                Step::ThroughFile => {
                    index.seal();
                    let (_, mut sealed) = opened(&written(&index)).expect("what was written can be opened");
                    // One record is gone from the log that the file is of now; it may come back.
                    let gone = known.keys().next().copied();
                    sealed.renumber(|slot, _| (Some(slot) != gone).then_some(slot));
                    index = TextIndex::new(Fields::default(), sealed);
                    gone.map(|slot| known.remove(&slot));
                }
            }
        }
        let question = index.question(&[], &TextFilter::default());
        for &slot in known.keys() {
            prop_assert_eq!(context_of(&index, slot), context_by_the_book(&index, &known, slot));
            let doc = index.doc_of(slot).expect("a document");
            prop_assert_eq!(index.id_of(doc), spelled(&id_of(slot)));
            let naming = question.naming(doc).into_iter().map(|(doc, is_called)| (index.slot_of(doc), is_called));
            let mut naming: Vec<(u32, bool)> = naming.collect();
            naming.sort_unstable();
            let mut expected = Vec::new();
            for (&other, numbers) in &known {
                let record = talk(other, numbers);
                let mut names = BTreeSet::new();
                index.fields().read(record.as_bytes(), &mut |found| {
                    if let FoundField::Link(name) = found {
                        names.insert(name.to_owned());
                    }
                });
                let id = id_of(slot);
                expected.extend(names.contains(&id).then_some((other, false)));
                let called = id.strip_prefix("block:").is_some_and(|name| names.contains(name));
                expected.extend(called.then_some((other, true)));
            }
            prop_assert_eq!(naming, expected);
        }
    }

    #[test]
    fn no_altered_file_gives_an_answer(at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<prop::sample::Index>()) {
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        (0..30).for_each(|slot| put(&mut index, slot, &[slot as usize % 12, 3]));
        index.seal();
        let bytes = written(&index);
        let answers = |index: &TextIndex| -> Vec<_> {
            let answer = |word: &str| index.question(&asked(word), &TextFilter::default()).best(30);
            let docs = (0..40).map(|slot| (index.doc_of(slot), index.slot_of(slot.min(29))));
            VOCABULARY.iter().map(|word| answer(word)).zip(docs.map(Some)).collect()
        };
        let mut altered = bytes.clone();
        altered[at.index(bytes.len())] ^= 1 << bit;
        if let Some((_, sealed)) = opened(&altered) {
            let found = TextIndex::new(Fields::default(), sealed);
            let answers_found = answers(&found);
            prop_assert!(found.has_failed() || answers_found == answers(&index));
        }
        prop_assert!(opened(&bytes[..cut.index(bytes.len())]).is_none());
        prop_assert!(opened(&[&bytes[..], b"x"].concat()).is_none());
    }

    /// Sections of a file in which a number was changed and the checksums made anew: answers may be wrong, but nothing breaks.
    #[test]
    fn a_forged_file_breaks_nothing(at in any::<prop::sample::Index>(), value in any::<u8>(), width in 1..9_usize) {
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        (0..40).for_each(|slot| put(&mut index, slot, &[slot as usize % 12, 3, 5]));
        (40..60).for_each(|slot| put_record(&mut index, slot, &talk(slot, &[slot as usize % 12, 3, 5])));
        index.seal();
        let bytes = written(&index);
        let whole = forged(&bytes, &mut |_| {});
        prop_assert!(opened(&whole).is_some(), "sections alone make a file again");
        let altered = forged(&bytes, &mut |sections| {
            let start = at.index(sections.len());
            let end = sections.len().min(start + width);
            sections[start..end].fill(value);
        });
        if let Some((_, sealed)) = opened(&altered) {
            let mut found = TextIndex::new(Fields::default(), sealed);
            for stem in VOCABULARY {
                let question = found.question(&asked(stem), &TextFilter { tags: vec!["x".to_owned()], ..TextFilter::default() });
                question.best(5);
                let question = found.question(&asked(stem), &TextFilter::default());
                for (doc, _) in question.best(50) {
                    question.score(doc);
                    question.coverage(doc);
                    found.slot_of(doc);
                    prop_assert!(question.passes(doc));
                }
            }
            let question = found.question(&[], &TextFilter::default());
            for doc in (0..60).filter_map(|slot| found.doc_of(slot)) {
                _ = (found.marks_of(doc).count(), found.links_of(doc).count(), question.naming(doc).len());
            }
            (0..40).step_by(3).for_each(|slot| put(&mut found, slot, &[1, 2]));
            (0..40).step_by(7).for_each(|slot| found.drop_slot(slot));
            found.question(&asked("apple river"), &TextFilter::default()).best(50);
            found.seal();
        }
    }
}

/// A file with the same bytes before its footer, altered, and a footer whose checksums fit.
fn forged(bytes: &[u8], alter: &mut dyn FnMut(&mut [u8])) -> Vec<u8> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes")) as usize;
    let start = number(bytes.len() - 40);
    let count = number(start);
    let mut sections = bytes[..start].to_vec();
    alter(&mut sections[8..]);
    let file = Arc::new(MemoryFile::default());
    let mut out = ContainerWriter::new(file.clone());
    for place in (0..count).map(|at| start + 24 + 24 * at) {
        let (id, from, length) = (number(place), number(place + 8), number(place + 16));
        out.section(id as u32, &sections[from..from + length]).expect("written");
    }
    let meta_at = start + 24 + 24 * count + 8 * number(start + 16);
    out.finish(&bytes[meta_at..meta_at + number(start + 8)])
        .expect("written");
    file.contents()
}

/// More documents than a span holds, with words common enough that whole lists are skipped.
#[test]
fn skipping_loses_nothing() {
    let mut index = TextIndex::new(Fields::default(), Sealed::default());
    let mut known = BTreeMap::new();
    let mut seed = 1_u64;
    for slot in 0..40_000 {
        let mut words = Vec::new();
        for _ in 0..6 {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let draw = (seed >> 33) % 4096;
            words.push(draw.checked_ilog2().map_or(0, |log| 11 - log as usize).min(11));
        }
        put(&mut index, slot, &words);
        known.insert(slot, words);
    }
    index.seal();
    for question in [
        "apple river signal it",
        "the was",
        "paper garden",
        "winter the stone night music",
    ] {
        let stems = asked(question);
        let mut expected: Vec<f64> = brute(&known, &stems).into_values().collect();
        expected.sort_by(|one, other| other.total_cmp(one));
        let best = index.question(&stems, &TextFilter::default()).best(50);
        for ((_, score), expected) in best.iter().zip(&expected) {
            assert!((score - expected).abs() < 1e-6, "{question}: {score} for {expected}");
        }
        assert_eq!(best.len(), 50);
    }
}
