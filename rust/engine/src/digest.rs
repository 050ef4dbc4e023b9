//! What are these bytes called? SHA-256 and its hexadecimal spelling.

use sha2::{Digest, Sha256};

/// The two digits of every byte.
const DIGIT_PAIRS: [[u8; 2]; 256] = {
    let digits = b"0123456789abcdef";
    let mut pairs = [[0; 2]; 256];
    let mut byte = 0;
    while byte < 256 {
        pairs[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    pairs
};

/// The 64 lower-case hexadecimal digits of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hex([u8; 64]);

impl Hex {
    /// Reads a digest; `None` unless it is exactly 64 lower-case hexadecimal digits.
    pub fn read(text: &[u8]) -> Option<Self> {
        let digits: [u8; 64] = text.try_into().ok()?;
        digits
            .iter()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            .then_some(Self(digits))
    }

    /// Spells 32 raw bytes.
    pub fn spell(raw: &[u8; 32]) -> Self {
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(raw) {
            *pair = DIGIT_PAIRS[usize::from(*byte)];
        }
        Self(digits)
    }

    /// The 32 raw bytes behind the digits.
    pub fn raw(&self) -> [u8; 32] {
        let value = |digit: u8| match digit {
            b'a'..=b'f' => digit - b'a' + 10,
            _ => digit.wrapping_sub(b'0') & 15,
        };
        let mut raw = [0; 32];
        for (byte, pair) in raw.iter_mut().zip(self.0.chunks_exact(2)) {
            *byte = value(pair[0]) << 4 | value(pair[1]);
        }
        raw
    }

    /// The digits as bytes.
    pub fn bytes(&self) -> &[u8; 64] {
        &self.0
    }

    /// The digits as text.
    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("")
    }
}

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// SHA-256 of one run of bytes.
pub fn sha256(bytes: &[u8]) -> Hex {
    Hex::spell(&Sha256::digest(bytes).into())
}

/// SHA-256 of `{` followed by `rest`: a log line without its hash is its payload.
pub fn sha256_after_brace(rest: &[u8]) -> Hex {
    let mut hasher = Sha256::new();
    hasher.update(b"{");
    hasher.update(rest);
    Hex::spell(&hasher.finalize().into())
}

/// SHA-256 of bytes that arrive piece by piece.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Hex {
        Hex::spell(&self.0.finalize().into())
    }
}
