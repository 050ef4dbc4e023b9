//! Bends good inputs by a seed, so that they are bad in interesting ways.

pub mod properties;

use std::path::{Path, PathBuf};

use chronomemory::testing::json;
use chronomemory::{Value, sha256};

/// What a careless or malicious hand might put into a file.
const TOKENS: [&[u8]; 40] = [
    b"\"",
    b"\\",
    b",",
    b":",
    b"{",
    b"}",
    b"[",
    b"]",
    b" ",
    b"\t",
    b"\r",
    b"\n",
    b"\0",
    b"\x7f",
    b"\x80",
    b"\xff",
    b"0",
    b"-",
    b"-0",
    b"1e0",
    b".0",
    b"1e999",
    b"NaN",
    b"true",
    b"null",
    b"\\u0061",
    b"\\u001F",
    b"\\ud800",
    b"\\ude00",
    b"\\u2028",
    b"\xe2\x80\xa8",
    b"\xc2\x85",
    b"\xed\xa0\x80",
    b"\xef\xbb\xbf",
    b"\"seq\":1,",
    b"{\"events\":2}",
    b"9007199254740993",
    b"562949953421312.25",
    b"1E5",
    b"\\/",
];

/// A small reproducible source of choices (splitmix64).
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % n.max(1) as u64) as usize
    }
}

/// The folder of files that both verifiers are tried on. Asked at run time: a shared target directory may hold a test
/// that was compiled in another clone.
pub fn corpus() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    Path::new(&package).join("../../tests/corpus")
}

/// Every file below a folder whose name ends so, smaller than `limit`, in a fixed order.
pub fn files(folder: &Path, suffix: &str, limit: usize) -> Vec<Vec<u8>> {
    let mut paths = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_string_lossy().ends_with(suffix) {
                paths.push(path);
            }
        }
    }
    paths.sort();
    let contents = paths.iter().map(|path| std::fs::read(path).expect("a file"));
    contents.filter(|bytes| bytes.len() < limit).collect()
}

/// Bends one of the inputs a few times.
pub fn mutate(dice: &mut Dice, inputs: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = inputs[dice.below(inputs.len())].clone();
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + 1 + dice.below(40)).min(bytes.len());
        match dice.below(9) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.splice(at..at, TOKENS[dice.below(TOKENS.len())].iter().copied())),
            2 if at < end => drop(bytes.drain(at..end)),
            3 => bytes.truncate(at),
            4 if at < end => {
                let piece = bytes[at..end].to_vec();
                let place = dice.below(bytes.len() + 1);
                drop(bytes.splice(place..place, piece));
            }
            5 => {
                let other = &inputs[dice.below(inputs.len())];
                let from = dice.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            6 => swap_lines(dice, &mut bytes),
            _ => rehash_line(dice, &mut bytes),
        }
    }
    bytes
}

fn swap_lines(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let (one, two) = (dice.below(lines.len()), dice.below(lines.len()));
    lines.swap(one, two);
    *bytes = lines.join(&b'\n');
}

/// Gives a line the hash that its content asks for: what is wrong with it must be found by other means.
fn rehash_line(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let mut lines: Vec<Vec<u8>> = bytes.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
    let at = dice.below(lines.len());
    let Some(mut event) = json::parse(&lines[at]).ok().filter(|value| value.as_object().is_some()) else {
        return;
    };
    event.remove("hash");
    let mut payload = Vec::new();
    json::write_value(&event, &mut payload);
    event.set("hash", Value::Str(sha256(&payload).text().to_owned()));
    lines[at].clear();
    json::write_value(&event, &mut lines[at]);
    *bytes = lines.join(&b'\n');
}
