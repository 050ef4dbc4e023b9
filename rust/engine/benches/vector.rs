//! Measures an exact search over vectors, and the making of codes.

use std::hint::black_box;

use chronomemory::testing::vector::{Codes, Cpu, MemoryCodes, RowSearch, VectorRows, search};
use criterion::{Criterion, Throughput};

mod sample;

const DIM: usize = 384;
const ROWS: usize = 20_000;

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
    let encode = |cpu| {
        let mut codes = MemoryCodes::default();
        codes.extend(rows, 1, cpu).expect("codes");
        codes
    };
    let codes = encode(Cpu::best());
    let nothing = MemoryCodes::default();
    let copies = data[..DIM].repeat(ROWS);
    let copies = VectorRows::packed(&copies, DIM).expect("rows");
    let mut of_copies = MemoryCodes::default();
    of_copies.extend(copies, 1, Cpu::best()).expect("codes");

    let mut criterion: Criterion = sample::criterion();
    let mut group = criterion.benchmark_group(format!("{ROWS} rows of {DIM}, on one thread"));
    group.throughput(Throughput::Elements(ROWS as u64));
    let mut time = |name: &str, rows: VectorRows<'_>, codes: &MemoryCodes, queries: usize, cpu: Cpu| {
        let queries = VectorRows::new(&data, DIM, DIM, queries).expect("queries");
        let parts = codes.parts();
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
        time(&format!("one query, every float, {cpu:?}"), rows, &nothing, 1, cpu);
    }
    time("one query, all rows the same", copies, &of_copies, 1, Cpu::best());
    time(
        "one query, all rows the same, every float",
        copies,
        &nothing,
        1,
        Cpu::best(),
    );
    for cpu in Cpu::every() {
        group.bench_function(format!("encode, {cpu:?}"), |bencher| {
            bencher.iter(|| assert_eq!(encode(cpu).parts().len(), ROWS.div_ceil(1024)));
        });
    }
    group.finish();
    criterion.final_summary();
}
