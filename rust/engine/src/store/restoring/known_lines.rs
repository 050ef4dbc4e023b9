//! Lists the lines that a history holds, and those of which only seq and hash are left.

use std::collections::HashSet;
use std::ops::Range;

use chronolog::chain::BatchFate;
use chronolog::digest::Hex;
use chronolog::error::{At, Error, Result};
use chronolog::event::{Known, Op};
use chronolog::json::{self, Value};
use chronolog::layout::is_redacted_name;
use chronolog::log::Site;
use chronolog::verify::Sink;
use chronomemory_state::state::unspelled;

use crate::store::Store;
use crate::store::archives::pruned::pruned_until;
use crate::store::archives::segments::{Start, segments};
use crate::store::erasure::survey::walk;
use crate::store::files::copies::past_files;
use crate::store::recovery::returning::{KnownErasure, add_forgotten, known_erasures};

/// A line by its seq and its hash.
pub(super) type LineId = (u64, Hex);

/// All that a store keeps of what was said, looked through.
#[derive(Default)]
pub(super) struct KeptHistory {
    /// The lines of which nothing else is left.
    pub erased: HashSet<LineId>,
    /// The first seq that is kept.
    pub first_seq: u64,
    /// It begins with the first event of all: no base stands before it.
    pub is_whole: bool,
    /// The bases on the way, as erasures made them.
    pub bases: HashSet<Hex>,
    /// Those of them to which no line that is kept adds up: the first, and such as are somebody's word.
    pub words: Vec<Hex>,
}

/// Shows somebody every line of which more is left than seq and hash.
struct Passing<'a> {
    show: &'a mut dyn FnMut(LineId, &Known<'_>),
    left: Vec<LineId>,
}

impl Sink for Passing<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        let Some(hash) = Hex::read(known.hash) else {
            return;
        };
        let line = (known.seq, hash);
        match known.op == Op::Other && known.id.is_empty() {
            true => self.left.push(line),
            false => (self.show)(line, &known),
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.count(known, ts);
    }

    fn settle(&mut self, _: BatchFate) {}
}

impl KeptHistory {
    /// Reads all logs of a store, the oldest first; each line that is whole is shown.
    ///
    /// # Errors
    /// `Busy` or `Corrupted` for a history with a hole or an altered archive; `Io`.
    pub fn read(store: &Store, show: &mut dyn FnMut(LineId, &Known<'_>)) -> Result<Self> {
        let site: &Site = &store.site;
        let Some(open) = store.log.open() else {
            return Err(Error::busy("there is no log"));
        };
        let live = (&*open.file, open.walk.end);
        let (segments, start) = segments(
            &*site.disk,
            &site.layout,
            &open.origin,
            live,
            pruned_until(&store.state),
        )?;
        let mut history = Self::default();
        let mut passing = Passing { show, left: Vec::new() };
        let threads = store.options.threads;
        let mut first = None;
        for segment in &segments {
            let (log, path) = (&*segment.archive.log, site.layout.inside(&segment.name));
            let redacted = walk(log, log.length().at(&path)?, threads, &mut passing).at(&path)?;
            segment.archive.rest();
            // What another tool wrote may look as if nothing were left of it.
            let is_redacted = |seq: u64| redacted.ranges.iter().any(|&(from, to)| (from..=to).contains(&seq));
            history
                .erased
                .extend(passing.left.drain(..).filter(|line| is_redacted(line.0)));
            first.get_or_insert(segment.span.0);
        }
        walk(live.0, live.1, threads, &mut passing).at(site.log())?;
        history.first_seq = first.or(open.mark().first_seq).unwrap_or(0);
        let starts: Vec<&Start> = segments.iter().map(|one| &one.start).chain([&start]).collect();
        history.is_whole = starts.first().is_some_and(|start| start.base.is_none());
        history.bases = starts.iter().filter_map(|start| start.base).collect();
        let is_word = |(number, start): (usize, &&Start)| start.base.filter(|_| number == 0 || start.is_word);
        history.words = starts.iter().enumerate().filter_map(is_word).collect();
        Ok(history)
    }
}

/// The records that erasures kept and wrote again because they had named erased ones.
#[derive(Default)]
pub(super) struct KeptNeighbours {
    ids: HashSet<String>,
    again: HashSet<String>,
    /// Of each erasure, the seqs of the records that it kept, and of those that it was asked to write again.
    windows: Vec<(Range<u64>, Range<u64>)>,
    is_unknown: bool,
}

impl KeptNeighbours {
    /// Takes in the next line of a history.
    pub fn see(&mut self, known: &Known<'_>) {
        if known.op == Op::Erase {
            let value = json::parse(known.record).unwrap_or(Value::Null);
            let count = |name: &str| value.get("data")?.get(name)?.as_u64();
            let first = known.seq + 1;
            match count("kept").zip(count("again")) {
                Some((kept, again)) => self
                    .windows
                    .push((first..first + kept, first + kept..first + kept + again)),
                None => self.is_unknown = true,
            }
        } else if let Some((kept, again)) = self.windows.last_mut() {
            if known.op == Op::Begin && known.seq == kept.start {
                for range in [&mut *kept, &mut *again] {
                    *range = range.start + 1..range.end + 1;
                }
            } else if kept.contains(&known.seq) {
                self.ids.insert(unspelled(known.id));
            } else if again.contains(&known.seq) {
                self.again.insert(unspelled(known.id));
            }
        }
    }

    /// Their ids: none where it is not known which others had to lose their past.
    pub fn ids(self, erased: &HashSet<LineId>) -> HashSet<String> {
        let is_erased = |(seq, _): &LineId| self.windows.iter().any(|(_, again)| again.contains(seq));
        match self.is_unknown || erased.iter().any(is_erased) {
            true => HashSet::new(),
            false => self.ids.difference(&self.again).cloned().collect(),
        }
    }
}

/// The erasures that a store knows of, by its state or by events of its history.
///
/// # Errors
/// `Io`.
pub(super) fn all_erasures(store: &Store) -> Result<Vec<KnownErasure>> {
    let mut known = known_erasures(&store.state);
    if !past_files(&store.site)?.iter().any(|name| is_redacted_name(name)) {
        return Ok(known);
    }
    let mut told = Vec::new();
    let mut see = |_: LineId, event: &Known<'_>| {
        if event.op == Op::Erase {
            told.extend(KnownErasure::read(&unspelled(event.id), event.record));
        }
    };
    match KeptHistory::read(store, &mut see) {
        Err(fault @ (Error::Io { .. } | Error::OutOfMemory)) => return Err(fault),
        // Where the history has a hole, the state tells what it can.
        Err(_) | Ok(_) => add_forgotten(&mut known, told),
    }
    Ok(known)
}
