//! Where does a run of plain characters end?

/// How many bytes are looked at in one step.
const STEP: usize = 32;

/// The place of the first byte at or after `from` that a JSON string cannot hold as it is: a quote, a backslash or
/// a control character below 0x20. The length of `bytes` if there is none.
#[inline(always)]
pub(super) fn next_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let mask = special_mask(chunk);
        if mask != 0 {
            return at + mask.trailing_zeros() as usize;
        }
        at += STEP;
    }
    next_special_near_end(bytes, at)
}

/// The same where less than one step is left.
fn next_special_near_end(bytes: &[u8], from: usize) -> usize {
    let Some(left) = bytes.len().checked_sub(from) else {
        return bytes.len();
    };
    let mask = if let Some(last) = bytes.last_chunk() {
        // Look at the last full step again and forget what lies before `from`.
        special_mask(last)
            .checked_shr((STEP - left) as u32)
            .unwrap_or(0)
    } else {
        let mut padded = [b' '; STEP];
        padded[..left].copy_from_slice(&bytes[from..]);
        special_mask(&padded)
    };
    if mask == 0 {
        bytes.len()
    } else {
        from + mask.trailing_zeros() as usize
    }
}

/// One bit for each byte of a step, set if the byte is special.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn special_mask(chunk: &[u8; STEP]) -> u32 {
    // SAFETY: SSE2 is part of every x86-64 processor, and the function asks for nothing else.
    #[allow(unsafe_code)]
    unsafe {
        sse2_mask(chunk)
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "sse2")]
#[inline]
fn sse2_mask(chunk: &[u8; STEP]) -> u32 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };
    let half_mask = |at: usize| {
        let word = |at: usize| {
            let bytes: [u8; 8] = std::array::from_fn(|place| chunk[at + place]);
            i64::from_le_bytes(bytes)
        };
        let bytes = _mm_set_epi64x(word(at + 8), word(at));
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
        let control = _mm_cmpeq_epi8(bytes, _mm_min_epu8(bytes, _mm_set1_epi8(0x1f)));
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)) as u32
    };
    half_mask(0) | half_mask(16) << 16
}

#[cfg(not(target_arch = "x86_64"))]
use portable_mask as special_mask;

/// The same for processors without a kernel of their own, eight bytes at a time.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn portable_mask(chunk: &[u8; STEP]) -> u32 {
    const ONES: u64 = u64::MAX / 255;
    const LOW_BITS: u64 = ONES * 0x7f;
    // Sets the high bit of every byte that is zero, exactly: no carry leaves its byte.
    let zeros = |word: u64| !(((word & LOW_BITS) + LOW_BITS) | word | LOW_BITS);
    let mut mask = 0;
    for (place, bytes) in chunk.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let quote = zeros(word ^ (ONES * u64::from(b'"')));
        let backslash = zeros(word ^ (ONES * u64::from(b'\\')));
        let control = zeros(word & (ONES * 0xe0));
        // Gathers the eight high bits in the top byte: no two of the products fall on the same bit.
        let bits = ((quote | backslash | control) >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        mask |= (bits as u32) << (8 * place);
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_special(byte: u8) -> bool {
        byte < 0x20 || byte == b'"' || byte == b'\\'
    }

    #[test]
    fn every_byte_at_every_place_is_found_or_passed() {
        for length in [1_usize, 7, 31, 32, 33, 40, 65] {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = byte;
                    let expected = if is_special(byte) { place } else { length };
                    assert_eq!(
                        next_special(&bytes, 0),
                        expected,
                        "{byte:#x} at {place} of {length}"
                    );
                    assert_eq!(
                        next_special(&bytes, place),
                        expected,
                        "{byte:#x} at {place} of {length}"
                    );
                }
            }
        }
    }

    #[test]
    fn the_first_of_two_wins_and_the_start_counts() {
        for first in 0..20 {
            for second in first + 1..40 {
                for bytes_pair in [
                    (b'"', b'\\'),
                    (0x1f, b'"'),
                    (b'\\', 0),
                    (b'"', b'#'),
                    (b'\\', b']'),
                    (0, 0x20),
                ] {
                    let mut bytes = vec![0xff; 40];
                    bytes[first] = bytes_pair.0;
                    bytes[second] = bytes_pair.1;
                    assert_eq!(next_special(&bytes, 0), first);
                    let after = if is_special(bytes_pair.1) { second } else { 40 };
                    assert_eq!(next_special(&bytes, first + 1), after);
                }
            }
        }
        assert_eq!(next_special(b"", 0), 0);
        assert_eq!(next_special(b"\"\"", 2), 2);
    }

    #[test]
    fn both_kernels_see_the_same() {
        let mut state = 1_u64;
        for _ in 0..20_000 {
            let chunk: [u8; STEP] = std::array::from_fn(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                // Half of the bytes come from the neighbourhood of the special ones.
                let byte = (state >> 56) as u8;
                if state >> 40 & 1 == 0 {
                    byte
                } else {
                    [0x1f, 0x20, b'"', b'#', b'\\', b']', 0xa2, 0x80][(byte & 7) as usize]
                }
            });
            let expected = (0..STEP).fold(0, |mask, place| {
                mask | u32::from(is_special(chunk[place])) << place
            });
            assert_eq!(portable_mask(&chunk), expected, "{chunk:?}");
            assert_eq!(special_mask(&chunk), expected, "{chunk:?}");
        }
    }
}
