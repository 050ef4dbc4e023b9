//! SHA-256 of bytes, and its hexadecimal spelling.

#[cfg(target_arch = "x86_64")]
mod wide;

use ring::digest::{Context, Digest, SHA256, digest};

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

/// A one in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;
/// The top bit of each byte.
const TOPS: u64 = EACH << 7;

/// The 64 lower-case hexadecimal digits of a SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hex([u8; 64]);

impl Hex {
    /// Reads a digest; `None` unless it is exactly 64 lower-case hexadecimal digits.
    pub fn read(text: &[u8]) -> Option<Self> {
        Self::read_with_raw(text).map(|(hex, _)| hex)
    }

    /// The same with the bytes that it stands for.
    #[inline]
    pub fn read_with_raw(text: &[u8]) -> Option<(Self, [u8; 32])> {
        let digits: &[u8; 64] = text.try_into().ok()?;
        parsed(digits).map(|raw| (Self(*digits), raw))
    }

    /// The bytes that a digest stands for; `None` unless it is exactly 64 lower-case hexadecimal digits.
    #[inline]
    pub fn read_raw(text: &[u8]) -> Option<[u8; 32]> {
        parsed(text.try_into().ok()?)
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

/// The bytes that digits stand for, eight at a time; `None` if one is no digit.
#[inline]
fn parsed(digits: &[u8; 64]) -> Option<[u8; 32]> {
    let mut raw = [0; 32];
    let mut right = TOPS;
    for (out, eight) in raw.as_chunks_mut::<4>().0.iter_mut().zip(digits.as_chunks::<8>().0) {
        let text = u64::from_le_bytes(*eight);
        // The top bit of each byte that is at least so much. No byte carries into the next one: all are below 128.
        let low = text & !TOPS;
        let least = |byte: u8| low + EACH * u64::from(128 - byte);
        let is_number = least(b'0') & !least(b'9' + 1);
        let is_letter = least(b'a') & !least(b'f' + 1);
        right &= (is_number | is_letter) & !text;
        // Letters have a bit that numbers have not, and `a` ends in 1.
        let values = (low & (EACH * 0x0f)) + (low >> 6 & EACH) * 9;
        let pairs = (values << 4 | values >> 8) & 0x00ff_00ff_00ff_00ff;
        let fours = (pairs | pairs >> 8) & 0x0000_ffff_0000_ffff;
        *out = ((fours | fours >> 16) as u32).to_le_bytes();
    }
    (right == TOPS).then_some(raw)
}

impl std::fmt::Debug for Hex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text())
    }
}

/// Spells bytes, two digits each.
pub fn write_hex(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend(bytes.iter().flat_map(|byte| DIGIT_PAIRS[usize::from(*byte)]));
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
    let runs: Vec<ByteRun<'_>> = bytes.chunks_exact(length).map(ByteRun::of).collect();
    sha256_runs(&runs, digests);
}

/// SHA-256 of each of some runs, put behind those that are known. Where a processor can hash many at the same time, it does.
pub fn sha256_runs(runs: &[ByteRun<'_>], digests: &mut Vec<[u8; 32]>) {
    let known = digests.len();
    digests.resize(known + runs.len(), [0; 32]);
    let done = side_by_side(runs, &mut digests[known..]);
    for (run, digest) in runs[done..].iter().zip(&mut digests[known + done..]) {
        *digest = run.digest();
    }
}

/// How many runs this processor hashes at the same time.
#[cfg(target_arch = "x86_64")]
pub fn at_once() -> usize {
    if *wide::IS_THERE { wide::LANES } else { 1 }
}

#[cfg(not(target_arch = "x86_64"))]
pub fn at_once() -> usize {
    1
}

/// Hashes the first of some runs at the same time; says how many.
#[cfg(target_arch = "x86_64")]
fn side_by_side(runs: &[ByteRun<'_>], digests: &mut [[u8; 32]]) -> usize {
    // A lane that has nothing to do costs as much as one that has: what does not fill them is left.
    let many = runs.len() / wide::LANES * wide::LANES;
    if many == 0 || !*wide::IS_THERE {
        return 0;
    }
    wide::hash(&runs[..many], digests);
    many
}

#[cfg(not(target_arch = "x86_64"))]
fn side_by_side(_: &[ByteRun<'_>], _: &mut [[u8; 32]]) -> usize {
    0
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_run_has_the_digest_it_has_alone() {
        let bytes: Vec<u8> = (0..40_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect();
        for length in [1, 55, 56, 63, 64, 65, 256, 1536, 6144] {
            for runs in [0, 1, 5, 16, 17, 40] {
                let bytes = &bytes[..(runs * length).min(bytes.len() / length * length)];
                let mut digests = vec![[7; 32]];
                sha256_each(bytes, length, &mut digests);
                let expected: Vec<[u8; 32]> = bytes.chunks_exact(length).map(|run| sha256(run).raw()).collect();
                assert_eq!(digests[0], [7; 32]);
                assert_eq!(digests[1..], expected, "{runs} runs of {length} bytes");
            }
        }
    }

    #[test]
    fn runs_of_all_lengths_have_the_digests_they_have_alone() {
        let bytes: Vec<u8> = (0..9_000_u32)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 23) as u8)
            .collect();
        // Long ones beside short ones, so that lanes end and begin at different times.
        let runs: Vec<ByteRun<'_>> = (1..400)
            .map(|n: usize| ByteRun {
                bytes: &bytes[n..n + n * 37 % 211 + if n.is_multiple_of(29) { 8_000 } else { 1 }],
                first: n as u8,
            })
            .collect();
        for count in [15, 16, 31, 32, 399] {
            let mut digests = Vec::new();
            sha256_runs(&runs[..count], &mut digests);
            let alone = |run: &ByteRun<'_>| {
                let mut bytes = run.bytes.to_vec();
                bytes[0] = run.first;
                sha256_raw(&bytes)
            };
            assert!(runs[..count].iter().map(alone).eq(digests), "{count} runs");
        }
    }

    #[test]
    fn only_lower_case_digits_are_a_digest() {
        let raw: [u8; 32] = std::array::from_fn(|at| (at * 37 + 11) as u8);
        let spelled = Hex::spell(&raw);
        assert_eq!(Hex::read(spelled.bytes()), Some(spelled));
        assert_eq!(Hex::read_raw(spelled.bytes()), Some(raw));
        assert_eq!(spelled.raw(), raw);
        for length in [0, 63, 65] {
            assert_eq!(Hex::read_raw(&[b'a'; 65][..length]), None);
        }
        for place in 0..64 {
            for byte in 0..=u8::MAX {
                let mut text = *spelled.bytes();
                text[place] = byte;
                let value = (byte as char).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
                let read = Hex::read_raw(&text);
                assert_eq!(Hex::read(&text).map(|hex| hex.raw()), read);
                assert_eq!(read.is_some(), value.is_some(), "{byte} at {place}");
                if let (Some(read), Some(value)) = (read, value) {
                    let nibble = if place % 2 == 0 {
                        read[place / 2] >> 4
                    } else {
                        read[place / 2] & 15
                    };
                    assert_eq!(u32::from(nibble), value);
                }
            }
        }
    }
}
