//! Finds the end of a run of plain characters in a string: the first quote, backslash or control character below 0x20.

const STEP: usize = 32;

/// The offset behind the string whose opening quote is at `start`. Its characters are not checked.
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

/// The offset of the first special byte at or after `from`; the length of `bytes` if there is none.
#[inline(always)]
pub(super) fn next_special(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let (quotes, others) = masks(chunk);
        if quotes | others != 0 {
            return at + (quotes | others).trailing_zeros() as usize;
        }
        at += STEP;
    }
    next_special_near_end(bytes, at)
}

/// The offset of the first special byte at or after `from`, if it is a quote.
#[inline(always)]
pub(super) fn next_quote(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk()) {
        let (quotes, others) = masks(chunk);
        if quotes != 0 {
            // The offset depends on the quotes alone, so the processor continues while the rest is checked.
            let is_first = others & (quotes ^ (quotes - 1)) == 0;
            return is_first.then_some(at + quotes.trailing_zeros() as usize);
        }
        if others != 0 {
            return None;
        }
        at += STEP;
    }
    let end = next_special_near_end(bytes, at);
    (bytes.get(end) == Some(&b'"')).then_some(end)
}

/// The offset of the first special byte at or after `from`, where less than one step is left.
fn next_special_near_end(bytes: &[u8], from: usize) -> usize {
    let Some(last) = bytes.last_chunk() else {
        let rest = bytes.get(from..).unwrap_or_default();
        // Without an early exit many bytes are compared at once.
        let is_plain = !rest.iter().fold(false, |found, &byte| found | is_special(byte));
        let first = if is_plain {
            None
        } else {
            rest.iter().position(|&byte| is_special(byte))
        };
        return first.map_or(bytes.len(), |first| from + first);
    };
    // The last full step, without the bytes before `from`.
    let (quotes, others) = masks(last);
    let seen = (STEP + from).saturating_sub(bytes.len()) as u32;
    match (quotes | others).checked_shr(seen).unwrap_or(0) {
        0 => bytes.len(),
        rest => from + rest.trailing_zeros() as usize,
    }
}

const fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// One bit for each byte: the quotes, then backslashes and control characters.
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[inline(always)]
fn masks(chunk: &[u8; STEP]) -> (u32, u32) {
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
            (_mm_movemask_epi8(quotes) as u32, _mm_movemask_epi8(others) as u32)
        }
    };
    let (halves, _) = chunk.as_chunks();
    let (low, high) = (half(&halves[0]), half(&halves[1]));
    (low.0 | high.0 << 16, low.1 | high.1 << 16)
}

#[cfg(not(target_arch = "x86_64"))]
#[inline(always)]
fn masks(chunk: &[u8; STEP]) -> (u32, u32) {
    // The compiler compares all bytes at once here; most steps are plain.
    if !chunk.iter().fold(false, |found, &byte| found | is_special(byte)) {
        return (0, 0);
    }
    let bits = |of: fn(u8) -> bool| {
        let bytes = chunk.iter().rev();
        bytes.fold(0, |bits, &byte| bits << 1 | u32::from(of(byte)))
    };
    (bits(|byte| byte == b'"'), bits(|byte| byte != b'"' && is_special(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_found_at_every_offset() {
        for length in [0_usize, 1, 3, 8, 31, 32, 33, 65] {
            for place in 0..length {
                for byte in 0..=u8::MAX {
                    let mut bytes = vec![b'a'; length];
                    bytes[place] = byte;
                    let expected = if is_special(byte) { place } else { length };
                    let quote = (byte == b'"').then_some(place);
                    for from in [0, place] {
                        assert_eq!(next_special(&bytes, from), expected, "{byte:#x} at {place} of {length}");
                        assert_eq!(next_quote(&bytes, from), quote, "{byte:#x} at {place} of {length}");
                    }
                    assert_eq!(next_special(&bytes, place + 1), length);
                    bytes.insert(place, b'\\');
                    assert_eq!((next_special(&bytes, 0), next_quote(&bytes, 0)), (place, None));
                }
            }
        }
        assert_eq!((next_special(b"", 0), next_quote(b"", 0)), (0, None));
    }
}
