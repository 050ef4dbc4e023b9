//! Spells the lines of a large batch before the lock is taken, on the guess that nobody writes in between.
//!
//! Each line needs the hash of the one before, so lines are spelled one after another, but not by the thread that reads
//! the caller's objects: while that one drafts the next part, another spells the last.

use crate::options::Options;
use chronolog::event::draft::Draft;
use chronolog::event::stamp;
use chronolog::log::{Log, OpenLog};
use chronolog::wal::writer::{ChainEnd, Lines};
use chronomemory_state::state::Edition;

/// No batch has so many changes.
const NEVER: usize = usize::MAX;

/// Lines spelled ahead.
pub struct SpelledAhead {
    pub(super) lines: Lines,
    from: ChainEnd,
    /// When they were written, as they say.
    pub(super) now: i64,
    ts: [u8; stamp::STAMP_BYTES],
    depth: i64,
    /// How many changes were promised, and how many have come.
    promised: usize,
    come: usize,
    /// The edition of the state on which it was seen that the batch can be written.
    pub(in crate::store) checked: Option<Edition>,
}

impl SpelledAhead {
    /// Begins to spell a batch of so many changes behind a log.
    pub(super) fn begin(log: &mut Log, options: &Options, changes: usize, now: i64) -> Self {
        let (from, depth) = (log.link(), options.recursion_depth);
        let ts = stamp::digits(now);
        let mut lines = log.fresh_lines(options.salts());
        // Whoever writes them waits for nothing else then.
        lines.trail = log.open().and_then(OpenLog::trail_to_extend).map(Box::new);
        lines.begin(changes, &ts, depth);
        Self {
            lines,
            from,
            now,
            ts,
            depth,
            promised: changes,
            come: 0,
            checked: None,
        }
    }

    /// Spells the next part. Where there is no memory for it, or no salt, the lines will not fit: whoever spells them again says why.
    pub fn add(&mut self, part: &Draft) {
        let is_ready = |lines: &mut Lines| {
            let coming = part.coming();
            lines.make_room(coming).is_ok() && lines.salts.draw(coming.events).is_ok()
        };
        if self.promised == NEVER || !is_ready(&mut self.lines) {
            self.lines = Lines::after(self.from);
            self.promised = NEVER;
            return;
        }
        self.come += part.changes().len();
        self.lines.add(part, &self.ts, self.depth);
    }

    /// Whether these are the lines that a batch of so many changes would have here and now.
    pub(super) fn fits(&self, link: ChainEnd, latest: i64, changes: usize) -> bool {
        self.from == link && self.now >= latest && self.promised == changes && self.come == changes
    }
}
