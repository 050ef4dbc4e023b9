//! Measures what it costs to prove one line of the log: its form, and its hash.

use std::hint::black_box;

use chronomemory::testing::digest::sha256_after_brace;
use chronomemory::testing::event::HASH_PREFIX_BYTES;
use chronomemory::testing::event::line::{Event, Trust};
use chronomemory::testing::json::scan_event;
use chronomemory::testing::wal::writer::{ChainEnd, Lines};
use criterion::Throughput;

mod sample;

fn main() {
    let link = ChainEnd {
        head: Some(chronomemory::sha256(b"the event before")),
        next_seq: 500_001,
    };
    let mut lines = Lines::after(link);
    lines.add(&sample::draft(1, 1), b"2026-05-18T12:00:00.000000Z", 0);
    let line = lines.line(0);
    let spans = scan_event(line).expect("a canonical line");
    assert_eq!(spans.record.of(line), sample::record(1).as_bytes());
    assert_eq!(sha256_after_brace(&line[HASH_PREFIX_BYTES..]).bytes(), &line[9..73]);
    assert!(Event::read(line, Trust::Nothing).is_ok_and(|event| event.is_own_form()));

    let mut criterion = sample::criterion();
    let mut group = criterion.benchmark_group(format!("a line of {} bytes", line.len()));
    group.throughput(Throughput::Bytes(line.len() as u64));
    group.bench_function("scan its form", |bencher| bencher.iter(|| scan_event(black_box(line))));
    group.bench_function("sha256 of its payload", |bencher| {
        bencher.iter(|| sha256_after_brace(black_box(&line[HASH_PREFIX_BYTES..])));
    });
    group.bench_function("read: scan, hash and compare", |bencher| {
        bencher.iter(|| Event::read(black_box(line), Trust::Nothing).is_ok());
    });
    group.finish();
    criterion.final_summary();
}
