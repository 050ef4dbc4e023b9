//! Which event stands for a moment?

use std::io;

use crate::disk::DiskFile;
use crate::event::line::{Event, Trust};
use crate::event::stamp;
use crate::hint::line_from;
use crate::origin::{Origin, beginning_of};
use crate::state::Timeline;
use crate::text::Edge;

/// Finds the first event of a log at a moment or later, by halves. Moments only rise in a log of ours; in another tool's log
/// that does not keep to this, an event counts as written when its neighbours were.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn edge_at(
    file: &dyn DiskFile,
    length: u64,
    timeline: &Timeline,
    micros: i64,
) -> io::Result<Edge> {
    let beginning = beginning_of(file, length)?;
    let base_seq = match &beginning.origin {
        Origin::Ours(sentinel) => sentinel.last_seq,
        Origin::Nothing | Origin::Foreign => 0,
    };
    let (mut low, mut high) = (0, timeline.len());
    while low < high {
        let middle = low.midpoint(high);
        if moment_of(file, length, timeline, middle)? < micros {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    let is_there = low < timeline.len();
    Ok(Edge {
        micros,
        seq: if is_there { timeline.seq(low as u32) } else { u64::MAX },
        base_seq,
        base_micros: beginning.ts,
    })
}

/// When a log began.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn began_at(file: &dyn DiskFile, length: u64) -> io::Result<i64> {
    Ok(beginning_of(file, length)?.ts)
}

fn moment_of(file: &dyn DiskFile, length: u64, timeline: &Timeline, index: usize) -> io::Result<i64> {
    let offset = timeline.offset(index).unwrap_or(length);
    let line = line_from(file, offset, length)?;
    let line = line.strip_suffix(b"\r").unwrap_or(&line);
    let event = Event::read(line, Trust::Hashes).ok();
    // A line that cannot be read is damage that was reported; whatever it says, it is not news.
    Ok(event.and_then(|event| stamp::read(event.ts(line))).unwrap_or(i64::MIN))
}
