//! Seals what a state holds in memory, and takes segments in.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::catalog::{Catalog, Class};
use super::records::State;
use super::scopes::Directory;
use super::slots::{At, SealedSlots, SlotTable};
use super::timeline::Timeline;
use crate::segment::{self, Head, Locator, NO_CLASS, NO_EVENT, Sealed, Segment, SegmentDraft, Source, check_of};
use crate::snapshot::{LineReader, Stamp};
use chronolog::disk::DiskFile;
use chronolog::event::UPSERT_RECORD_START;
use chronolog::event::faces::ERASURES;
use chronolog::event::line::{Event, Trust};
use chronolog::event::salt;
use chronolog::memory::Refused;
use xxhash_rust::xxh3::xxh3_64;

/// What a state holds in memory, copied so that it can be sealed while the state goes on.
pub struct Unsealed {
    draft: SegmentDraft,
    slots: SlotTable,
    /// The place of each scope among the names of the segment.
    scopes: HashMap<u32, u32>,
}

impl State {
    /// The state that segments hold.
    pub fn of_segments(rows: Arc<Sealed>) -> Self {
        let mut state = Self {
            timeline: Timeline::behind(&rows),
            ..Self::default()
        };
        for segment in rows.segments() {
            let replaced: RoaringBitmap = (0..segment.replaced() as u32).map(|row| segment.ordinal(row)).collect();
            state.catalog.forget_slots(&replaced);
            state.scopes.forget_slots(&replaced);
            let (classes, scopes) = numbers_of(segment, &mut state.catalog, &mut state.scopes);
            for (class, slots) in classes.iter().zip(segment.class_sets()) {
                state.catalog.add_slots(*class, &slots);
            }
            for ((scope, (_, spoken)), slots) in scopes.iter().zip(segment.scope_names()).zip(segment.scope_sets()) {
                state.scopes.add_slots(*scope, &slots);
                state
                    .scopes
                    .speak(Some(*scope), Stamp::of_numbers(spoken[0], spoken[1]));
            }
        }
        if let Some(head) = rows.head() {
            state.declares = head.declares;
            state.slots.inversions = head.inversions;
            let [seq, micros] = head.unscoped;
            state.scopes.speak(None, Stamp::of_numbers(seq, micros));
        }
        state.adopt(rows);
        let erasures: Vec<u32> = state.of_face(ERASURES, None).collect();
        for slot in erasures {
            state.restated.note_erasure(&state.slots.record(slot), false);
        }
        if !state.restated.is_empty() {
            for slot in 0..state.slots.len() as u32 {
                state.restated.note_place(slot, state.slots.created(slot));
            }
        }
        state
    }

    /// How much is not sealed: events or records, whichever are more.
    pub fn unsealed_len(&self) -> usize {
        let events = self.timeline.len() - self.timeline.sealed_len() as usize;
        events.max(self.slots.in_memory_len())
    }

    /// Whether what is in memory can be sealed: nothing is in doubt, and records have the slots that they have in every process.
    pub fn can_be_sealed(&self) -> bool {
        !self.is_outlived && self.is_settled()
    }

    /// Whether nothing is in doubt and nothing is expected from the events that come next.
    pub fn is_settled(&self) -> bool {
        !self.slots.is_in_doubt() && !self.awaits_events()
    }

    /// Whether the events that come next restate records of an erasure.
    pub fn awaits_events(&self) -> bool {
        self.restated.is_awaiting()
    }

    /// Copies what is in memory. `head` says what is known about the log: origin, head and position.
    ///
    /// # Errors
    /// `Refused` if there is no memory for the copy.
    pub fn unsealed(&self, head: Head) -> Result<Unsealed, Refused> {
        let mut draft = SegmentDraft {
            head: Head {
                from: self.timeline.sealed_len(),
                to: self.timeline.len() as u32,
                first_slot: self.slots.sealed_len(),
                end_slot: self.slots.len() as u32,
                next_seq: self.timeline.next_seq,
                inversions: self.slots.inversions,
                declares: self.declares,
                unscoped: self.scopes.unscoped().numbers(),
                seed: match self.slots.sealed() {
                    Some(sealed) => sealed.seed(),
                    None => segment::seed_of(&head.origin),
                },
                ..head
            },
            // All of them, in their order: it is the order in which they are counted.
            classes: self.catalog.classes().iter().map(Class::name).collect(),
            ..SegmentDraft::default()
        };
        self.timeline.add_unsealed(&mut draft);
        let mut scopes: HashMap<u32, u32> = HashMap::new();
        for slot in self.slots.in_memory() {
            let held = self.slots.view(slot);
            if held.class != NO_CLASS {
                scopes.entry(held.scope).or_insert_with(|| {
                    let (name, spoken) = self.scopes.name_of(held.scope);
                    draft.scopes.push((name, spoken.numbers()));
                    draft.scopes.len() as u32 - 1
                });
            }
        }
        let slots = self.slots.copy()?;
        Ok(Unsealed { draft, slots, scopes })
    }

    /// Takes segments that hold all of this state up to some event, and forgets what it holds of that in memory.
    pub fn adopt(&mut self, rows: Arc<Sealed>) {
        let (catalog, scopes) = (&mut self.catalog, &mut self.scopes);
        let names = rows
            .segments()
            .iter()
            .map(|segment| numbers_of(segment, catalog, scopes));
        let (classes, scopes) = names.unzip();
        let (slots, events) = (rows.slots(), rows.events());
        self.timeline.adopt(&rows);
        let sealed = SealedSlots {
            rows,
            classes,
            scopes,
            is_live: true,
        };
        self.slots.adopt(sealed, |number, slot| {
            number < slots && (slot.last_event == NO_EVENT || slot.last_event < events)
        });
    }
}

/// What the classes and scopes of a segment are called in a state.
fn numbers_of(segment: &Segment, catalog: &mut Catalog, scopes: &mut Directory) -> (Vec<u32>, Vec<u32>) {
    let classes = segment.class_names().into_iter();
    let classes = classes.map(|(kind, status, face)| catalog.number(&kind, &status, face));
    let names = segment.scope_names().into_iter();
    let scopes = names.map(|(name, _)| scopes.number_of_name(&name));
    (classes.collect(), scopes.collect())
}

impl Unsealed {
    /// What the segment says about itself.
    pub fn head(&self) -> &Head {
        &self.draft.head
    }

    /// Writes the segment to an empty file. Records that lie in the log or the base as they are get a locator, the others are copied. The
    /// base is searched from an offset on, which is moved behind the last record that was found.
    ///
    /// # Errors
    /// What the disk says.
    pub fn write(
        mut self,
        file: Arc<dyn DiskFile>,
        log: &dyn DiskFile,
        base: Option<(&dyn DiskFile, &mut u64)>,
    ) -> io::Result<()> {
        let numbers = self.slots.in_memory();
        let mut locators: Vec<Option<Locator>> = vec![None; numbers.len()];
        self.find_in_log(log, &numbers, &mut locators)?;
        if let Some((base, offset)) = base {
            self.find_in_base(base, offset, &numbers, &mut locators)?;
        }
        let mut rows = Vec::with_capacity(numbers.len());
        for (number, found) in numbers.into_iter().zip(locators) {
            let slot = self.slots.get(number);
            let record = self.slots.bytes_at(&slot.at);
            let mut locator = match found.or_else(|| self.slots.locator(&slot.at)) {
                Some(locator) => locator,
                None => {
                    let offset = self.draft.inline.len() as u64;
                    self.draft.inline.extend_from_slice(&record);
                    Locator::of(Source::Inline, offset, &record)
                }
            };
            locator.is_gone = slot.is_gone;
            let id_hash = segment::id_hash(slot.id.of(&record), self.draft.head.seed);
            let scope = self.scopes.get(&slot.scope).copied().unwrap_or(0);
            rows.push(slot.row(number, locator, id_hash, [slot.class, scope]));
        }
        if self.slots.has_failed() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a segment is damaged"));
        }
        segment::write(file, &self.draft, &rows)
    }

    /// Finds records in the lines of their last events.
    fn find_in_log(&self, log: &dyn DiskFile, numbers: &[u32], locators: &mut [Option<Locator>]) -> io::Result<()> {
        let first = self.draft.head.from;
        let mut lines = LineReader::from(log, 0);
        // Most rows are in the order of their events, so the log is read once.
        for (number, locator) in numbers.iter().zip(locators) {
            let slot = self.slots.get(*number);
            let event = slot.last_event.checked_sub(first);
            let event = event.and_then(|event| self.draft.events.get(event as usize));
            if let (At::Memory(record), Some(event)) = (&slot.at, event) {
                lines.seek(event.offset);
                let line = lines.next(None)?.unwrap_or_default();
                *locator = located(line, event.offset, record);
            }
        }
        Ok(())
    }

    /// Finds records in the lines of a base.
    fn find_in_base(
        &self,
        base: &dyn DiskFile,
        offset: &mut u64,
        numbers: &[u32],
        locators: &mut [Option<Locator>],
    ) -> io::Result<()> {
        let mut wanted = HashMap::new();
        for (at, number) in numbers.iter().enumerate() {
            let slot = self.slots.get(*number);
            if let (At::Memory(record), None) = (&slot.at, &locators[at])
                && slot.class != NO_CLASS
            {
                wanted.insert(xxh3_64(record), (at, Arc::clone(record)));
            }
        }
        let (mut lines, mut at) = (LineReader::from(base, *offset), *offset);
        while !wanted.is_empty()
            && let Some(line) = lines.next(None)?
        {
            let record = line.strip_suffix(b",").unwrap_or(line);
            let (start, hash) = (at, xxh3_64(record));
            at += line.len() as u64 + 1;
            if wanted.get(&hash).is_some_and(|(_, known)| **known == *record)
                && let Some((place, _)) = wanted.remove(&hash)
            {
                locators[place] = Some(Locator::of(Source::Base, start, record));
                *offset = at;
            }
        }
        Ok(())
    }
}

/// Where a line holds a record, if it does.
fn located(line: &[u8], offset: u64, record: &[u8]) -> Option<Locator> {
    let (start, length, is_salted) = if line
        .get(UPSERT_RECORD_START..)
        .is_some_and(|rest| rest.starts_with(record))
    {
        (UPSERT_RECORD_START as u64, record.len() as u32, false)
    } else {
        let event = Event::read(line, Trust::Hashes).ok().filter(Event::is_own_form)?;
        let raw = event.record(line);
        let is_salted = raw != record;
        if is_salted && *salt::without(raw) != *record {
            return None;
        }
        (u64::from(event.spans.record.start), raw.len() as u32, is_salted)
    };
    Some(Locator {
        source: Source::Log,
        offset: offset + start,
        length,
        is_salted,
        is_gone: false,
        check: check_of(record),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use chronolog::disk::Bytes;
    use chronolog::event::Op;
    use chronolog::json::Value;
    use chronolog::scope::{Scope, Viewer};

    use super::*;
    use crate::segment::{Segment, Sources, merge};
    use crate::state::tests::says;
    use crate::state::{By, Listing, Query, parsed};
    use chronolog::disk::MemoryFile;

    fn opened(file: &MemoryFile, failed: &Arc<AtomicBool>) -> Arc<Segment> {
        let bytes = Bytes(file.contents()).map(u64::MAX).expect("memory");
        Arc::new(Segment::open(bytes, failed).expect("a segment"))
    }

    fn sources() -> Sources {
        Sources::new(Arc::new(Bytes(Vec::new())), None)
    }

    /// Copies what a state holds in memory.
    fn copy(state: &State) -> Unsealed {
        let head = Head {
            origin: [7; 32],
            ..Head::default()
        };
        state.unsealed(head).expect("memory")
    }

    /// Seals what was copied from a state; all records are copied, because there is no log.
    fn seal(state: &State, unsealed: Unsealed) -> Arc<Sealed> {
        let file = Arc::new(MemoryFile::default());
        unsealed.write(file.clone(), &Bytes(Vec::new()), None).expect("written");
        let failed = state
            .slots
            .sealed()
            .map_or_else(Arc::default, |sealed| Arc::clone(sealed.mark()));
        let mut segments = state
            .slots
            .sealed()
            .map_or_else(Vec::new, |sealed| sealed.segments().to_vec());
        segments.push(opened(&file, &failed));
        Arc::new(Sealed::of(segments, sources(), failed))
    }

    /// Merges the last segments into one.
    fn merged(sealed: &Sealed, count: usize) -> Arc<Sealed> {
        let (all, file) = (sealed.segments().len(), Arc::new(MemoryFile::default()));
        merge(file.clone(), sealed, all - count..all).expect("merged");
        let mut segments = sealed.segments()[..all - count].to_vec();
        segments.push(opened(&file, sealed.mark()));
        Arc::new(Sealed::of(segments, sources(), Arc::clone(sealed.mark())))
    }

    /// All that a state answers.
    fn answers(state: &State) -> Vec<String> {
        let mut said = Vec::new();
        let ann = Arc::new(Viewer::Named {
            scope: Scope::new([Some("ann"), None, None]).expect("a scope"),
            shared: true,
        });
        for viewer in [
            Arc::<Viewer>::default(),
            Arc::new(Viewer::Everyone),
            ann,
            Arc::new(Viewer::Everyone.with_expired()),
        ] {
            said.push(format!("{:?}", state.tally(&viewer)));
            // An event about an expired record counts for who sees it, until the state is loaded again.
            if viewer.sees_expired() {
                said.push(format!("{:?}", state.scopes.seen_version(&viewer)));
            }
            for (by, reverse) in [
                (By::Created, false),
                (By::Created, true),
                (By::Updated, false),
                (By::Confidence, true),
                (By::Id, false),
            ] {
                let listing = Listing {
                    by,
                    reverse,
                    query: Query {
                        viewer: Arc::clone(&viewer),
                        faces: true,
                        ..Query::default()
                    },
                    ..Listing::default()
                };
                let (slots, _) = listing.slots(state, None, &|_| None, 1).expect("memory");
                let records = slots
                    .iter()
                    .map(|&slot| String::from_utf8_lossy(&state.slots.record(slot)).into_owned());
                said.push(format!("{by:?} {reverse} {:?}", records.collect::<Vec<_>>()));
            }
        }
        for number in 0..40 {
            let id = format!("r{number}");
            let moments = state.slots.of_id(&id).map(|slot| state.slots.moments(slot));
            said.push(format!(
                "{id} {:?} {:?} {moments:?}",
                state.get(&id),
                state.history(&id)
            ));
        }
        said.push(format!("{:?}", state.timeline().since(5)));
        said.push(format!("{:?}", state.slots_since(30).expect("memory").len()));
        said.push(format!("{} {}", state.len(), state.slots.is_ordered()));
        said
    }

    #[test]
    fn a_state_answers_alike_however_it_is_sealed() {
        for seed in 0..8_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            let mut next = |below: u64| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random % below
            };
            let (mut plain, mut sealing) = (State::default(), State::default());
            let every = 1 + next(9);
            let mut copied = None;
            for seq in 1..200_u64 {
                let id = format!("r{}", next(40));
                let op = [Op::Upsert, Op::Upsert, Op::Upsert, Op::Patch, Op::Delete, Op::Mark][next(6) as usize];
                let scope = ["", r#""@scope":{"user":"ann"},"#, r#""@scope":{"user":"bob"},"#][(seq % 40 % 3) as usize];
                let expires = ["null", r#""1970-01-01T00:00:05Z""#, r#""1970-01-01T00:00:50Z""#][next(3) as usize];
                let record = format!(
                    r#"{{"confidence":0.{},"data":{{{scope}"expires_at":{expires},"n":{},"tags":["t{}","t{}"]}},"id":"{id}","kind":"k{}"}}"#,
                    next(10),
                    seq % 13,
                    next(4),
                    next(4),
                    next(3)
                );
                let block = format!("block:b{}", next(12));
                let block_record = format!(r#"{{"data":{{{scope}"category":"c"}},"id":"{block}","kind":"block"}}"#);
                for state in [&mut plain, &mut sealing] {
                    match seq % 5 {
                        0 | 3 => says(state, Op::Upsert, seq, &block, &block_record),
                        _ => says(state, op, seq, &id, &record),
                    }
                }
                if seq % 37 == 0 {
                    let now = next(80) as i64 * 1_000_000;
                    plain.expire(now);
                    sealing.expire(now);
                }
                // Events are applied while a copy is sealed.
                if let Some((unsealed, _)) = copied.take_if(|(_, until)| *until == seq) {
                    let sealed = seal(&sealing, unsealed);
                    match next(2) {
                        0 => sealing.adopt(sealed),
                        _ => sealing.adopt(merged(&sealed, sealed.segments().len().min(3))),
                    }
                } else if copied.is_none() && seq % every == 0 && next(2) == 0 {
                    copied = Some((copy(&sealing), seq + 1 + next(9)));
                } else if copied.is_none() && seq % every == 0 {
                    let clock = sealing.clock;
                    let sealed = seal(&sealing, copy(&sealing));
                    match next(4) {
                        0 => sealing.adopt(sealed),
                        1 => {
                            sealing = State::of_segments(sealed);
                            clock.into_iter().for_each(|clock| sealing.expire(clock));
                        }
                        2 => sealing.adopt(merged(&sealed, sealed.segments().len().min(3))),
                        _ => {
                            sealing = State::of_segments(merged(&sealed, sealed.segments().len()));
                            clock.into_iter().for_each(|clock| sealing.expire(clock));
                        }
                    }
                }
                if seq % 20 == 0 {
                    for (sealed, plain) in answers(&sealing).iter().zip(answers(&plain)) {
                        assert_eq!(*sealed, plain, "seed {seed}, event {seq}");
                    }
                    assert!(!sealing.slots.has_failed());
                }
            }
        }
    }

    #[test]
    fn an_id_that_is_written_while_its_mention_is_sealed_has_one_slot() {
        let mut state = State::default();
        let record = r#"{"id":"r1","kind":"note"}"#;
        says(&mut state, Op::Delete, 1, "r1", record);
        says(&mut state, Op::Upsert, 2, "r2", r#"{"id":"r2"}"#);
        let unsealed = copy(&state);
        says(&mut state, Op::Upsert, 3, "r1", record);
        let sealed = seal(&state, unsealed);
        state.adopt(sealed);
        let sealed = seal(&state, copy(&state));
        for sealed in [Arc::clone(&sealed), merged(&sealed, 2)] {
            let mut loaded = State::of_segments(sealed);
            assert!(loaded.get("r1").is_some());
            assert_eq!(loaded.history("r1"), [0, 2]);
            says(&mut loaded, Op::Delete, 4, "r1", record);
            let status = parsed(&loaded.get("r1").expect("a tombstone"));
            assert_eq!(status.get("status").and_then(Value::as_str), Some("tombstone"));
            assert_eq!((loaded.len(), loaded.history("r1")), (2, vec![0, 2, 3]));
        }
    }
}
