//! Measures how fast this machine can hash the lines of a log: the limit that verification is measured against.
//!
//! `sha_limit LOG` reads the log into memory and finds its lines beforehand. For every line on its standard input it
//! then hashes each payload once, with the engine's SHA-256 on native threads, one for each core, and answers with the
//! seconds that took and how many lines carried their hash. Waiting to be asked lets a caller interleave it with what
//! it compares. Nothing but hashing is timed, so no verifier can be faster than this.

use std::io::{self, BufRead, Write};
use std::time::Instant;

use chronomemory::testing::digest::sha256_after_brace;
use chronomemory::testing::event::HASH_PREFIX_BYTES;

fn main() -> io::Result<()> {
    let usage = || io::Error::other("usage: sha_limit LOG [THREADS]");
    let path = std::env::args_os().nth(1).ok_or_else(usage)?;
    let threads = match std::env::args().nth(2) {
        Some(count) => count.parse().map_err(|_| usage())?,
        None => std::thread::available_parallelism()?.get(),
    };
    let log = std::fs::read(path)?;
    let lines: Vec<&[u8]> = log
        .split(|&byte| byte == b'\n')
        .filter(|line| line.len() > HASH_PREFIX_BYTES)
        .collect();
    let mut answer = io::stdout();
    for _ in io::stdin().lock().lines() {
        let began = Instant::now();
        let good = true_hashes(&lines, threads);
        writeln!(answer, "{} {good}", began.elapsed().as_secs_f64())?;
        answer.flush()?;
    }
    Ok(())
}

fn true_hashes(lines: &[&[u8]], threads: usize) -> usize {
    let is_true = |line: &&&[u8]| sha256_after_brace(&line[HASH_PREFIX_BYTES..]).bytes() == &line[9..73];
    std::thread::scope(|scope| {
        let parts: Vec<_> = lines
            .chunks(lines.len().div_ceil(threads.max(1)).max(1))
            .map(|part| scope.spawn(move || part.iter().filter(is_true).count()))
            .collect();
        parts.into_iter().filter_map(|part| part.join().ok()).sum()
    })
}
