//! Measures a commit of 1,000 records, and one of a single record.

use std::cell::RefCell;

use criterion::{BatchSize, Throughput};

mod sample;

const BATCH: u32 = 1_000;

fn main() {
    let folder = sample::Folder::new("commit");
    let store = RefCell::new(folder.store());
    let next = RefCell::new(0);
    let fresh = |count: u32| {
        let first = next.replace_with(|next| *next + count);
        sample::draft(first, count)
    };
    let mut criterion = sample::criterion();
    for count in [BATCH, 1] {
        let mut group = criterion.benchmark_group("a commit of new records, synced by the system");
        group.throughput(Throughput::Elements(u64::from(count)));
        group.bench_function(format!("{count} at once"), |bencher| {
            bencher.iter_batched(
                || fresh(count),
                |draft| {
                    let done = store
                        .borrow_mut()
                        .commit(&draft, sample::START_MICROS)
                        .expect("a commit");
                    assert_eq!(done.next_seq - done.first_seq, u64::from(count));
                    draft
                },
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
    let mut store = store.into_inner();
    let last = format!("REC-{:07}", next.into_inner() - 1);
    assert!(
        store
            .state()
            .get(&last)
            .is_some_and(|record| record.starts_with(b"{\"confidence\":"))
    );
    store.close().expect("a close");
    criterion.final_summary();
}
