//! Whatever was put in, replaced, dropped, sealed and read back from a file: the best are those that brute force finds.

use std::borrow::Cow;
use std::collections::BTreeMap;

use chronomemory::testing::json::scan_record;
use chronomemory::testing::state::{Class, Row};
use chronomemory::testing::text::file::{Source, read, spell};
use chronomemory::testing::text::{Fields, Sealed, TextIndex};
use chronomemory::{TextFilter, asked};
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
    let record = format!("{{\"id\":\"{slot}\",\"label\":\"{}\"}}", text.join(" "));
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

fn source() -> Source {
    Source {
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
                    let bytes = spell(&source(), index.sealed());
                    let (found, sealed) = read(&bytes).expect("what was written can be read");
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

    #[test]
    fn no_bent_file_is_believed(at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<prop::sample::Index>()) {
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        (0..30).for_each(|slot| put(&mut index, slot, &[slot as usize % 12, 3]));
        index.seal();
        let bytes = spell(&source(), index.sealed());
        let mut bent = bytes.clone();
        bent[at.index(bytes.len())] ^= 1 << bit;
        prop_assert!(read(&bent).is_none());
        prop_assert!(read(&bytes[..cut.index(bytes.len())]).is_none());
        prop_assert!(read(&[&bytes[..], b"x"].concat()).is_none());
    }
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
