//! Reads the lines of the log in pieces, on several threads, in order.
//!
//! Each piece is read, split, scanned and hashed by one thread. A line belongs to the piece it begins in.

use std::io;
use std::ops::Range;

use memchr::{memchr, memchr_iter};

use crate::damage::DamageKind;
use crate::digest::{at_once, sha256_runs};
use crate::disk::{DiskFile, read_over, read_upto};
use crate::event::line::{Event, Fault, Trust, named_hash};
use crate::event::{HASH_PREFIX_BYTES, IncomingEvents};
use crate::json::MAX_LINE_BYTES;
use crate::memory::{self, Refused, gathered};
use crate::ordered::in_order;

/// How much of the log one thread takes at a time.
const PIECE_BYTES: u64 = 1024 * 1024;
/// And at first, if there is only one: many ask how a log begins, and nothing more.
const FIRST_PIECE_BYTES: u64 = 4 * 1024;
/// What a line of another tool may need while it is parsed, for each of its bytes: every other one may begin a value.
const PARSED_BYTES: usize = 32;
/// Shorter lines need little memory for that.
const LONG_LINE_BYTES: usize = 64 * 1024;
/// How much more is read when a line reaches beyond its piece.
const REACH_BYTES: usize = 64 * 1024;
/// Longer lines are hashed one by one.
const TOGETHER_BYTES: usize = 16 * 1024;

/// One line of a piece.
#[derive(Debug)]
pub struct LogLine {
    /// Its first byte in the log.
    pub offset: u64,
    /// Its physical line, counted from 0 at the beginning of the piece.
    pub number: u64,
    /// Its event, or what is wrong with it.
    pub event: Result<Event, Fault>,
    range: Range<usize>,
}

/// A run of consecutive lines.
#[derive(Debug, Default)]
pub struct LogPiece {
    bytes: Vec<u8>,
    /// The lines that are not blank.
    pub lines: Vec<LogLine>,
    /// Where blank lines begin.
    pub blank: Vec<u64>,
    /// How many physical lines there are.
    pub physical: u64,
    /// Behind the last newline; `None` if no line ends here.
    pub end: Option<u64>,
}

impl LogPiece {
    /// What a sink needs for its lines.
    pub fn coming(&self) -> IncomingEvents {
        IncomingEvents::of(self.lines.iter().map(|line| {
            let (text, event) = (self.text(line), line.event.as_ref().ok());
            let parts = event.map(|event| (event.op, event.record_id(text), event.record(text)));
            (text.len(), parts)
        }))
    }

    /// The bytes of one of its lines, without the newline.
    pub fn text(&self, line: &LogLine) -> &[u8] {
        &self.bytes[line.range.clone()]
    }
}

/// How the log is to be read.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    /// Hashes before this offset are not computed again.
    pub trusted_until: u64,
    /// How many threads read.
    pub threads: usize,
}

impl Reading {
    /// Computes every hash.
    pub const fn new(threads: usize) -> Self {
        Self {
            trusted_until: 0,
            threads,
        }
    }
}

/// Hands over the lines that begin in `range` in order, until `take` returns false.
pub fn read_pieces<E: From<io::Error>>(
    file: &dyn DiskFile,
    range: Range<u64>,
    reading: Reading,
    mut take: impl FnMut(&LogPiece) -> Result<bool, E>,
) -> Result<(), E> {
    let first = match reading.threads {
        0 | 1 => FIRST_PIECE_BYTES,
        _ => PIECE_BYTES,
    };
    let length = range.end - range.start;
    let pieces = length.min(1) + length.saturating_sub(first).div_ceil(PIECE_BYTES);
    let begin = |index: u64| match index {
        0 => range.start,
        _ => (range.start + first + (index - 1) * PIECE_BYTES).min(range.end),
    };
    let span = |index: u64| begin(index)..begin(index + 1);
    in_order(
        pieces,
        reading.threads,
        |index, piece: &mut LogPiece| read_piece(file, span(index), &range, reading.trusted_until, piece),
        |piece| take(piece),
    )
}

fn read_piece(
    file: &dyn DiskFile,
    span: Range<u64>,
    whole: &Range<u64>,
    trusted_until: u64,
    piece: &mut LogPiece,
) -> io::Result<()> {
    piece.lines.clear();
    piece.blank.clear();
    let is_redacted = file.is_redacted();
    (piece.physical, piece.end) = (0, None);
    // One byte earlier tells whether a line begins exactly here.
    let origin = if span.start > whole.start {
        span.start - 1
    } else {
        span.start
    };
    let wanted = (span.end - origin) as usize;
    read_over(file, &mut piece.bytes, origin, wanted)?;
    let mut start = 0;
    if origin < span.start {
        match memchr(b'\n', &piece.bytes) {
            Some(newline) => start = newline + 1,
            None => return Ok(()),
        }
    }
    let inside = piece.bytes.len();
    let mut newlines = gathered(memchr_iter(b'\n', &piece.bytes[start..]).map(|at| at + start))?;
    let last_start = newlines.last().map_or(start, |at| at + 1);
    if last_start < inside
        && let Some(newline) = reach_newline(file, origin, whole.end, last_start, &mut piece.bytes)?
    {
        newlines.push(newline);
    }
    piece.lines.try_reserve(newlines.len()).map_err(Refused::from)?;
    let untrusted = trusted_until.saturating_sub(origin) as usize;
    let proven = proven(&mut piece.bytes, start, &newlines, untrusted)?;
    for (newline, is_proven) in newlines.into_iter().zip(proven) {
        let number = piece.physical;
        piece.physical += 1;
        piece.end = Some(origin + newline as u64 + 1);
        let range = start..newline.min(piece.bytes.len());
        let offset = origin + start as u64;
        start = newline + 1;
        let event = if newline - range.start > MAX_LINE_BYTES {
            Err(Fault {
                kind: DamageKind::Unreadable,
                reason: "a line over 16 MiB".to_owned(),
                seq: None,
            })
        } else {
            let text = &piece.bytes[range.clone()];
            if text.iter().all(|b| matches!(b, b' ' | b'\t' | b'\r')) {
                piece.blank.push(offset);
                continue;
            }
            memory::check()?;
            if text.len() > LONG_LINE_BYTES {
                memory::could_have(text.len() * PARSED_BYTES)?;
            }
            let trust = if offset < trusted_until || is_proven {
                Trust::Hashes
            } else {
                Trust::Nothing
            };
            match Event::read(text, trust) {
                Err(fault) if is_redacted => Event::read_redacted(text).ok_or(fault),
                read => read,
            }
        };
        piece.lines.push(LogLine {
            offset,
            number,
            event,
            range,
        });
    }
    Ok(())
}

/// Which lines have the hashes that they name, as far as many can be hashed together. Of the others nothing is known yet.
fn proven(bytes: &mut [u8], start: usize, newlines: &[usize], untrusted: usize) -> Result<Vec<bool>, Refused> {
    let mut proven = gathered(newlines.iter().map(|_| false))?;
    if at_once() == 1 || newlines.len() < at_once() {
        return Ok(proven);
    }
    let starts = std::iter::once(start).chain(newlines.iter().map(|newline| newline + 1));
    let named = |(number, (start, newline)): (usize, (usize, &usize))| {
        let line = bytes.get(start..*newline).filter(|line| line.len() <= TOGETHER_BYTES)?;
        let hash = named_hash(line).filter(|_| start >= untrusted)?;
        Some((number, start + HASH_PREFIX_BYTES - 1..*newline, hash))
    };
    let named = gathered(starts.zip(newlines).enumerate().filter_map(named))?;
    let (mut runs, mut digests) = (Vec::new(), Vec::new());
    runs.try_reserve(named.len())?;
    digests.try_reserve(named.len())?;
    // A payload begins with a brace; its line has a comma in that place.
    named.iter().for_each(|(_, payload, _)| bytes[payload.start] = b'{');
    runs.extend(named.iter().map(|(_, payload, _)| &bytes[payload.clone()]));
    sha256_runs(&runs, &mut digests);
    for ((number, payload, hash), digest) in named.iter().zip(&digests) {
        bytes[payload.start] = b',';
        proven[*number] = hash == digest;
    }
    Ok(proven)
}

/// Reads on to the end of the last line, which begins at `start`; gives its newline. An overlong rest is not kept.
pub fn reach_newline(
    file: &dyn DiskFile,
    origin: u64,
    end: u64,
    start: usize,
    bytes: &mut Vec<u8>,
) -> io::Result<Option<usize>> {
    let mut window = Vec::new();
    let mut skipped = 0;
    loop {
        let kept = bytes.len() - start <= MAX_LINE_BYTES;
        let known = bytes.len() + skipped;
        let room = (end - origin).saturating_sub(known as u64).min(REACH_BYTES as u64) as usize;
        window.clear();
        if read_upto(file, &mut window, origin + known as u64, room)? == 0 {
            return Ok(None);
        }
        let newline = memchr(b'\n', &window);
        if kept {
            bytes.try_reserve(window.len()).map_err(Refused::from)?;
            bytes.extend_from_slice(&window);
        } else {
            skipped += window.len();
        }
        if let Some(newline) = newline {
            return Ok(Some(known + newline));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Bytes;
    use crate::event::Op;
    use crate::wal::writer::{ChainEnd, EventBody, Lines};

    /// Which of some lines are no events.
    fn faulty(log: Vec<u8>, trusted_until: u64) -> Vec<usize> {
        let (length, mut found) = (log.len() as u64, Vec::new());
        let reading = Reading {
            trusted_until,
            threads: 2,
        };
        read_pieces(&Bytes(log), 0..length, reading, |piece| {
            let bad = piece.lines.iter().enumerate().filter(|(_, line)| line.event.is_err());
            found.extend(bad.map(|(number, _)| number));
            io::Result::Ok(true)
        })
        .expect("memory does not fail");
        found
    }

    #[test]
    fn of_many_lines_just_the_altered_one_is_found() {
        let mut lines = Lines::after(ChainEnd::BEGINNING);
        for number in 0..50 {
            // Short ones beside one that is too long to be hashed together with others.
            let words = "x".repeat(if number == 20 { TOGETHER_BYTES } else { number * 9 });
            lines.push(EventBody {
                op: Op::Upsert,
                id: b"a",
                record: format!("{{\"id\":\"a\",\"label\":\"{words}\"}}").as_bytes(),
                ts: b"2026-11-17T00:00:00.000000+00:00",
                depth: 0,
            });
        }
        assert_eq!(faulty(lines.bytes.clone(), 0), [0; 0]);
        for (number, start) in lines.starts.iter().enumerate() {
            // The hash, and the last digit of the moment.
            let places = [start + 20, start + lines.line(number).len() - 9];
            for at in places {
                let mut log = lines.bytes.clone();
                log[at] ^= 1;
                assert_eq!(faulty(log, 0), [number], "{number}");
            }
            // What is trusted is not hashed.
            let mut log = lines.bytes.clone();
            log[places[1]] ^= 1;
            assert_eq!(faulty(log, lines.bytes.len() as u64), [0; 0], "{number}");
        }
    }
}
