//! Measures what it costs to spell a value canonically, and to read it back the slow way.

use std::hint::black_box;

use chronomemory::testing::json::{parse, write_value};
use chronomemory::{write_f64, write_string};
use criterion::Throughput;

mod sample;

fn main() {
    let text = sample::record(1);
    let value = sample::value(1);
    let mut out = Vec::new();
    write_value(&value, &mut out);
    assert_eq!(out, text.as_bytes());

    let mut criterion = sample::criterion();
    let mut group = criterion.benchmark_group(format!("a record of {} bytes", text.len()));
    group.throughput(Throughput::Bytes(text.len() as u64));
    group.bench_function("write it canonically", |bencher| {
        bencher.iter(|| {
            out.clear();
            write_value(black_box(&value), &mut out);
        });
    });
    assert_eq!(out, text.as_bytes());
    group.bench_function("parse it", |bencher| {
        bencher.iter(|| parse(black_box(text.as_bytes())).is_ok())
    });
    group.finish();

    let mut group = criterion.benchmark_group("a scalar");
    let floats = [0.7, 0.85, 42.25, 1e-7, 123_456.789, 0.1 + 0.2];
    group.bench_function("write six floats", |bencher| {
        bencher.iter(|| {
            out.clear();
            for float in floats {
                write_f64(black_box(float), &mut out);
                out.push(b' ');
            }
        });
    });
    assert_eq!(out, b"0.7 0.85 42.25 1e-07 123456.789 0.30000000000000004 ");
    let label = "Water freezes at 0 °C, and a chain that nobody can check freezes nobody's doubt.";
    group.bench_function("write a label", |bencher| {
        bencher.iter(|| {
            out.clear();
            write_string(black_box(label), &mut out);
        });
    });
    assert_eq!(out, format!("\"{label}\"").as_bytes());
    group.finish();
    criterion.final_summary();
}
