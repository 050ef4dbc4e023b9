//! Remembers where the log ended when somebody read it, and tells what came since.
//!
//! Whoever reads notes the head, and the place behind it. A seq would not do: after a restore other events have the same ones.

use crate::store::live_log::LiveLog;
use chronolog::error::Result;
use chronolog::event::line::{Event, Trust};
use chronolog::origin::Origin;

/// Where a log ended when somebody read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bookmark {
    /// The hash of the last event, or nothing.
    pub head: String,
    /// The place behind it.
    pub end: u64,
}

/// Which event of the live log is the first that came after the bookmark; `None` if that cannot be told, because the
/// log is another one, or was compacted and began anew somewhere behind it.
///
/// # Errors
/// `Io`.
pub(in crate::store) fn first_behind(live: LiveLog<'_>, since: &Bookmark) -> Result<Option<u32>> {
    let Some(log) = live.open else {
        return Ok((since.head.is_empty()).then_some(0));
    };
    let timeline = live.state.timeline();
    if log.walk.mark().head.is_some_and(|head| head.text() == since.head) {
        return Ok(Some(timeline.len() as u32));
    }
    match &log.origin {
        // A log that begins with a compaction began before its first event.
        Origin::Ours(_) | Origin::Foreign if since.head.is_empty() => return Ok(None),
        // What the compaction started from is what was read. A repair may have started from less.
        Origin::Ours(sentinel) if !sentinel.repaired && sentinel.previous_head == since.head => {
            return Ok(Some(0));
        }
        _ => {}
    }
    let next = timeline.index_from(since.end);
    if timeline.offset(next as usize) != Some(since.end) {
        return Ok(None);
    }
    let mut goes_on = false;
    live.each_line(next as usize..next as usize + 1, |line| {
        let event = Event::read(line, Trust::Hashes);
        goes_on = event.is_ok_and(|event| event.prev_hash(line) == since.head.as_bytes());
    })?;
    Ok(goes_on.then_some(next))
}
