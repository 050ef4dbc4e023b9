//! Measures each step of a text index: `text_index FILE` takes in a file of texts, one a line.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use chronomemory::testing::disk::{Bytes, MemoryFile};
use chronomemory::testing::json::Span;
use chronomemory::testing::state::{Class, Row};
use chronomemory::testing::text::file::{self, Source};
use chronomemory::testing::text::{Fields, Sealed, TextIndex};
use chronomemory::{DiskFile, TextFilter, asked};

#[allow(clippy::print_stdout)] // a measurement prints
fn main() {
    let path = std::env::args().nth(1).unwrap_or_default();
    let texts = std::fs::read_to_string(path).unwrap_or_default();
    let records: Vec<String> = texts
        .lines()
        .map(|text| format!("{{\"id\":\"R\",\"label\":\"{text}\"}}"))
        .collect();
    let class = Class {
        kind: (*b"fact").into(),
        status: (*b"active").into(),
        face: false,
    };
    let mut index = TextIndex::new(Fields::default(), Sealed::default());
    let begun = Instant::now();
    for (slot, record) in (0..).zip(&records) {
        index.put(&Row {
            slot,
            id_span: Span { start: 7, end: 8 },
            record: Cow::Borrowed(record.as_bytes()),
            class: &class,
            confidence: 1.0,
            seq: 1,
        });
    }
    println!("take in  {:?}", begun.elapsed());
    let begun = Instant::now();
    index.seal();
    println!("seal     {:?}", begun.elapsed());
    let begun = Instant::now();
    let source = Source {
        origin: None,
        events: 1,
        seq: 1,
        head: String::new(),
        choice: None,
    };
    let written = Arc::new(MemoryFile::default());
    let outcome = file::write(written.clone(), &source, index.sealed());
    let bytes = written.contents();
    println!("write    {:?}, {} bytes, {outcome:?}", begun.elapsed(), bytes.len());
    let mapping = Bytes(bytes).map(u64::MAX);
    let begun = Instant::now();
    let is_whole = mapping.ok().and_then(file::open).is_some();
    println!("open     {:?}, {is_whole}", begun.elapsed());
    let mut took: Vec<_> = texts
        .lines()
        .take(2_000)
        .map(|text| {
            let begun = Instant::now();
            let found = index.question(&asked(text), &TextFilter::default()).best(100).len();
            (begun.elapsed(), found)
        })
        .collect();
    took.sort_unstable();
    println!(
        "question {:?} median, {:?} p95",
        took[took.len() / 2].0,
        took[took.len() * 95 / 100].0
    );
}
