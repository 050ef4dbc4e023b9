//! Chooses how many outcomes of chance a test looks at, and which one is replayed.
//!
//! `CHRONOMEMORY_SEEDS` says how many seeds each place gets (`make soak` asks for many), and
//! `CHRONOMEMORY_REPLAY="Full 17 3"` looks only at that mode, operation and seed, as a failure names them.

use std::io::Write;

/// How many seeds to use where `usual` are enough in `make test`; never fewer than these.
fn seeds(usual: u64) -> u64 {
    let asked = std::env::var("CHRONOMEMORY_SEEDS").ok();
    asked
        .map_or(usual, |text| text.parse().expect("CHRONOMEMORY_SEEDS is a number"))
        .max(usual)
}

/// The seeds to look at for this mode and operation: all, unless a case is named. Where each seed is expensive, a soak only
/// doubles their number.
pub fn wanted(mode: &str, step: u64, usual: u64, may_be_more: bool) -> Vec<u64> {
    let Ok(named) = std::env::var("CHRONOMEMORY_REPLAY") else {
        return (0..if may_be_more {
            seeds(usual)
        } else {
            usual * (1 + u64::from(is_thorough()))
        })
            .collect();
    };
    let words: Vec<&str> = named.split_whitespace().collect();
    match words[..] {
        [its_mode, its_step, seed] if its_mode == mode && its_step == step.to_string() => {
            vec![seed.parse().expect("the seed is a number")]
        }
        _ => Vec::new(),
    }
}

/// Whether many seeds were asked for: then there is time for more than every day.
pub fn is_thorough() -> bool {
    std::env::var_os("CHRONOMEMORY_SEEDS").is_some()
}

/// Whether one case was named.
pub fn is_replay() -> bool {
    std::env::var_os("CHRONOMEMORY_REPLAY").is_some()
}

/// Says how much was looked at; written past the capturing of the test runner, so that it is seen.
pub fn tell(what: &str, count: u64) {
    // Nobody may be listening; the test has done its work all the same.
    let _ = writeln!(std::io::stderr(), "{what}: {count}");
}
