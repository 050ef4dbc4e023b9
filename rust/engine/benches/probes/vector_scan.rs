//! Measures an exact search; `benches/vectors.py` drives it, beside what others take.
//!
//! `vector_scan ROWS DIM QUERIES K THREADS` reads rows and queries, raw float32, makes their codes, and answers each
//! line on its standard input with seconds, then the rows it found for the last query:
//!
//! - `single N`: query number N alone
//! - `batch`: all queries at once
//! - `brute N`: query number N, every row scored from its floats
//! - `bytes`: nothing but adding up the bytes of the high plane: what memory allows
//! - `encode`: the codes anew

use std::io::{self, BufRead, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use chronomemory::testing::vector::codes::high_bytes;
use chronomemory::testing::vector::{Codes, Cpu, MemoryCodes, RowHit, RowSearch, VectorRows, search};

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [rows, dim, queries, k, threads] = arguments.as_slice() else {
        return Err(io::Error::other("usage: vector_scan ROWS DIM QUERIES K THREADS"));
    };
    let number = |text: &str| text.parse::<usize>().map_err(io::Error::other);
    let (dim, k, threads) = (number(dim)?, number(k)?, number(threads)?);
    let (rows, queries) = (floats(rows.as_ref())?, floats(queries.as_ref())?);
    let rows = VectorRows::packed(&rows, dim).map_err(io::Error::other)?;
    let queries = VectorRows::packed(&queries, dim).map_err(io::Error::other)?;
    let mut codes = encoded(rows, threads)?;
    let plane = vec![1; rows.count() as usize / 16 * high_bytes(dim)];
    let asked = RowSearch {
        threads,
        ..RowSearch::best(k)
    };
    let mut answer = io::stdout();
    for line in io::stdin().lock().lines() {
        let line = line?;
        let (verb, which) = line.split_once(' ').unwrap_or((&line, "0"));
        let which = number(which)?;
        let began = Instant::now();
        let found = match verb {
            "single" => find(rows, &codes, one(queries, which)?, &asked)?,
            "batch" => find(rows, &codes, queries, &asked)?,
            "brute" => {
                let nothing = MemoryCodes::default();
                find(rows, &nothing, one(queries, which)?, &asked)?
            }
            "bytes" => {
                std::hint::black_box(total(&plane, threads));
                Vec::new()
            }
            "encode" => {
                codes = encoded(rows, threads)?;
                Vec::new()
            }
            other => return Err(io::Error::other(format!("no verb {other}"))),
        };
        let seconds = began.elapsed().as_secs_f64();
        let rows: Vec<_> = found.iter().map(|hit| hit.row.to_string()).collect();
        writeln!(answer, "{seconds} {}", rows.join(" "))?;
        answer.flush()?;
    }
    Ok(())
}

fn floats(path: &Path) -> io::Result<Vec<f32>> {
    let bytes = std::fs::read(path)?;
    let (values, _) = bytes.as_chunks::<4>();
    Ok(values.iter().map(|value| f32::from_le_bytes(*value)).collect())
}

fn encoded(rows: VectorRows<'_>, threads: usize) -> io::Result<MemoryCodes> {
    let mut codes = MemoryCodes::default();
    codes.extend(rows, threads, Cpu::best()).map_err(io::Error::other)?;
    Ok(codes)
}

fn one(queries: VectorRows<'_>, which: usize) -> io::Result<VectorRows<'_>> {
    let which = u32::try_from(which).map_err(io::Error::other)?;
    VectorRows::packed(queries.row(which), queries.dim()).map_err(io::Error::other)
}

fn find(
    rows: VectorRows<'_>,
    codes: &MemoryCodes,
    queries: VectorRows<'_>,
    asked: &RowSearch<'_>,
) -> io::Result<Vec<RowHit>> {
    let parts = codes.parts();
    let codes = Codes::new(&parts, rows.dim()).map_err(io::Error::other)?;
    let mut answers = search(rows, codes, queries, asked).map_err(io::Error::other)?;
    Ok(answers.pop().unwrap_or_default())
}

/// Reads every byte once, and does as little with them as can be.
fn total(bytes: &[u8], threads: usize) -> u64 {
    const PIECE_BYTES: usize = 256 * 1024;
    let next = AtomicUsize::new(0);
    let read = || {
        let mut lanes = [0u64; 32];
        while let Some(piece) = bytes.chunks(PIECE_BYTES).nth(next.fetch_add(1, Ordering::Relaxed)) {
            for block in piece.as_chunks::<256>().0 {
                for (lane, value) in lanes.iter_mut().zip(block.as_chunks::<8>().0) {
                    *lane = lane.wrapping_add(u64::from_le_bytes(*value));
                }
            }
        }
        lanes.iter().fold(0u64, |sum, lane| sum.wrapping_add(*lane))
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(read)).collect();
        let own = read();
        let others = others.into_iter().filter_map(|other| other.join().ok());
        others.fold(own, u64::wrapping_add)
    })
}
