//! No parser or reader breaks on inputs bent in thousands of ways, and the fast and the slow path agree.
//!
//! Each test bends its inputs for `CHRONOMEMORY_FUZZ_SECONDS` (1 by default), beginning with the seed
//! `CHRONOMEMORY_FUZZ_SEED`. A failure names its seed; with it and 0 seconds, that input alone comes back.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use crate::fuzzing::properties::{
    any_log_can_be_lived_with, any_snapshot_can_be_lived_with, both_paths_read_a_line_alike,
    both_paths_read_a_state_alike, json_has_one_spelling,
};
use crate::fuzzing::{Dice, corpus, files, mutate};

/// Larger inputs say the same, only slower.
const LIMIT_BYTES: usize = 8192;

fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).map_or(usual, |text| text.parse().expect("a number"))
}

fn logs() -> Vec<Vec<u8>> {
    let found = files(&corpus(), ".wal", LIMIT_BYTES);
    assert!(found.len() > 300, "the corpus is where it was");
    found
}

fn states() -> Vec<Vec<u8>> {
    let found = files(&corpus().join("folders"), ".json", LIMIT_BYTES);
    assert!(found.len() > 20, "the corpus is where it was");
    found
}

fn lines() -> Vec<Vec<u8>> {
    let all = logs();
    let lines = all
        .iter()
        .flat_map(|log| log.split(|byte| *byte == b'\n').map(<[u8]>::to_vec));
    lines.filter(|line| !line.is_empty()).collect()
}

/// Asks for the inputs as they are, then for bent ones until the time is over.
fn bend(what: &str, inputs: &[Vec<u8>], ask: impl Fn(&[u8], &mut Dice)) {
    let seconds = number("CHRONOMEMORY_FUZZ_SECONDS", 1);
    let first = number("CHRONOMEMORY_FUZZ_SEED", 0);
    let asked_for_one = seconds == 0;
    let try_one = |bytes: &[u8], dice: &mut Dice, seed: &str| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| ask(bytes, dice))) {
            let text = String::from_utf8_lossy(bytes).into_owned();
            let _ = writeln!(std::io::stderr(), "{what}, seed {seed}: {text:?}");
            std::panic::resume_unwind(panic);
        }
    };
    if !asked_for_one {
        for (index, input) in inputs.iter().enumerate() {
            try_one(input, &mut Dice(index as u64), "none");
        }
    }
    let began = Instant::now();
    let mut seed = first;
    loop {
        let mut dice = Dice(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let bytes = mutate(&mut dice, inputs);
        try_one(&bytes, &mut dice, &seed.to_string());
        seed += 1;
        if asked_for_one || began.elapsed() >= Duration::from_secs(seconds) {
            break;
        }
    }
    let _ = writeln!(std::io::stderr(), "fuzzed inputs ({what}): {}", seed - first);
    assert!(asked_for_one || seed - first > 20, "only {} inputs", seed - first);
}

#[test]
fn json_is_read_and_written_in_one_way() {
    let mut inputs = lines();
    inputs.extend(states());
    bend("json", &inputs, |bytes, _| json_has_one_spelling(bytes));
}

#[test]
fn the_fast_and_the_slow_path_agree_on_lines() {
    bend("line", &lines(), |bytes, _| both_paths_read_a_line_alike(bytes));
}

#[test]
fn any_log_opens_and_takes_a_write() {
    let hints = files(&corpus(), ".synced", LIMIT_BYTES);
    bend("log", &logs(), |bytes, dice| {
        let hint = (dice.below(2) == 0).then(|| hints[dice.below(hints.len())].as_slice());
        any_log_can_be_lived_with(bytes, hint);
    });
}

#[test]
fn states_are_read_alike_and_never_break_a_store() {
    bend("state", &states(), |bytes, _| {
        both_paths_read_a_state_alike(bytes);
        any_snapshot_can_be_lived_with(bytes);
    });
}
