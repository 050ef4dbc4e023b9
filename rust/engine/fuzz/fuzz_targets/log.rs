//! Fuzzes logs: any can be opened, judged and written to.
#![no_main]

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/crash_disk/mod.rs"]
mod crash_disk;

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/fuzzing/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::any_log_can_be_lived_with(bytes, None);
});
