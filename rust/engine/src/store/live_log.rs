//! The live log beside the state that was read from it: its lines by their places in the timeline.

use std::ops::Range;

use chronolog::disk::read_upto;
use chronolog::error::{At, Error, Result};
use chronolog::log::{OpenLog, Site};
use chronomemory_state::state::State;

/// How much is read at once when neighbouring events are asked for.
const WINDOW_BYTES: usize = 256 * 1024;

/// A log that is open and the state that it tells.
#[derive(Clone, Copy)]
pub(super) struct LiveLog<'a> {
    /// Where it is.
    pub site: &'a Site,
    /// The log, if there is one.
    pub open: Option<&'a OpenLog>,
    /// The state, and the places of its events.
    pub state: &'a State,
}

impl LiveLog<'_> {
    /// The last seq; 0 when nothing was written.
    pub fn last_seq(&self) -> u64 {
        self.open.map_or(0, |log| log.mark().last_seq)
    }

    /// How many events it holds.
    pub fn events(&self) -> u64 {
        self.open.map_or(0, |log| log.mark().events)
    }

    /// The hash of the last event, or nothing.
    pub fn head(&self) -> String {
        let head = self.open.and_then(|log| log.mark().head);
        head.map(|head| head.text().to_owned()).unwrap_or_default()
    }

    /// The line of an event.
    ///
    /// # Errors
    /// `Io`.
    pub fn line_at(&self, index: usize) -> Result<Vec<u8>> {
        let mut found = Vec::new();
        self.each_line(index..index + 1, |line| found = line.to_vec())?;
        Ok(found)
    }

    /// Shows the lines of consecutive events, reading the log in large steps.
    ///
    /// # Errors
    /// `Io`.
    pub fn each_line(&self, range: Range<usize>, mut show: impl FnMut(&[u8])) -> Result<()> {
        let Some(log) = self.open else {
            return Ok(());
        };
        let path = self.site.log().to_owned();
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
