//! Makes an altered base again with the help of the snapshot beside it.
//!
//! Both hold records in the order in which they came, one a line. So what a damaged base has lost, its snapshot may still
//! have, and the digest that the log names tells when all of it is right again. Nothing is guessed: bytes with another
//! digest are thrown away.

use std::collections::{HashMap, HashSet};
use std::io;

use chronolog::digest::{Hasher, Hex};
use chronolog::disk::{Bytes, DiskFile, read_upto};
use chronolog::json::{self, RecordSpans};
use chronomemory_state::snapshot::{self, Moments, OPEN_MOMENTS, OPEN_RECORDS, TO_LATER_MOMENTS, TO_RECORDS, Taker};

/// Larger files are not taken into memory for this.
const MOST_BYTES: u64 = 256 * 1024 * 1024;
/// How many single records are tried that the snapshot has in another version.
const MOST_TRIES: usize = 64;

/// The records of a snapshot, in order.
#[derive(Default)]
struct Records(Vec<(Vec<u8>, Vec<u8>)>);

impl Taker for Records {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
        self.0.push((id.to_vec(), record.to_vec()));
    }

    fn start_over(&mut self) {
        self.0.clear();
    }
}

/// A line of a base: a record that can be read, or something else.
struct BaseLine<'a> {
    id: Option<Vec<u8>>,
    text: &'a [u8],
}

/// The base that has this digest, made of what is left of it and of its snapshot; `None` if they do not have all of it.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn with_snapshot(
    base: &dyn DiskFile,
    snapshot: &dyn DiskFile,
    sha256: &Hex,
) -> io::Result<Option<Bytes>> {
    let length = base.length()?;
    if length > MOST_BYTES || snapshot.length()? > MOST_BYTES {
        return Ok(None);
    }
    let mut records = Records::default();
    if snapshot::read(snapshot, &mut records)?.header.is_err() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    read_upto(base, &mut bytes, 0, length as usize)?;
    let Some(parts) = BaseParts::of(&bytes) else {
        return Ok(None);
    };
    let attempts = BaseAttempts {
        lines: parts.records.iter().copied().map(line_of).collect(),
        around: &parts,
        records: &records.0,
        sha256,
    };
    Ok(attempts.find().map(Bytes))
}

/// A base by its lines.
struct BaseParts<'a> {
    /// Up to the first record.
    before: Vec<&'a [u8]>,
    records: Vec<&'a [u8]>,
    /// From behind the last record on.
    behind: Vec<&'a [u8]>,
}

impl<'a> BaseParts<'a> {
    fn of(bytes: &'a [u8]) -> Option<Self> {
        let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        let place_of = |wanted: &[u8]| lines.iter().position(|line| *line == wanted);
        // Only of the records more is known elsewhere: what stands around them has to be whole. The first line is always the
        // same, and whatever stands there instead is no record either.
        let (first, start) = match place_of(TO_RECORDS) {
            Some(place) => (OPEN_MOMENTS, place + 1),
            None => {
                let is_record = lines.first().is_some_and(|first| json::scan_record(first).is_some());
                (OPEN_RECORDS, usize::from(!is_record))
            }
        };
        let end = place_of(TO_LATER_MOMENTS).or(lines.len().checked_sub(1))?;
        let (behind, start) = (lines.split_off(end), start.min(end));
        let records = lines.split_off(start);
        let mut before = vec![first];
        before.extend(lines.into_iter().skip(1));
        Some(Self {
            before,
            records,
            behind,
        })
    }
}

fn line_of(line: &[u8]) -> BaseLine<'_> {
    let text = line.strip_suffix(b",").unwrap_or(line);
    let id = json::scan_record(text).and_then(|fields| Some(fields.id?.of(text).to_vec()));
    BaseLine { id, text }
}

struct BaseAttempts<'a> {
    around: &'a BaseParts<'a>,
    lines: Vec<BaseLine<'a>>,
    records: &'a [(Vec<u8>, Vec<u8>)],
    sha256: &'a Hex,
}

impl<'a> BaseAttempts<'a> {
    fn find(&self) -> Option<Vec<u8>> {
        let filled = self.with_gaps_filled(false);
        let single = || {
            let by_id: HashMap<&[u8], &[u8]> = self.records.iter().map(|(id, record)| (&id[..], &record[..])).collect();
            let mut tries = 0;
            (0..filled.len()).find_map(|at| {
                let id = json::scan_record(filled[at])?.id?.of(filled[at]);
                let other = by_id.get(id).filter(|record| **record != filled[at])?;
                tries += 1;
                if tries > MOST_TRIES {
                    return None;
                }
                let mut lines = filled.clone();
                lines[at] = other;
                self.if_right(&lines)
            })
        };
        self.if_right(&filled)
            .or_else(|| self.if_right(&self.with_gaps_filled(true)))
            .or_else(single)
    }

    /// The records that can be read, and between them those that only the snapshot has; perhaps those behind the last too.
    fn with_gaps_filled(&self, to_the_end: bool) -> Vec<&'a [u8]> {
        let known: HashSet<&[u8]> = self.lines.iter().filter_map(|line| line.id.as_deref()).collect();
        let places: HashMap<&[u8], usize> = self
            .records
            .iter()
            .enumerate()
            .map(|(at, (id, _))| (&id[..], at))
            .collect();
        let mut made: Vec<&'a [u8]> = Vec::new();
        let mut next = 0;
        for line in self.lines.iter() {
            let Some(id) = &line.id else { continue };
            if let Some(&place) = places.get(&id[..]) {
                let missing = self.records.get(next..place).unwrap_or_default();
                made.extend(
                    missing
                        .iter()
                        .filter(|(id, _)| !known.contains(&id[..]))
                        .map(|(_, record)| &record[..]),
                );
                next = next.max(place + 1);
            }
            made.push(line.text);
        }
        if to_the_end {
            let missing = self.records.get(next..).unwrap_or_default();
            made.extend(
                missing
                    .iter()
                    .filter(|(id, _)| !known.contains(&id[..]))
                    .map(|(_, record)| &record[..]),
            );
        }
        made
    }

    fn if_right(&self, lines: &[&[u8]]) -> Option<Vec<u8>> {
        let mut bytes = self.around.before.join(&b'\n');
        for (number, line) in lines.iter().enumerate() {
            bytes.extend_from_slice(if number == 0 { b"\n" } else { b",\n" });
            bytes.extend_from_slice(line);
        }
        for line in &self.around.behind {
            bytes.push(b'\n');
            bytes.extend_from_slice(line);
        }
        bytes.push(b'\n');
        let mut hasher = Hasher::default();
        hasher.update(&bytes);
        (hasher.finish() == *self.sha256).then_some(bytes)
    }
}
