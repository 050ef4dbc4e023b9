//! Fuzzes JSON: any text is read and written in one way.
#![no_main]

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/crash_disk/mod.rs"]
mod crash_disk;

#[allow(dead_code)] // each target asks for its own part
#[path = "../../tests/fuzzing/properties.rs"]
mod properties;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    properties::json_has_one_spelling(bytes);
});
