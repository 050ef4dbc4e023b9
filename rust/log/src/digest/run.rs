//! A run of bytes that is hashed, alone or beside others.

use ring::digest::{Context, Digest, SHA256, digest};

/// The bytes of a digest.
pub fn raw(made: &Digest) -> [u8; 32] {
    // INVARIANT: a SHA-256 has 32 bytes.
    made.as_ref().try_into().unwrap_or_default()
}

/// A run of bytes, not empty, of which the first may be meant to be another one.
#[derive(Clone, Copy, Debug)]
pub struct ByteRun<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// What the first of them is taken for.
    pub first: u8,
}

impl<'a> ByteRun<'a> {
    /// One that is as it stands.
    pub fn of(bytes: &'a [u8]) -> Self {
        Self { bytes, first: bytes[0] }
    }

    /// Its SHA-256.
    pub fn digest(&self) -> [u8; 32] {
        if self.first == self.bytes[0] {
            return raw(&digest(&SHA256, self.bytes));
        }
        let mut hasher = Context::new(&SHA256);
        hasher.update(&[self.first]);
        hasher.update(&self.bytes[1..]);
        raw(&hasher.finish())
    }
}
