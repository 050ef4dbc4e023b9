//! Fuzzes bases and snapshots: any is read, on both paths alike.
#![no_main]

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/crash_disk/mod.rs"]
mod crash_disk;

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/fuzzing/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::both_paths_read_a_state_alike(bytes);
    properties::any_snapshot_can_be_lived_with(bytes);
});
