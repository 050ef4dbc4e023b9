//! Reads a log as if events that grew together stood on lines of their own.
//!
//! Nothing is written here: a parted log is read in the place of the one that it was made of, byte for byte the same but where
//! a newline came back, or the beginning or the end of a line that another one proves.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::store::files::held::Prefix;
use chronolog::digest::Hex;
use chronolog::disk::{DiskFile, Identity};
use chronolog::event::beside::UnreadableLines;
use chronolog::event::mend::Budget;
use chronolog::event::parts::{Behind, EventPart};
use chronolog::hint::line_from;

/// So much may be hashed in search of what lines have lost that were damaged beside others, and as much in search of what they
/// have lost at their ends. What is likely
/// costs about 15,000 for a line of 400 bytes, and is tried in all of them first: in 1,300 lines. All the rest costs about
/// 900,000.
const MENDING_BLOCKS: u64 = 20_000_000;

/// Lines that cannot be read, with nothing readable between them.
pub(in crate::store) struct TornLines {
    /// Where they begin, in order.
    pub offsets: Vec<u64>,
    /// The hash that the line behind gives as its predecessor's.
    pub next: Option<Hex>,
    /// It is one line, and those on both sides tell all that can be known of it: it is tried when they are asked.
    pub is_alone: bool,
}

/// Other bytes in the place of some.
struct Edit {
    /// Where they stand in the log that is read so.
    at: u64,
    /// In whose place they stand.
    bytes: Range<u64>,
    instead: Vec<u8>,
}

impl Edit {
    fn end(&self) -> u64 {
        self.at + self.instead.len() as u64
    }
}

/// A log whose lines were parted.
pub(in crate::store) struct Parted {
    log: Prefix,
    length: u64,
    edits: Vec<Edit>,
    scraps: HashSet<u64>,
    /// How many lines came apart with nothing left over.
    pub lines: u64,
}

impl Parted {
    /// The log with its events apart; `None` if none stands in these lines that would not be found otherwise.
    ///
    /// # Errors
    /// What the disk says.
    pub fn of(log: &Arc<dyn DiskFile>, torn: &[TornLines], synced: Option<Hex>) -> io::Result<Option<Self>> {
        let length = log.length()?;
        let (mut budget, mut for_ends) = (Budget::of(MENDING_BLOCKS), Budget::of(MENDING_BLOCKS));
        let mut all = Vec::new();
        for torn in torn {
            let lines: io::Result<Vec<Vec<u8>>> = torn
                .offsets
                .iter()
                .map(|offset| line_from(&**log, *offset, length))
                .collect();
            let behind = Behind {
                next: torn.next,
                synced,
            };
            all.push(UnreadableLines::of(lines?, behind, torn.is_alone));
        }
        for is_brief in [true, false] {
            all.iter_mut()
                .for_each(|lines| lines.look(is_brief, &mut budget, &mut for_ends));
        }
        let mut drafted = Vec::new();
        for (torn, beside) in torn.iter().zip(all) {
            let found = beside.lines.into_iter().zip(beside.found);
            for (&offset, (line, parts)) in torn.offsets.iter().zip(found) {
                let draft = LineDraft {
                    offset,
                    is_ended: offset + (line.len() as u64) < length,
                    line,
                    parts,
                };
                drafted.extend(Some(draft).filter(LineDraft::is_worth_it));
            }
        }
        drafted.sort_by_key(|draft| draft.offset);
        let mut parted = Self {
            log: Prefix::of(Arc::clone(log), length),
            length,
            edits: Vec::new(),
            scraps: HashSet::new(),
            lines: 0,
        };
        for draft in &drafted {
            parted.take(draft);
        }
        Ok((!drafted.is_empty()).then_some(parted))
    }

    /// Whether what begins here was left over beside an event that was taken out of the same line.
    pub fn is_scrap(&self, offset: u64) -> bool {
        self.scraps.contains(&offset)
    }

    /// Where in the log itself a place is, and how many newlines before it are not there.
    pub fn place(&self, offset: u64) -> (u64, u64) {
        let passed = self.edits.partition_point(|edit| edit.end() <= offset);
        let newlines = |edit: &Edit| memchr::memchr_iter(b'\n', &edit.instead).count() as u64;
        let added = self.edits[..passed].iter().map(newlines).sum();
        let real = match self.edits.get(passed) {
            Some(edit) if edit.at <= offset => edit.bytes.start,
            _ => self.behind(passed, offset),
        };
        (real, added)
    }

    /// Where a place is in the log itself that stands behind so many edits.
    fn behind(&self, passed: usize, offset: u64) -> u64 {
        let last = passed.checked_sub(1).map(|last| &self.edits[last]);
        last.map_or(offset, |edit| edit.bytes.end + (offset - edit.end()))
    }

    fn take(&mut self, draft: &LineDraft) {
        let (mut last, mut is_clean) = (None, true);
        for part in &draft.parts {
            let between = last.map_or(0, |last: &EventPart| last.bytes.end)..part.bytes.start;
            let follows = last.is_some_and(|last| part.prev == Some(last.hash) || between.len() <= 1);
            if follows || last.is_some() && draft.is_blank(&between) {
                self.edit(draft, between, b"\n");
            } else if !between.is_empty() {
                is_clean &= draft.is_blank(&between);
                self.leave(draft, &between, last.is_some());
                self.edit(draft, between.end..between.end, b"\n");
            }
            if let Some(mended) = &part.mended {
                self.edit(draft, part.bytes.clone(), mended);
            }
            last = Some(part);
        }
        let rest = last.map_or(0, |last| last.bytes.end)..draft.line.len();
        if !draft.is_ended && rest.len() <= 1 {
            self.edit(draft, rest, b"\n");
        } else if !draft.is_blank(&rest) {
            is_clean = false;
            self.leave(draft, &rest, true);
        }
        self.lines += u64::from(is_clean);
    }

    /// What is left over is a line of its own.
    fn leave(&mut self, draft: &LineDraft, bytes: &Range<usize>, is_behind: bool) {
        if is_behind {
            self.edit(draft, bytes.start..bytes.start, b"\n");
        }
        let start = draft.offset + bytes.start as u64;
        let place = self
            .edits
            .last()
            .map_or(start, |edit| edit.end() + (start - edit.bytes.end));
        self.scraps.insert(place);
    }

    fn edit(&mut self, draft: &LineDraft, bytes: Range<usize>, instead: &[u8]) {
        let bytes = draft.offset + bytes.start as u64..draft.offset + bytes.end as u64;
        let at = self
            .edits
            .last()
            .map_or(bytes.start, |edit| edit.end() + (bytes.start - edit.bytes.end));
        self.length = self.length + instead.len() as u64 - (bytes.end - bytes.start);
        self.edits.push(Edit {
            at,
            bytes,
            instead: instead.to_vec(),
        });
    }
}

/// A line with the events that were found in it.
struct LineDraft {
    offset: u64,
    line: Vec<u8>,
    /// It has its newline.
    is_ended: bool,
    parts: Vec<EventPart>,
}

impl LineDraft {
    fn is_blank(&self, bytes: &Range<usize>) -> bool {
        self.line[bytes.clone()]
            .iter()
            .all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
    }

    /// One byte too many is found by trying.
    fn is_worth_it(&self) -> bool {
        match &self.parts[..] {
            [] => false,
            [part] => !self.is_ended || part.mended.is_some() || self.line.len() > part.bytes.len() + 1,
            _ => true,
        }
    }
}

impl DiskFile for Parted {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let passed = self.edits.partition_point(|edit| edit.end() <= offset);
        let next = self.edits.get(passed);
        if let Some(edit) = next.filter(|edit| edit.at <= offset) {
            let bytes = &edit.instead[(offset - edit.at) as usize..];
            let count = bytes.len().min(buffer.len());
            buffer[..count].copy_from_slice(&bytes[..count]);
            return Ok(count);
        }
        let room = next
            .map_or(usize::MAX, |edit| (edit.at - offset) as usize)
            .min(buffer.len());
        self.log.read_at(&mut buffer[..room], self.behind(passed, offset))
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.length)
    }

    fn identity(&self) -> io::Result<Identity> {
        self.log.identity()
    }
}
