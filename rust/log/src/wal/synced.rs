//! The hint that says how far the log is known to be on disk.
//!
//! One sector, overwritten in place after each successful sync: a power failure leaves the old or the new text, both of
//! which are true. It only tells an unsynced tail from damage and never says that anything is valid.

use crate::digest::{Hex, sha256};
use crate::event::line::{Event, Trust};
use crate::json::{self, Value};

/// The length of the file.
pub const SYNCED_BYTES: usize = 120;
const MAGIC: &[u8; 8] = b"CMSYNC\x00\x01";

/// What the file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Synced {
    /// Up to here the log was on disk.
    pub offset: u64,
    /// The last seq before that.
    pub seq: u64,
    /// The hash of the log's first event: which log is meant.
    pub first: Hex,
    /// The hash of the last event before the offset.
    pub head: Hex,
}

impl Synced {
    /// The bytes of the file.
    pub fn spell(&self) -> [u8; SYNCED_BYTES] {
        let mut bytes = [0; SYNCED_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.seq.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.first.raw());
        bytes[56..88].copy_from_slice(&self.head.raw());
        let checksum = sha256(&bytes[..88]).raw();
        bytes[88..].copy_from_slice(&checksum);
        bytes
    }

    /// Reads the file; `None` if it is not whole.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; SYNCED_BYTES] = bytes.try_into().ok()?;
        if &bytes[..8] != MAGIC || sha256(&bytes[..88]).raw() != bytes[88..] {
            return None;
        }
        let number = |at: usize| {
            bytes[at..at + 8]
                .iter()
                .rev()
                .fold(0, |sum, b| sum << 8 | u64::from(*b))
        };
        let digest = |at: usize| Some(Hex::spell(bytes[at..at + 32].try_into().ok()?));
        Some(number(8)).filter(|&offset| offset > 0).and_then(|offset| {
            Some(Self {
                offset,
                seq: number(16),
                first: digest(24)?,
                head: digest(56)?,
            })
        })
    }

    /// Whether it speaks of the log with this first line.
    pub fn fits_first(&self, first_line: &[u8]) -> bool {
        Event::read(first_line, Trust::Nothing).is_ok_and(|event| event.hash(first_line) == self.first)
    }

    /// Whether the line that ends at its offset is the one it speaks of.
    pub fn fits_head(&self, line_before_offset: &[u8]) -> bool {
        names_hash(line_before_offset, &self.head)
    }
}

/// Whether bytes begin as the file does, whole or not.
pub fn begins_as_hint(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Whether a line says that this is its hash.
pub fn names_hash(line: &[u8], hash: &Hex) -> bool {
    let value = json::parse(line).ok();
    let said = value
        .as_ref()
        .and_then(|event| event.get("hash"))
        .and_then(Value::as_str);
    said == Some(hash.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_a_flipped_bit_is_not() {
        let synced = Synced {
            offset: 4711,
            seq: 12,
            first: sha256(b"first"),
            head: sha256(b"head"),
        };
        let bytes = synced.spell();
        assert_eq!(Synced::read(&bytes), Some(synced));
        for at in 0..bytes.len() {
            let mut flipped = bytes;
            flipped[at] ^= 1;
            assert_eq!(Synced::read(&flipped), None, "byte {at}");
        }
    }
}
