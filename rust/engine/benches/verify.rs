//! Measures verification beside hashing alone: the same 100,000 events, on one core and on all.

use std::hint::black_box;

use chronomemory::testing::digest::sha256_after_brace;
use chronomemory::testing::event::HASH_PREFIX_BYTES;
use chronomemory::{RealDisk, Store};
use criterion::Throughput;

mod sample;

const EVENTS: u32 = 100_000;
const BATCH: u32 = 1_000;

fn main() {
    let folder = sample::Folder::new("verify");
    let mut store = folder.store();
    for first in (0..EVENTS).step_by(BATCH as usize) {
        store
            .commit(&sample::draft(first, BATCH), sample::START_MICROS)
            .expect("a commit");
    }
    store.close().expect("a close");
    let log = std::fs::read(folder.layout().log()).expect("the log");
    let lines: Vec<&[u8]> = log
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .collect();
    assert_eq!(lines.len() as u32, EVENTS + EVENTS / BATCH);

    let mut criterion = sample::criterion();
    let mut group = criterion.benchmark_group(format!("{} events", lines.len()));
    group.throughput(Throughput::Bytes(log.len() as u64));
    group.sample_size(10);
    let mut counts = vec![1, sample::cores()];
    counts.dedup();
    for threads in counts {
        group.bench_function(format!("sha256 of each payload, {threads} threads"), |bencher| {
            bencher.iter(|| assert_eq!(true_hashes(black_box(&lines), threads), lines.len()));
        });
        group.bench_function(format!("verify the log, {threads} threads"), |bencher| {
            bencher.iter(|| {
                let report =
                    Store::verify(&RealDisk::default(), &folder.layout(), threads, &mut |_, _| {}).expect("a report");
                assert!(report.valid());
                assert_eq!(report.fast_lines, lines.len() as u64);
            });
        });
    }
    group.finish();
    criterion.final_summary();
}

/// Hashes every line on so many threads; how many lines carry their hash.
fn true_hashes(lines: &[&[u8]], threads: usize) -> usize {
    let is_true = |line: &&&[u8]| sha256_after_brace(&line[HASH_PREFIX_BYTES..]).bytes() == &line[9..73];
    std::thread::scope(|scope| {
        let parts: Vec<_> = lines
            .chunks(lines.len().div_ceil(threads))
            .map(|part| scope.spawn(move || part.iter().filter(is_true).count()))
            .collect();
        parts.into_iter().map(|part| part.join().expect("a count")).sum()
    })
}
