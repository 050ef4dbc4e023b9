//! Measures an exact search over vectors, and the making of codes.

use std::hint::black_box;

use chronomemory::testing::vector::codes::{GROUP_ROWS, PART_GROUPS};
use chronomemory::testing::vector::{Codes, Cpu, MemoryPart, RowSearch, VectorRows, search};
use criterion::{Criterion, Throughput};

mod sample;

const DIM: usize = 384;
const ROWS: usize = 20_000;

/// The codes of all whole groups.
fn encode(rows: VectorRows<'_>, cpu: Cpu) -> Vec<MemoryPart> {
    let groups = rows.count() as usize / GROUP_ROWS;
    let parts = (0..groups).step_by(PART_GROUPS).map(|first| {
        let rows = rows.part(first * GROUP_ROWS, PART_GROUPS * GROUP_ROWS);
        MemoryPart::of(rows, PART_GROUPS.min(groups - first), cpu).expect("codes")
    });
    parts.collect()
}

fn main() {
    let mut state = 1u64;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / 16_777_216.0 - 0.5
    };
    let data: Vec<f32> = (0..ROWS * DIM).map(|_| next()).collect();
    let rows = VectorRows::packed(&data, DIM).expect("rows");
    let codes = encode(rows, Cpu::best());
    let copies = data[..DIM].repeat(ROWS);
    let copies = VectorRows::packed(&copies, DIM).expect("rows");
    let of_copies = encode(copies, Cpu::best());

    let mut criterion: Criterion = sample::criterion();
    let mut group = criterion.benchmark_group(format!("{ROWS} rows of {DIM}, on one thread"));
    group.throughput(Throughput::Elements(ROWS as u64));
    let mut time = |name: &str, rows: VectorRows<'_>, codes: &[MemoryPart], queries: usize, cpu: Cpu| {
        let queries = VectorRows::packed(&data[..DIM * queries], DIM).expect("queries");
        let parts: Vec<_> = codes.iter().map(|part| part.part(part.groups())).collect();
        let codes = Codes::new(&parts, DIM).expect("parts");
        let asked = RowSearch {
            cpu,
            ..RowSearch::best(10)
        };
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let found = search(rows, codes, black_box(queries), &asked).expect("an answer");
                assert_eq!(found[0][0].row, 0);
            });
        });
    };
    for cpu in Cpu::every() {
        time(&format!("one query, {cpu:?}"), rows, &codes, 1, cpu);
        time(&format!("64 queries, {cpu:?}"), rows, &codes, 64, cpu);
        time(&format!("one query, every float, {cpu:?}"), rows, &[], 1, cpu);
    }
    time("one query, all rows the same", copies, &of_copies, 1, Cpu::best());
    time("one query, all rows the same, every float", copies, &[], 1, Cpu::best());
    for cpu in Cpu::every() {
        group.bench_function(format!("encode, {cpu:?}"), |bencher| {
            bencher.iter(|| assert_eq!(encode(rows, cpu).len(), ROWS.div_ceil(1024)));
        });
    }
    group.finish();
    criterion.final_summary();
}
