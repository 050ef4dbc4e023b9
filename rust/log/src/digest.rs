//! SHA-256 of bytes, and its hexadecimal spelling.

#[cfg(target_arch = "x86_64")]
mod wide;

use ring::digest::{Context, Digest, SHA256, digest};

/// The two digits of a byte.
fn digits_of(byte: u8) -> [u8; 2] {
    [byte >> 4, byte & 15].map(|digit| digit + if digit < 10 { b'0' } else { b'a' - 10 })
}

/// The 64 lower-case hexadecimal digits of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hex([u8; 64]);

impl Hex {
    /// Reads a digest; `None` unless it is exactly 64 lower-case hexadecimal digits.
    pub fn read(text: impl AsRef<[u8]>) -> Option<Self> {
        let digits: &[u8; 64] = text.as_ref().try_into().ok()?;
        parsed(digits).map(|_| Self(*digits))
    }

    /// The bytes of a digest; `None` unless it is exactly 64 lower-case hexadecimal digits.
    #[inline]
    pub fn read_raw(text: &[u8]) -> Option<[u8; 32]> {
        parsed(text.try_into().ok()?)
    }

    /// Spells 32 raw bytes.
    pub fn spell(raw: &[u8; 32]) -> Self {
        let mut digits = [0; 64];
        for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(raw) {
            *pair = digits_of(*byte);
        }
        Self(digits)
    }

    /// The 32 raw bytes behind the digits.
    pub fn raw(&self) -> [u8; 32] {
        // INVARIANT: there is no other way to make one than from digits.
        parsed(&self.0).unwrap_or_default()
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

/// The bytes of hexadecimal digits; `None` if one is no digit.
#[inline]
fn parsed(digits: &[u8; 64]) -> Option<[u8; 32]> {
    // Without an early exit, so that the compiler reads many digits at once.
    let values = digits.map(|digit| match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        _ => 0xff,
    });
    let is_right = values.iter().fold(0, |all, value| all | value) < 16;
    is_right.then(|| std::array::from_fn(|at| values[2 * at] << 4 | values[2 * at + 1]))
}

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// Spells bytes, two digits each.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().flat_map(|byte| digits_of(*byte)));
}

/// SHA-256 of one run of bytes.
pub fn sha256(bytes: &[u8]) -> Hex {
    Hex::spell(&sha256_raw(bytes))
}

/// The same, not spelled.
pub fn sha256_raw(bytes: &[u8]) -> [u8; 32] {
    raw(&digest(&SHA256, bytes))
}

/// SHA-256 of each of some runs of bytes that are all equally long and lie end to end, put behind those that are known.
pub fn sha256_each(bytes: &[u8], length: usize, digests: &mut Vec<[u8; 32]>) {
    let runs: Vec<&[u8]> = bytes.chunks_exact(length).collect();
    sha256_runs(&runs, digests);
}

/// SHA-256 of each of some runs, put behind those that are known. Where a processor can hash many at the same time, it does.
pub fn sha256_runs(runs: &[&[u8]], digests: &mut Vec<[u8; 32]>) {
    let known = digests.len();
    digests.resize(known + runs.len(), [0; 32]);
    // A lane that has nothing to do costs as much as one that has: what does not fill them is hashed alone.
    let together = match at_once() {
        1 => 0,
        lanes => runs.len() / lanes * lanes,
    };
    #[cfg(target_arch = "x86_64")]
    if together > 0 {
        wide::hash(&runs[..together], &mut digests[known..]);
    }
    for (run, digest) in runs[together..].iter().zip(&mut digests[known + together..]) {
        *digest = sha256_raw(run);
    }
}

/// How many runs this processor hashes at the same time.
pub fn at_once() -> usize {
    #[cfg(target_arch = "x86_64")]
    if *wide::IS_THERE {
        return wide::LANES;
    }
    1
}

/// SHA-256 of `{` followed by `rest`: a log line without its hash is its payload.
pub fn sha256_after_brace(rest: &[u8]) -> Hex {
    let mut hasher = Hasher::default();
    hasher.update(b"{");
    hasher.update(rest);
    hasher.finish()
}

/// SHA-256 of bytes that arrive piece by piece.
#[derive(Clone)]
pub struct Hasher(Context);

impl Default for Hasher {
    fn default() -> Self {
        Self(Context::new(&SHA256))
    }
}

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The digest of all pieces.
    pub fn finish(self) -> Hex {
        Hex::spell(&self.finish_raw())
    }

    /// The same, not spelled.
    pub fn finish_raw(self) -> [u8; 32] {
        raw(&self.0.finish())
    }
}

/// The bytes of a digest.
pub fn raw(made: &Digest) -> [u8; 32] {
    // INVARIANT: a SHA-256 has 32 bytes.
    made.as_ref().try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_the_digest_it_has_alone() {
        let random = |n: u32| (n.wrapping_mul(2_654_435_761) >> 23) as u8;
        let bytes: Vec<u8> = (0..40_000).map(random).collect();
        for length in [1, 55, 56, 63, 64, 65, 256, 1536] {
            let mut digests = vec![[7; 32]];
            sha256_each(&bytes[..20 * length], length, &mut digests);
            assert_eq!(digests[0], [7; 32]);
            assert!(
                bytes
                    .chunks(length)
                    .map(sha256_raw)
                    .take(20)
                    .eq(digests[1..].iter().copied())
            );
        }
        // Long runs beside short ones, so that lanes end and begin at different times.
        let run_of = |n: usize| &bytes[n..n + n * 37 % 211 + if n.is_multiple_of(29) { 8_000 } else { 1 }];
        let runs: Vec<&[u8]> = (1..400).map(run_of).collect();
        for count in [0, 15, 16, 31, 32, 399] {
            let mut digests = Vec::new();
            sha256_runs(&runs[..count], &mut digests);
            let alone = runs[..count].iter().map(|run| sha256_raw(run));
            assert!(alone.eq(digests), "{count} runs");
        }
    }

    #[test]
    fn only_lower_case_digits_are_a_digest() {
        let raw: [u8; 32] = std::array::from_fn(|at| (at * 37 + 11) as u8);
        let spelled = Hex::spell(&raw);
        assert_eq!((Hex::read(spelled.bytes()), spelled.raw()), (Some(spelled), raw));
        for length in [0, 63, 65] {
            assert_eq!(Hex::read_raw(&[b'a'; 65][..length]), None);
        }
        for place in [0, 1, 62, 63] {
            for byte in 0..=u8::MAX {
                let mut text = *spelled.bytes();
                text[place] = byte;
                let value = char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
                let mut expected = raw;
                let shift = if place % 2 == 0 { 4 } else { 0 };
                expected[place / 2] &= !(15 << shift);
                expected[place / 2] |= (value.unwrap_or_default() as u8) << shift;
                assert_eq!(Hex::read_raw(&text), value.map(|_| expected), "{byte} at {place}");
            }
        }
    }
}
