//! Spells a draft as chained lines of the log.

use crate::digest::{Hex, sha256_raw};
use crate::event::draft::Draft;
use crate::event::salt::{SaltTerms, Salts};
use crate::event::{IncomingEvents, Op};
use crate::json;
use crate::memory::Refused;
use crate::trail::Trail;

/// The beginning of a line, before the digits of its hash.
const HASH_KEY: &[u8] = b"{\"hash\":\"";
/// The record id of the event that opens a batch.
const BEGIN_ID: &[u8] = b"__begin__";

/// What the rest of a line takes beside its record, ids of usual length included.
const ENVELOPE_BYTES: usize = 320;

/// The end of a chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChainEnd {
    /// The hash of the last event; `None` at the beginning of a log.
    pub head: Option<Hex>,
    /// The seq of the next event.
    pub next_seq: u64,
}

impl ChainEnd {
    /// Before the first event.
    pub const BEGINNING: Self = Self {
        head: None,
        next_seq: 1,
    };
}

/// An event without its place in the chain.
#[derive(Clone, Copy, Debug)]
pub struct EventBody<'a> {
    /// What it does.
    pub op: Op,
    /// The record's id as between quotes.
    pub id: &'a [u8],
    /// The canonical record.
    pub record: &'a [u8],
    /// The moment, spelled.
    pub ts: &'a [u8],
    /// The writer's recursion depth.
    pub depth: i64,
}

/// Lines that follow from one another, ready to be appended.
#[derive(Debug, Default)]
pub struct Lines {
    /// The bytes, newlines included.
    pub bytes: Vec<u8>,
    /// Where each line begins in them.
    pub starts: Vec<usize>,
    /// The end of the chain behind them.
    pub link: ChainEnd,
    /// What keeps their hashes from being guessed.
    pub salts: Salts,
    /// The trail up to the last of them, if it is known where they begin.
    pub trail: Option<Trail>,
}

impl Lines {
    /// No lines yet, behind `link`.
    pub fn after(link: ChainEnd) -> Self {
        Self {
            link,
            ..Self::default()
        }
    }

    /// Opens a batch, if several changes are to follow.
    pub fn begin(&mut self, changes: usize, ts: &[u8], depth: i64) {
        if changes > 1 {
            let record = format!("{{\"events\":{changes}}}");
            self.push(EventBody {
                op: Op::Begin,
                id: BEGIN_ID,
                record: record.as_bytes(),
                ts,
                depth,
            });
        }
    }

    /// Asks for the memory that the lines of a draft need, beside so many bytes and lines before them.
    pub fn make_room(&mut self, coming: IncomingEvents) -> Result<(), Refused> {
        self.bytes.try_reserve(coming.bytes + coming.events * ENVELOPE_BYTES)?;
        Ok(self.starts.try_reserve(coming.events)?)
    }

    /// Spells a draft, one line for each change.
    pub fn add(&mut self, draft: &Draft, ts: &[u8], depth: i64) {
        for change in draft.changes() {
            let body = EventBody {
                op: change.op,
                id: draft.id(change),
                record: draft.record(change),
                ts,
                depth,
            };
            self.spell(body, change.is_plain);
        }
    }

    /// Spells one event behind the others.
    pub fn push(&mut self, body: EventBody<'_>) {
        self.spell(body, false);
    }

    #[inline]
    fn spell(&mut self, body: EventBody<'_>, is_plain: bool) {
        let start = self.bytes.len();
        let out = &mut self.bytes;
        out.extend_from_slice(HASH_KEY);
        out.extend_from_slice(&[b'0'; 64]);
        out.push(b'"');
        // The payload begins with a brace; the line has a comma in its place once the hash is known.
        let payload = out.len();
        out.extend_from_slice(b"{\"op\":\"");
        out.extend_from_slice(body.op.word().as_bytes());
        out.extend_from_slice(b"\",\"prev_hash\":\"");
        if let Some(head) = &self.link.head {
            out.extend_from_slice(head.bytes());
        }
        out.extend_from_slice(b"\",\"record\":");
        self.salts.write(body.op, body.id, body.record, is_plain, out);
        out.extend_from_slice(b",\"record_id\":\"");
        out.extend_from_slice(body.id);
        out.extend_from_slice(b"\",\"recursion_depth\":");
        json::write_i64(body.depth, out);
        out.extend_from_slice(b",\"seq\":");
        json::write_i64(i64::try_from(self.link.next_seq).unwrap_or(i64::MAX), out);
        out.extend_from_slice(b",\"ts\":\"");
        out.extend_from_slice(body.ts);
        out.extend_from_slice(b"\"}");
        let raw = sha256_raw(&out[payload..]);
        let hash = Hex::spell(&raw);
        if let Some(trail) = &mut self.trail {
            trail.add(&raw);
        }
        out[start + HASH_KEY.len()..start + HASH_KEY.len() + 64].copy_from_slice(hash.bytes());
        out[payload] = b',';
        // The rest is of our own making and has none, the moment too.
        debug_assert!(body.ts.is_ascii());
        let said = [body.record, body.id];
        if said.into_iter().any(json::has_line_separators) {
            let text = out.split_off(payload);
            json::escape_line_separators(&text, out);
        }
        out.push(b'\n');
        self.starts.push(start);
        self.link = ChainEnd {
            head: Some(hash),
            next_seq: self.link.next_seq + 1,
        };
    }

    /// No lines behind `link` and `trail`, in the memory of these; with salts on these terms.
    pub fn reusing(mut self, link: ChainEnd, trail: Option<Trail>, salts: Option<SaltTerms<'_>>) -> Self {
        self.bytes.clear();
        self.starts.clear();
        self.salts.draw_on(salts);
        Self { link, trail, ..self }
    }

    /// One of the lines, without its newline.
    pub fn line(&self, index: usize) -> &[u8] {
        let end = self.starts.get(index + 1).copied().unwrap_or(self.bytes.len());
        &self.bytes[self.starts[index]..end - 1]
    }
}
