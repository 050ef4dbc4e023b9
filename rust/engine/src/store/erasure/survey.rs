//! What belongs to records that are to be erased, and where does the past speak of it?

use std::collections::BTreeSet;

use crate::archive;
use crate::chain::Held;
use crate::digest::Hex;
use crate::disk::DiskFile;
use crate::error::{At, Result};
use crate::event::line::{Event, Trust};
use crate::event::{Known, Op, salt};
use crate::hint::line_from;
use crate::json::{self, RecordSpans, Value};
use crate::log::Site;
use crate::log::files::open_base;
use crate::scope::{Carried, Scope};
use crate::snapshot::{self, Moments, Taker};
use crate::state::{State, spelled, unspelled};
use crate::verify::{Sink, Walk};
use crate::wal::reader::Reading;

use super::redact::Hit;
use crate::store::archives::doomed::Doomed;
use crate::store::archives::segments::Segment;
use crate::store::vectors::records::format::group_space;

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
    fn look_through(&self, look: &mut dyn FnMut(&[u8], &[u8])) -> Result<()> {
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
        walk(self.live.0, self.live.1, self.threads, &mut everything).at(self.site.log())
    }

    /// Adds the records that carry a scope, or ever carried it; further names beside it do not matter.
    ///
    /// # Errors
    /// `Io`.
    pub fn add_scope(&self, scope: &Scope, doomed: &mut Doomed) -> Result<()> {
        self.look_through(&mut |id, record| {
            if let Carried::Names(names) = Carried::of(record)
                && is_within(&names, scope)
            {
                doomed.add(id);
            }
        })
    }

    /// Adds the groups of embeddings that ever named one of the records; gives the spaces that they are of.
    ///
    /// # Errors
    /// `Io`.
    pub fn add_groups(&self, doomed: &mut Doomed) -> Result<BTreeSet<String>> {
        let (mut groups, mut spaces) = (Vec::new(), BTreeSet::new());
        let asked: &Doomed = doomed;
        self.look_through(&mut |id, record| {
            if let Some(space) = group_space(id).filter(|_| names_one(record, asked)) {
                spaces.insert(space.to_owned());
                groups.push(id.to_vec());
            }
        })?;
        for group in groups {
            doomed.add(&group);
        }
        Ok(spaces)
    }
}

/// Whether all names of a scope are among these.
fn is_within(names: &Scope, scope: &Scope) -> bool {
    let both = names.names().into_iter().zip(scope.names());
    both.into_iter().all(|(has, asked)| asked.is_none() || has == asked)
}

fn names_one(record: &[u8], doomed: &Doomed) -> bool {
    let value = json::parse(record).ok();
    let ids = value.as_ref().and_then(|value| value.get("data")?.get("ids"));
    let listed = ids.and_then(Value::as_array).unwrap_or_default();
    listed
        .iter()
        .filter_map(Value::as_str)
        .any(|id| doomed.has(&spelled(id)))
}

/// Reads a log to its end.
pub(in crate::store) fn walk(log: &dyn DiskFile, end: u64, threads: usize, sink: &mut dyn Sink) -> std::io::Result<()> {
    let reading = Reading {
        trusted_until: end,
        threads,
    };
    Walk::new(None).go(log, end, reading, sink, &mut |_, _| {}).map(|_| ())
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

/// Whether a file is a state that holds none of these records, read to its end.
pub(in crate::store) fn is_state_without(site: &Site, path: &std::path::Path, doomed: &Doomed) -> bool {
    let mut is_clean = true;
    let mut look = |id: &[u8], _: &[u8]| is_clean &= !doomed.has(id);
    let mut everything = Everything { look: &mut look };
    let read = archive::open(&*site.disk, path).and_then(|base| snapshot::read(&*base.log, &mut everything));
    read.is_ok_and(|contents| contents.header.is_ok()) && is_clean
}

/// The texts by which people know the records: their ids and labels.
pub(in crate::store) fn telling(state: &State, doomed: &Doomed, ids: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for id in ids.iter().filter(|id| doomed.has(&spelled(id))) {
        found.push(id.clone());
        let label = state.get(id).and_then(|record| json::parse(record).ok());
        found.extend(label.and_then(|record| Some(record.get("label")?.as_str()?.to_owned())));
    }
    found.retain(|text| !text.is_empty());
    found
}

/// An id as people write it.
pub(in crate::store) fn shown(id: &[u8]) -> String {
    unspelled(id)
}
