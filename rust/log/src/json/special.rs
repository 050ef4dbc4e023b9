//! Finds the end of a run of plain characters in a string, many bytes at a time.
//!
//! It is the first quote, backslash or control character below 0x20.

const STEP: usize = 32;

/// Where the string ends that begins with the quote at `start`: behind its other quote. What stands between is not looked at.
#[must_use]
pub fn end_of_string(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The place of the first special byte at or after `from`; the length of `bytes` if there is none.
#[inline(always)]
pub(super) fn next_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let ByteMasks { quotes, others } = masks(chunk);
        if quotes | others != 0 {
            return at + (quotes | others).trailing_zeros() as usize;
        }
        at += STEP;
    }
    next_special_near_end(bytes, at)
}

/// The place of the first special byte at or after `from`, if there is one and it is a quote.
#[inline(always)]
pub(super) fn next_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let ByteMasks { quotes, others } = masks(chunk);
        if quotes != 0 {
            // The place depends on the quotes alone, so the processor goes on while the rest is checked.
            let up_to_quote = quotes ^ (quotes - 1);
            return (others & up_to_quote == 0).then_some(at + quotes.trailing_zeros() as usize);
        }
        if others != 0 {
            return None;
        }
        at += STEP;
    }
    let end = next_special_near_end(bytes, at);
    (bytes.get(end) == Some(&b'"')).then_some(end)
}

/// The first special byte at or after `from` where less than one step is left.
fn next_special_near_end(bytes: &[u8], from: usize) -> usize {
    if let Some(last) = bytes.last_chunk() {
        // Look at the last full step again and forget what lies before `from`.
        let ByteMasks { quotes, others } = masks(last);
        let seen = (STEP + from).saturating_sub(bytes.len()) as u32;
        let rest = (quotes | others).checked_shr(seen).unwrap_or(0);
        return if rest == 0 {
            bytes.len()
        } else {
            from + rest.trailing_zeros() as usize
        };
    }
    let rest = bytes.get(from..).unwrap_or_default();
    let first = if is_short_plain(rest) {
        None
    } else {
        rest.iter().position(|&byte| is_special(byte))
    };
    first.map_or(bytes.len(), |first| from + first)
}

/// Whether a text has no special byte at all.
#[inline]
pub(super) fn is_plain(text: &[u8]) -> bool {
    if text.len() < STEP {
        return is_short_plain(text);
    }
    let none = |chunk: &[u8; STEP]| {
        let ByteMasks { quotes, others } = masks(chunk);
        quotes | others == 0
    };
    // The last step overlaps the one before.
    text.as_chunks().0.iter().all(none) && text.last_chunk().is_none_or(none)
}

/// Whether a text shorter than a step has no special byte: a few words that overlap instead of a loop.
#[inline]
fn is_short_plain(text: &[u8]) -> bool {
    let word = |bytes: &[u8; 8]| special_bits(u64::from_le_bytes(*bytes));
    let found = if let (Some(first), Some(last)) = (text.first_chunk::<16>(), text.last_chunk::<16>()) {
        let words = [first, last].map(|half| half.as_chunks::<8>().0.iter().fold(0, |bits, eight| bits | word(eight)));
        words[0] | words[1]
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        word(first) | word(last)
    } else if let (Some(first), Some(last)) = (text.first_chunk(), text.last_chunk()) {
        special_bits(u64::from(u32::from_le_bytes(*first)) << 32 | u64::from(u32::from_le_bytes(*last)))
    } else {
        return !text.iter().any(|&byte| is_special(byte));
    };
    found == 0
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// One bit for each byte of a step.
#[derive(Debug, PartialEq)]
struct ByteMasks {
    quotes: u32,
    /// Backslashes and control characters.
    others: u32,
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
fn masks(chunk: &[u8; STEP]) -> ByteMasks {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_loadu_si128, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    let half = |half: &[u8; STEP / 2]| {
        // SAFETY: SSE2 is part of every x86-64 processor. The load takes 16 bytes at any alignment, and `half` has 16.
        unsafe {
            let bytes = _mm_loadu_si128(half.as_ptr().cast());
            let quotes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
            let backslashes = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
            let controls = _mm_cmpeq_epi8(bytes, _mm_min_epu8(bytes, _mm_set1_epi8(0x1f)));
            let others = _mm_or_si128(backslashes, controls);
            ByteMasks {
                quotes: _mm_movemask_epi8(quotes) as u32,
                others: _mm_movemask_epi8(others) as u32,
            }
        }
    };
    let (halves, _) = chunk.as_chunks();
    let (low, high) = (half(&halves[0]), half(&halves[1]));
    ByteMasks {
        quotes: low.quotes | high.quotes << 16,
        others: low.others | high.others << 16,
    }
}

#[cfg(not(target_arch = "x86_64"))]
use portable_masks as masks;

/// The same for processors without a kernel of their own, eight bytes at a time.
#[cfg(any(test, not(target_arch = "x86_64")))]
#[inline(always)]
fn portable_masks(chunk: &[u8; STEP]) -> ByteMasks {
    // Gathers the eight high bits in the top byte: no two of the products fall on the same bit.
    let gather = |bits: u64| ((bits >> 7).wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    let mut masks = ByteMasks { quotes: 0, others: 0 };
    for (place, bytes) in chunk.as_chunks::<8>().0.iter().enumerate() {
        let word = u64::from_le_bytes(*bytes);
        let quotes = equal_bits(word, b'"');
        masks.quotes |= gather(quotes) << (8 * place);
        masks.others |= gather(special_bits(word) & !quotes) << (8 * place);
    }
    masks
}

const ONES: u64 = u64::MAX / 255;
const LOW_BITS: u64 = ONES * 0x7f;

/// Sets the high bit of every byte that is special and no other bit.
#[inline(always)]
const fn special_bits(word: u64) -> u64 {
    equal_bits(word, b'"') | equal_bits(word, b'\\') | equal_bits(word & (ONES * 0xe0), 0)
}

/// Sets the high bit of every byte that equals `byte` and no other bit. No carry leaves its byte.
#[inline(always)]
const fn equal_bits(word: u64, byte: u8) -> u64 {
    let zero = word ^ (ONES * byte as u64);
    !(((zero & LOW_BITS) + LOW_BITS) | zero | LOW_BITS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_is_found_or_passed() {
        for length in [1_usize, 3, 4, 6, 8, 13, 16, 27, 31, 32, 33, 40, 65] {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = byte;
                    let expected = if is_special(byte) { place } else { length };
                    assert_eq!(next_special(&bytes, 0), expected, "{byte:#x} at {place} of {length}");
                    assert_eq!(is_plain(&bytes), !is_special(byte), "{byte:#x} at {place} of {length}");
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
                    assert_eq!(next_quote(&bytes, 0), (bytes_pair.0 == b'"').then_some(first));
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
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Half of the bytes come from the neighbourhood of the special ones.
                let byte = (state >> 56) as u8;
                if state >> 40 & 1 == 0 {
                    byte
                } else {
                    [0x1f, 0x20, b'"', b'#', b'\\', b']', 0xa2, 0x80][(byte & 7) as usize]
                }
            });
            let mask = |wanted: fn(u8) -> bool| {
                (0..STEP).fold(0, |mask, place| mask | u32::from(wanted(chunk[place])) << place)
            };
            let expected = ByteMasks {
                quotes: mask(|byte| byte == b'"'),
                others: mask(|byte| byte == b'\\' || byte < 0x20),
            };
            assert_eq!(portable_masks(&chunk), expected, "{chunk:?}");
            assert_eq!(masks(&chunk), expected, "{chunk:?}");
        }
    }
}
