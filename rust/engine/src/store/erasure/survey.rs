//! What did the store ever say, and which of it has no salt?

use std::collections::HashSet;

use crate::archive;
use crate::chain::Held;
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::error::{At, Result};
use crate::event::line::{Event, Trust};
use crate::event::{Known, Op, salt};
use crate::hint::line_from;
use crate::json::RecordSpans;
use crate::log::Site;
use crate::log::files::open_base;
use crate::snapshot::{self, Moments, Taker};
use crate::verify::{RedactedLines, Sink, Walk};
use crate::wal::reader::Reading;

use super::redact::Hit;
use crate::store::archives::segments::Segment;

/// Shows every record that was ever said, wherever the past or the present says it.
struct Everything<'a> {
    look: &'a mut dyn FnMut(&[u8], &[u8]),
}

impl Sink for Everything<'_> {
    fn count(&mut self, known: Known<'_>, _: i64) {
        if matches!(known.op, Op::Upsert | Op::Migrate | Op::Patch) {
            (self.look)(known.id, known.record);
        }
    }

    fn hold(&mut self, known: Known<'_>, ts: i64) {
        self.count(known, ts);
    }

    fn settle(&mut self, _: Held) {}
}

impl Taker for Everything<'_> {
    fn take(&mut self, record: &[u8], fields: RecordSpans, _: Option<Moments>) {
        if let Some(id) = fields.id {
            (self.look)(id.of(record), record);
        }
    }

    fn start_over(&mut self) {}
}

/// The logs and bases of a store, each to be looked through.
pub(in crate::store) struct Volumes<'a> {
    /// Where they are.
    pub site: &'a Site,
    /// The retired logs, the oldest first.
    pub segments: &'a [Segment],
    /// The live log, and how much of it counts.
    pub live: (&'a dyn DiskFile, u64),
    /// All bases on the way.
    pub bases: Vec<Hex>,
    /// How many threads read.
    pub threads: usize,
}

impl Volumes<'_> {
    /// Shows every record that the bases and the logs ever said, with its id.
    ///
    /// # Errors
    /// `Io`.
    pub fn look_through(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
        let mut everything = Everything { look };
        for sha256 in &self.bases {
            let path = self.site.layout.base(sha256.text());
            if let Some((_, base)) = open_base(&*self.site.disk, &self.site.layout, sha256).at(&path)? {
                snapshot::read(&*base.log, &mut everything).at(&path)?;
            }
        }
        for segment in self.segments {
            let log = &*segment.archive.log;
            let path = self.site.layout.inside(&segment.name);
            walk(log, log.length().at(&path)?, self.threads, &mut everything).at(&path)?;
            segment.archive.rest();
        }
        walk(self.live.0, self.live.1, self.threads, &mut everything).at(self.site.log())?;
        Ok(())
    }
}

/// Reads a log to its end; gives what its seqs tell of lines that were erased.
pub(in crate::store) fn walk(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    sink: &mut dyn Sink,
) -> std::io::Result<RedactedLines> {
    walk_without(log, end, threads, HashSet::new(), sink)
}

/// The same, as if the lines at some places were erased.
pub(in crate::store) fn walk_without(
    log: &dyn DiskFile,
    end: u64,
    threads: usize,
    going: HashSet<u64>,
    sink: &mut dyn Sink,
) -> std::io::Result<RedactedLines> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    let mut walk = Walk::new(None);
    walk.redacted.going = going;
    walk.go(log, end, reading, sink, &mut |_, _| {})?;
    Ok(walk.redacted)
}

/// How many of these lines have no salt.
///
/// # Errors
/// What the disk says.
pub(in crate::store) fn unsalted(log: &dyn DiskFile, end: u64, hits: &[Hit]) -> std::io::Result<u64> {
    let mut found = 0;
    for hit in hits {
        let line = line_from(log, hit.offset, end)?;
        let is_salted = Event::read(&line, Trust::Hashes).is_ok_and(|event| salt::is_salted(event.record(&line)));
        found += u64::from(!is_salted);
    }
    Ok(found)
}

/// Whether a file is a state that holds none of the records that go, read to its end.
pub(in crate::store) fn is_state_without(
    site: &Site,
    path: &std::path::Path,
    goes: &dyn Fn(&[u8], &[u8]) -> bool,
) -> bool {
    let mut is_clean = true;
    let mut look = |id: &[u8], record: &[u8]| is_clean = is_clean && !goes(id, record);
    let mut everything = Everything { look: &mut look };
    let read = archive::open(&*site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut everything));
    read.is_ok_and(|contents| contents.header.is_ok()) && is_clean
}
