//! Puts records on hold that lost events may have changed.
//!
//! A record is put on hold if a lost event names it and no later one has written it whole. Of an event that does not say any
//! more what it was of, the rest of its batch may: whatever its good events mention is put on hold too, for those who write
//! several records at once mostly tell of one in the other. To doubt too much does no harm here, to be silent does.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use chronolog::disk::DiskFile;
use chronolog::event::Op;
use chronolog::event::faces::{SEARCH, VECTORS, call_of, face_of, prefixes_beside};
use chronolog::json::{Value, scan_record};
use chronomemory_state::state::{Frozen, State, parsed, unspelled};

use super::alike::alike;
use super::batches::{LossPlace, LossyStretch, stretches};
use super::losses::Lost;
use super::runs::each_event;
use super::seeming;
use crate::store::load::unproven::put_on_hold;

/// How many steps are gone from record to record in search of one that may be meant.
const MOST_STEPS: usize = 4;

/// What the id of the report of a rollback begins with; the id of what was rolled back follows.
const ROLLBACK: &str = "ROLLBACK-";

/// What later events did to a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LaterChange {
    /// Nothing, or part of it was changed.
    Open,
    /// It was deleted. What it says is what it was before.
    Deleted,
    /// It was written whole.
    Settled,
}

/// A log that was read, and what it came to.
pub(in crate::store) struct ReadLog<'a> {
    /// The log.
    pub file: &'a dyn DiskFile,
    /// Behind its last line that counts.
    pub end: u64,
    /// What it came to.
    pub state: &'a mut State,
    /// The ids of records of which there is nothing but what good events changed in them.
    pub unmade: &'a BTreeSet<String>,
    /// The records that are on hold now.
    pub held: BTreeSet<String>,
    /// What lost events spoke of, settled since or not, each with the place from which on it was in doubt.
    pub doubts: Vec<(u64, String)>,
}

impl ReadLog<'_> {
    /// Puts on hold what lost events may have spoken of, and lets them say so. Embeddings are no belief: what a lost event
    /// said of them is told, and hides no record.
    ///
    /// # Errors
    /// What the disk says.
    pub fn hold_lost(&mut self, lost: &mut [Lost]) -> io::Result<()> {
        for event in lost.iter().filter(|event| !event.is_of_embeddings) {
            let reason = event.tell();
            for id in &event.ids {
                self.hold(id, event.healed_offset, &reason)?;
            }
        }
        self.hold_meant(lost)
    }

    /// Puts records on hold that a batch speaks of of which nobody can tell whether it ever was whole.
    ///
    /// # Errors
    /// What the disk says.
    pub fn hold_dropped(&mut self, dropped: &[(u64, String)]) -> io::Result<()> {
        let reason = "a batch that speaks of it is damaged, and nothing tells that it was whole once";
        for (offset, id) in dropped {
            if face_of(id.as_bytes()) != Some(VECTORS) {
                self.hold(id, *offset, reason)?;
            }
        }
        Ok(())
    }

    pub(super) fn hold(&mut self, id: &str, place: u64, reason: &str) -> io::Result<()> {
        self.doubts.push((place, id.to_owned()));
        let since = self.since(id, place)?;
        if since != LaterChange::Settled && put_on_hold(self.state, id, reason, since == LaterChange::Deleted) {
            self.held.insert(id.to_owned());
        }
        Ok(())
    }

    /// What events behind a place did to a record: a deletion or a patch does not tell what it was before.
    fn since(&self, id: &str, place: u64) -> io::Result<LaterChange> {
        let (mut since, timeline) = (LaterChange::Open, self.state.timeline());
        for index in self.state.history(id).into_iter().rev() {
            let Some(offset) = timeline.offset(index as usize).filter(|offset| *offset >= place) else {
                break;
            };
            let next = timeline.offset(index as usize + 1).unwrap_or(self.end);
            let mut op = Op::Other;
            each_event(self.file, offset..next.max(offset + 1), |at, _, _, event| {
                if at == offset {
                    op = event.op;
                }
            })?;
            match op {
                Op::Upsert | Op::Migrate => return Ok(LaterChange::Settled),
                Op::Delete => since = LaterChange::Deleted,
                _ => {}
            }
        }
        Ok(since)
    }

    /// The same for events that do not say what they were of.
    fn hold_meant(&mut self, lost: &mut [Lost]) -> io::Result<()> {
        let mut strange = self.doubt_strange(lost)?;
        let is_open = |event: &Lost| event.unread > 0 || !event.remains.is_empty();
        let unread: Vec<usize> = (0..lost.len()).filter(|number| is_open(&lost[*number])).collect();
        let places = unread.iter().map(|&number| LossPlace {
            number,
            offset: lost[number].healed_offset,
            may_be_several: lost[number].may_be_several,
        });
        let batches = stretches(self.file, self.end, places.collect())?;
        for &number in &unread {
            let own = self.spelled_in(&lost[number], strange.remove(&number).unwrap_or_default())?;
            let is_torn = seeming::is_torn_act(&lost[number].remains);
            if lost[number].unread == 0 && (is_torn || self.is_strange_act(&lost[number])) {
                lost[number].unread = 1;
            }
            // What names its record for certain needs nobody else to tell.
            let is_asked = lost[number].unread > 0 || lost[number].is_joined;
            let batch = batches.iter().find(|batch| is_asked && batch.lost.contains(&number));
            let place = lost[number].healed_offset;
            let mut meant = self.still_open(own, place)?;
            if is_asked {
                let beside = batch.map_or_else(|| vec![number], |batch| batch.lost.clone());
                let told = beside
                    .iter()
                    .flat_map(|&number| self.rolled_back(&lost[number]))
                    .collect();
                meant.extend(self.still_open(told, place)?);
            }
            if let Some(batch) = batch {
                let events = batch.lost.iter().map(|number| lost[*number].unread).sum();
                meant.extend(self.meant_in(batch, place, events)?);
            }
            let event = &mut lost[number];
            meant.retain(|id| !event.ids.contains(id));
            event.doubt = doubt(event, is_torn, batch.is_some(), meant.len());
            let reason = event.tell();
            for id in meant {
                self.hold(&id, place, &reason)?;
            }
        }
        Ok(())
    }

    /// The places of patches and acts that name a record which there never was, each with the records that are called alike:
    /// the name is damaged, and so it tells nothing for certain.
    fn doubt_strange(&mut self, lost: &mut [Lost]) -> io::Result<BTreeMap<usize, BTreeSet<String>>> {
        let strange: Vec<usize> = {
            let is_known = |id: &String| {
                let is_told = |event: &Lost| event.unread == 0 && event.patch.is_empty() && event.ids.contains(id);
                self.state.get(id).is_some() || self.unmade.contains(id) || lost.iter().any(is_told)
            };
            let is_strange_patch = |event: &Lost| !event.patch.is_empty() && !event.ids.iter().all(is_known);
            let is_strange = |event: &Lost| is_strange_patch(event) || self.is_strange_act(event);
            (0..lost.len()).filter(|number| is_strange(&lost[*number])).collect()
        };
        if strange.is_empty() {
            return Ok(BTreeMap::new());
        }
        let records = self.state.freeze().map_err(io::Error::from)?;
        let names = records
            .records()
            .filter_map(|record| Some(unspelled(scan_record(record)?.id?.of(record))));
        let names: Vec<String> = names.collect();
        let near = |id: &String| -> Vec<String> {
            let all = alike(id, names.iter().map(String::as_str));
            all.iter().flat_map(|name| self.meant_by(name, &[])).collect()
        };
        let mut found = BTreeMap::new();
        for number in strange {
            let event = &mut lost[number];
            if !event.patch.is_empty() {
                (event.unread, event.remains) = (event.unread.max(1), std::mem::take(&mut event.patch));
            }
            // Links that an act may use need not be there.
            let is_act = !seeming::prefixes(&event.remains).is_empty();
            let named = event
                .ids
                .iter()
                .filter(|id| !is_act || call_of(id.as_bytes()).is_some());
            let unknown = named.filter(|id| self.state.get(id).is_none());
            found.insert(number, unknown.flat_map(near).collect());
        }
        Ok(found)
    }

    /// The records that what is left of an event may name, beside those that are called like what it names.
    fn spelled_in(&mut self, event: &Lost, alike: BTreeSet<String>) -> io::Result<BTreeSet<String>> {
        // An act names its records without what stands before their ids.
        let prefixes = seeming::prefixes(&event.remains);
        let texts = seeming::texts(&event.remains);
        let mut own = alike;
        own.extend(texts.flat_map(|text| self.meant_by(&text, &prefixes)));
        if seeming::is_torn_act(&event.remains) || self.is_strange_act(event) {
            // Nothing tells with which others the records that are left were named: with any that they are linked to.
            let near: BTreeSet<String> = event.ids.iter().cloned().chain(own.iter().cloned()).collect();
            let faces = near.iter().filter_map(|id| face_of(id.as_bytes())).collect();
            let records = self.state.freeze().map_err(io::Error::from)?;
            for id in self.tied(&records, &near, &faces) {
                let record = self.state.get(&id).map(parsed);
                own.extend(record.iter().flat_map(|record| self.mentioned(record, &id)));
                own.insert(id);
            }
            own.extend(self.tied(&records, &own, &faces));
        }
        Ok(own)
    }

    /// The records whose rollback an event reported: the report has their id in its own, and is written with them.
    fn rolled_back(&self, event: &Lost) -> Vec<String> {
        let names = event.ids.iter().cloned().chain(seeming::texts(&event.remains));
        let targets = names.filter_map(|name| name.strip_prefix(ROLLBACK).map(str::to_owned));
        let all = targets.flat_map(|target| {
            // The second report of a record has a number behind it.
            let first = target
                .rsplit_once('-')
                .filter(|(_, number)| number.parse::<u64>().is_ok());
            let first = first.map(|(first, _)| first.to_owned());
            first.into_iter().chain([target])
        });
        all.flat_map(|target| self.meant_by(&target, &[])).collect()
    }

    /// Whether an event is an act that names a record which there never was: its list may be damaged, and name others.
    fn is_strange_act(&self, event: &Lost) -> bool {
        let is_named = |id: &&String| call_of(id.as_bytes()).is_some();
        let is_act = !seeming::prefixes(&event.remains).is_empty();
        is_act && event.ids.iter().filter(is_named).any(|id| self.state.get(id).is_none())
    }

    /// The records that a text may name; `prefixes` stand before ids of the face that says it.
    fn meant_by(&self, text: &str, prefixes: &[&str]) -> Vec<String> {
        let whole = std::iter::once(text.to_owned());
        let all = whole.chain(prefixes.iter().map(|prefix| format!("{prefix}:{text}")));
        // What is said about embeddings is checked row by row, and what is searched is nobody's belief.
        let is_belief = |id: &String| !matches!(face_of(id.as_bytes()), Some(VECTORS | SEARCH));
        all.filter(|id| is_belief(id) && self.state.get(id).is_some()).collect()
    }

    fn mentioned(&self, record: &Value, id: &str) -> BTreeSet<String> {
        let (mut texts, prefixes) = (Vec::new(), prefixes_beside(id.as_bytes()));
        texts_of(record, &mut texts);
        texts.iter().flat_map(|text| self.meant_by(text, prefixes)).collect()
    }

    fn still_open(&self, ids: BTreeSet<String>, place: u64) -> io::Result<BTreeSet<String>> {
        let mut open = BTreeSet::new();
        for id in ids {
            if self.since(&id, place)? != LaterChange::Settled {
                open.insert(id);
            }
        }
        Ok(open)
    }

    /// The records that lost events of a batch may have spoken of: those that its good events mention, and if these are
    /// fewer than the events that are lost, those that are connected with them.
    fn meant_in(&mut self, batch: &LossyStretch, place: u64, events: u64) -> io::Result<BTreeSet<String>> {
        let (mut written, mut said) = (BTreeSet::new(), Vec::new());
        each_event(self.file, batch.bytes.clone(), |_, _, text, event| {
            let id = unspelled(event.record_id(text));
            // A record of a face may have been patched once more.
            if face_of(id.as_bytes()).is_none() {
                written.insert(id.clone());
            }
            // Who has an embedding is told beside what is written of him. If all that is lost is named, it is no news.
            if events > 0 || face_of(id.as_bytes()) != Some(VECTORS) {
                said.push((parsed(event.record(text)), id));
            }
        })?;
        let mut mentioned = BTreeSet::new();
        for (record, id) in &said {
            mentioned.extend(self.mentioned(record, id));
            mentioned.extend(self.meant_by(id, &[]));
        }
        let mut reached: BTreeSet<String> = mentioned.union(&written).cloned().collect();
        let is_meant = |ids: &BTreeSet<String>| -> BTreeSet<String> { ids.difference(&written).cloned().collect() };
        let mut meant = self.still_open(is_meant(&mentioned), place)?;
        for _ in 0..MOST_STEPS {
            if meant.len() as u64 >= events {
                break;
            }
            let records = self.state.freeze().map_err(io::Error::from)?;
            let wider = self.connected(&records, &reached);
            if wider == reached {
                break;
            }
            meant = self.still_open(is_meant(&wider), place)?;
            reached = wider;
        }
        let faces = said.iter().filter_map(|(_, id)| face_of(id.as_bytes()));
        let faces: BTreeSet<&str> = faces.filter(|face| !matches!(*face, VECTORS | SEARCH)).collect();
        if !faces.is_empty() {
            let records = self.state.freeze().map_err(io::Error::from)?;
            let tied = self.tied(&records, &mentioned, &faces);
            meant.extend(self.still_open(is_meant(&tied), place)?);
        }
        Ok(meant)
    }

    /// The records of faces that mention one of these: in a face a mark takes nothing away, and what ties its records
    /// together is written along with them.
    fn tied(&self, records: &Frozen, ids: &BTreeSet<String>, faces: &BTreeSet<&str>) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for record in records.records().map(parsed) {
            let id = record.get("id").and_then(Value::as_str).unwrap_or_default();
            let is_of_them = face_of(id.as_bytes()).is_some_and(|face| faces.contains(face));
            if is_of_them && !self.mentioned(&record, id).is_disjoint(ids) {
                found.insert(id.to_owned());
            }
        }
        found
    }

    /// These records, those that mention one of them, and those that are mentioned in the same place.
    fn connected(&self, records: &Frozen, ids: &BTreeSet<String>) -> BTreeSet<String> {
        let mut found = ids.clone();
        for record in records.records().map(parsed) {
            let Some(id) = record.get("id").and_then(Value::as_str) else {
                continue;
            };
            if matches!(face_of(id.as_bytes()), Some(VECTORS | SEARCH)) {
                continue;
            }
            // It mentions itself: its id is one of its texts.
            let mentioned = self.mentioned(&record, id);
            if !mentioned.is_disjoint(ids) {
                found.extend(mentioned);
            }
        }
        found
    }
}

fn texts_of<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Str(text) => found.push(text),
        Value::Array(values) => values.iter().for_each(|value| texts_of(value, found)),
        Value::Object(pairs) => {
            for (key, value) in pairs {
                found.push(key);
                texts_of(value, found);
            }
        }
        _ => {}
    }
}

fn doubt(event: &Lost, is_torn_act: bool, is_in_batch: bool, meant: usize) -> Option<String> {
    let unknown = match (event.ids.is_empty(), event.unread) {
        // What is left of its list may be all, or nothing: whatever the act was of has the values from before it.
        _ if is_torn_act => "it is not known which other records it spoke of".to_owned(),
        (_, 0) => "it may have spoken of others too".to_owned(),
        (false, _) => "its name may be damaged too".to_owned(),
        (true, 1) => "it is not known which record it spoke of".to_owned(),
        (true, _) => "it is not known which records they spoke of".to_owned(),
    };
    let whose = if is_in_batch { "its batch" } else { "what is left of it" };
    match meant {
        0 => Some(unknown).filter(|_| event.unread > 0),
        1 => Some(format!("{unknown}, and the record that {whose} mentions is on hold")),
        _ => Some(format!(
            "{unknown}, and the {meant} records that {whose} mentions are on hold"
        )),
    }
}
