//! What was said before, and what was known then?

use crate::disk::read_upto;
use crate::error::{At, Error, Result};
use crate::event::Op;
use crate::event::line::{Event, Trust};
use crate::json;
use crate::origin::Origin;
use crate::state::{Query, State};

use super::load::{Loader, Look, Moment, examine};
use super::{Checking, Store};

/// How much is read at once when neighbouring events are asked for.
const WINDOW_BYTES: usize = 256 * 1024;

/// The store as it was at some event; nothing can be written through it.
pub struct View {
    state: State,
    seq: u64,
}

impl View {
    /// The last event that it knows.
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// The canonical record of an id.
    pub fn get(&self, id: &str) -> Option<&[u8]> {
        self.state.get(id)
    }

    /// The canonical records that a query asks for.
    pub fn query(&self, query: &Query) -> Vec<&[u8]> {
        self.state.query(query)
    }

    /// How many records a query would find.
    pub fn count(&self, query: &Query) -> u64 {
        self.state.count(query)
    }
}

impl Store {
    /// The lines of the live log that speak of a record, oldest first.
    ///
    /// # Errors
    /// `Io`.
    pub fn history(&self, id: &str) -> Result<Vec<Vec<u8>>> {
        self.state
            .history(id)
            .into_iter()
            .map(|index| self.line_at(index as usize))
            .collect()
    }

    /// Every line of the live log whose seq is at least `from_seq`.
    ///
    /// # Errors
    /// `Io`.
    pub fn replay(&self, from_seq: u64) -> Result<Vec<Vec<u8>>> {
        let mut lines = Vec::new();
        for range in self.state.timeline().since(from_seq) {
            self.each_line(range, |line| lines.push(line.to_vec()))?;
        }
        Ok(lines)
    }

    /// The ids of the records that were upserted or patched at `seq` or later, each once, in order of their first change.
    ///
    /// # Errors
    /// `Io`.
    pub fn changed_since(&self, seq: u64) -> Result<Vec<String>> {
        let mut seen = std::collections::HashSet::new();
        let mut ids = Vec::new();
        for range in self.state.timeline().since(seq) {
            self.each_line(range, |line| {
                if let Ok(event) = Event::read(line, Trust::Hashes) {
                    if matches!(event.op, Op::Upsert | Op::Migrate | Op::Patch) && !seen.contains(event.record_id(line)) {
                        seen.insert(event.record_id(line).to_vec());
                        let quoted = [b"\"", event.record_id(line), b"\""].concat();
                        ids.extend(json::parse(&quoted).ok().and_then(|id| id.as_str().map(str::to_owned)));
                    }
                }
            })?;
        }
        Ok(ids)
    }

    /// The store as it was at a moment.
    ///
    /// # Errors
    /// `HistoryUnavailable` if the moment lies before what the live log starts from, `Io`.
    pub fn as_of(&self, moment: Moment) -> Result<View> {
        let path = self.layout.log();
        let Some(log) = &self.log else {
            return Ok(View {
                state: State::default(),
                seq: 0,
            });
        };
        if let Some(first_seq) = self.first_reachable() {
            let too_early = match moment {
                Moment::Seq(seq) => seq < first_seq,
                Moment::Time(micros) => self.starts_after(micros)?,
            };
            if too_early {
                return Err(Error::HistoryUnavailable {
                    first_seq,
                    reason: "the log was compacted there".to_owned(),
                });
            }
        }
        let mut loader = Loader::up_to(moment);
        let look = Look {
            threads: self.options.threads,
            checking: Checking::Quick,
            archives: false,
        };
        examine(&*self.disk, &self.layout, &*log.file, look, &mut loader, &mut |_, _| {}).at(&path)?;
        Ok(View {
            seq: loader.last_seq,
            state: loader.state.unwrap_or_default(),
        })
    }

    /// The earliest seq whose state can be told, if the log does not hold everything.
    fn first_reachable(&self) -> Option<u64> {
        let log = self.log.as_ref()?;
        match &log.origin {
            Origin::Nothing => None,
            Origin::Ours(sentinel) => Some(sentinel.last_seq),
            Origin::Foreign => Some(self.settled_until.unwrap_or(0)),
        }
    }

    /// Whether the first event of the log is later than `micros`.
    fn starts_after(&self, micros: i64) -> Result<bool> {
        if self.state.timeline().is_empty() {
            return Ok(false);
        }
        let line = self.line_at(0)?;
        Ok(Event::read(&line, Trust::Hashes)
            .ok()
            .and_then(|event| crate::event::stamp::read(event.ts(&line)))
            .is_some_and(|first| micros < first))
    }

    fn line_at(&self, index: usize) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.each_line(index..index + 1, |line| found = line.to_vec())?;
        Ok(found)
    }

    /// Shows the lines of consecutive events, reading the log in large steps.
    fn each_line(&self, range: std::ops::Range<usize>, mut show: impl FnMut(&[u8])) -> Result<()> {
        let Some(log) = &self.log else {
            return Ok(());
        };
        let path = self.layout.log();
        let timeline = self.state.timeline();
        let end_of = |index: usize| timeline.offset(index + 1).unwrap_or(log.walk.end);
        let mut window: Vec<u8> = Vec::new();
        let mut window_start = 0;
        for index in range.clone() {
            let Some(start) = timeline.offset(index) else { break };
            let end = end_of(index);
            if start < window_start || end > window_start + window.len() as u64 {
                let far = end_of(range.end.saturating_sub(1).max(index)).min(start + WINDOW_BYTES as u64);
                window.clear();
                window_start = start;
                read_upto(&*log.file, &mut window, start, (far.max(end) - start) as usize).at(&path)?;
            }
            let from = (start - window_start) as usize;
            let Some(text) = window.get(from..(end - window_start) as usize) else {
                return Err(Error::io(&path, std::io::ErrorKind::UnexpectedEof.into()));
            };
            let line = memchr::memchr(b'\n', text).map_or(text, |newline| &text[..newline]);
            show(line.strip_suffix(b"\r").unwrap_or(line));
        }
        Ok(())
    }
}
