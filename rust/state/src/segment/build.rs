//! Writes segments: from the rows and events of a memtable, or by merging neighbours.

use std::collections::HashMap;
use std::io;
use std::sync::Arc;

use chronolog::disk::DiskFile;
use chronolog::json::Span;
use roaring::RoaringBitmap;

use super::container::ContainerWriter;
use super::read::Sealed;
use super::{Locator, NEVER, NO_CLASS, RULES_VERSION, Source, ids, section};

/// One version of one record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SegmentRow {
    /// The slot of the record.
    pub ordinal: u32,
    /// Where its bytes are.
    pub locator: Locator,
    /// Where its id is in them.
    pub id: Span,
    /// The hash of its id.
    pub id_hash: u64,
    /// Its class, by its place in the names of the segment; `NO_CLASS` if it is no record.
    pub class: u32,
    /// The scope it was written with, by its place in the names of the segment.
    pub scope: u32,
    /// Its confidence.
    pub confidence: f64,
    /// Seq and moment of the event that made it, then those of the last one about it.
    pub moments: [i64; 4],
    /// The last event of the live log about it, or `NO_EVENT`.
    pub last_event: u32,
    /// When it expires, or `NEVER`.
    pub expires: i64,
}

/// One event of the live log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventRow {
    /// Where its line begins.
    pub offset: u64,
    /// The slot of its record; `SEVERAL`, or `NO_EVENT` if it has none.
    pub slot: u32,
    /// The event before it about the same record, or `NO_EVENT`.
    pub earlier: u32,
}

/// The name of a class: kind and status as in canonical JSON between quotes, and whether its records belong to a face.
pub type ClassName = (Vec<u8>, Vec<u8>, bool);

/// The name of a scope: its canonical JSON, empty for shared records, one `!` for what is no scope; and the last event about it.
pub type ScopeName = (Vec<u8>, [i64; 2]);

/// What a segment says about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Head {
    /// The hash of the first line of the log.
    pub origin: [u8; 32],
    /// The hash of the last event.
    pub head: [u8; 32],
    /// Its events, by their index in the live log; `to` is exclusive.
    pub from: u32,
    /// See `from`.
    pub to: u32,
    /// The first slot that has no row in an earlier segment.
    pub first_slot: u32,
    /// How many slots there are at its end.
    pub end_slot: u32,
    /// The seq that would come next.
    pub next_seq: u64,
    /// How many slots are older than the one before them.
    pub inversions: u64,
    /// Whether there ever was a record in which the store declares something.
    pub declares: bool,
    /// The last event about something that belongs to no scope.
    pub unscoped: [i64; 2],
    /// The seed of the hashes of ids. All segments of a log have the same.
    pub seed: u64,
    /// What the reader of the log needs in order to continue behind the last event.
    pub position: Vec<u8>,
}

const HEAD_BYTES: usize = 32 + 32 + 4 * 4 + 8 + 8 + 8 + 16 + 8 + 4;

impl Head {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.position.len());
        bytes.extend_from_slice(&RULES_VERSION.to_le_bytes());
        bytes.extend_from_slice(&self.origin);
        bytes.extend_from_slice(&self.head);
        for number in [self.from, self.to, self.first_slot, self.end_slot] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        for number in [self.next_seq, self.inversions, u64::from(self.declares)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        self.unscoped
            .iter()
            .for_each(|number| bytes.extend_from_slice(&number.to_le_bytes()));
        bytes.extend_from_slice(&self.seed.to_le_bytes());
        bytes.extend_from_slice(&self.position);
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (fixed, position) = bytes.split_at_checked(HEAD_BYTES)?;
        let word = |at: usize| Some(u32::from_le_bytes(fixed.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(fixed.get(at..at + 8)?.try_into().ok()?));
        if word(0)? != RULES_VERSION {
            return None;
        }
        Some(Self {
            origin: fixed.get(4..36)?.try_into().ok()?,
            head: fixed.get(36..68)?.try_into().ok()?,
            from: word(68)?,
            to: word(72)?,
            first_slot: word(76)?,
            end_slot: word(80)?,
            next_seq: long(84)?,
            inversions: long(92)?,
            declares: long(100)? != 0,
            unscoped: [long(108)? as i64, long(116)? as i64],
            seed: long(124)?,
            position: position.to_vec(),
        })
    }
}

/// All that is written beside the rows.
#[derive(Clone, Debug, Default)]
pub struct SegmentDraft {
    /// What the segment says about itself.
    pub head: Head,
    /// The classes of its rows.
    pub classes: Vec<ClassName>,
    /// The scopes of its rows.
    pub scopes: Vec<ScopeName>,
    /// Its events.
    pub events: Vec<EventRow>,
    /// The records of events about several: event, slot, and the event before it about that record.
    pub further: Vec<[u32; 3]>,
    /// Runs of consecutive seqs: index of the first event and its seq. The first run begins with the first event.
    pub runs: Vec<(u32, u64)>,
    /// The bytes of inline records.
    pub inline: Vec<u8>,
    /// Slots of mere mentions whose id got another slot: old and new.
    pub renames: Vec<[u32; 2]>,
}

/// How many rows a segment has, and each by its place: first those of slots of earlier segments, ascending, then the others.
pub(super) type Rows<'a> = (usize, &'a dyn Fn(usize) -> SegmentRow);

/// Writes a segment to an empty file.
///
/// # Errors
/// What the disk says; the file is then not a segment.
pub fn write(file: Arc<dyn DiskFile>, draft: &SegmentDraft, rows: &[SegmentRow]) -> io::Result<()> {
    write_rows(file, draft, (rows.len(), &|at| rows[at]))
}

fn write_rows(file: Arc<dyn DiskFile>, draft: &SegmentDraft, (count, row): Rows<'_>) -> io::Result<()> {
    let mut out = ContainerWriter::new(file);
    let all = || (0..count).map(row);
    let replaced = all().take_while(|row| row.ordinal < draft.head.first_slot);
    column(
        &mut out,
        section::ORDINALS,
        replaced.map(|row| row.ordinal.to_le_bytes()),
    )?;
    column(&mut out, section::LOCATORS, all().map(|row| row.locator.to_bytes()))?;
    column(&mut out, section::IDS, all().map(|row| pair(row.id.start, row.id.end)))?;
    column(&mut out, section::HASHES, all().map(|row| row.id_hash.to_le_bytes()))?;
    column(&mut out, section::CLASSES, all().map(|row| row.class.to_le_bytes()))?;
    column(&mut out, section::SCOPES, all().map(|row| row.scope.to_le_bytes()))?;
    column(
        &mut out,
        section::CONFIDENCES,
        all().map(|row| row.confidence.to_le_bytes()),
    )?;
    column(&mut out, section::MOMENTS, all().map(|row| four(row.moments)))?;
    column(
        &mut out,
        section::LAST_EVENTS,
        all().map(|row| row.last_event.to_le_bytes()),
    )?;
    let due = all().filter(|row| row.expires != NEVER);
    let mut due: Vec<(i64, u32)> = due.map(|row| (row.expires, row.ordinal)).collect();
    due.sort_unstable();
    if !due.is_empty() {
        column(&mut out, section::EXPIRIES, all().map(|row| row.expires.to_le_bytes()))?;
        out.begin(section::EXPIRY_KEYS)?;
        for (moment, ordinal) in due {
            out.add(&moment.to_le_bytes())?;
            out.add(&u64::from(ordinal).to_le_bytes())?;
        }
    }
    let hashes = all().map(|row| (!row.locator.is_gone).then_some(row.id_hash));
    out.section(section::ID_TABLE, &ids::build(hashes))?;
    write_names(&mut out, draft, all())?;
    out.begin(section::EVENTS)?;
    for event in &draft.events {
        out.add(&event.offset.to_le_bytes())?;
        out.add(&pair(event.slot, event.earlier))?;
    }
    let number = |number: &u32| number.to_le_bytes();
    column(
        &mut out,
        section::FURTHER,
        draft.further.as_flattened().iter().map(number),
    )?;
    out.begin(section::RUNS)?;
    for (first, seq) in &draft.runs {
        out.add(&u64::from(*first).to_le_bytes())?;
        out.add(&seq.to_le_bytes())?;
    }
    column(
        &mut out,
        section::RENAMES,
        draft.renames.as_flattened().iter().map(number),
    )?;
    out.section(section::INLINE, &draft.inline)?;
    out.finish(&draft.head.to_bytes()).map(drop)
}

fn column<const N: usize>(
    out: &mut ContainerWriter,
    id: u32,
    mut values: impl Iterator<Item = [u8; N]>,
) -> io::Result<()> {
    out.begin(id)?;
    values.try_for_each(|value| out.add(&value))
}

fn pair(one: u32, other: u32) -> [u8; 8] {
    (u64::from(one) | (u64::from(other) << 32)).to_le_bytes()
}

fn four(numbers: [i64; 4]) -> [u8; 32] {
    let mut bytes = [0; 32];
    for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
        place.copy_from_slice(&number.to_le_bytes());
    }
    bytes
}

/// Names and sets of the classes and scopes.
fn write_names(
    out: &mut ContainerWriter,
    draft: &SegmentDraft,
    rows: impl Iterator<Item = SegmentRow>,
) -> io::Result<()> {
    let mut classes = vec![RoaringBitmap::new(); draft.classes.len()];
    let mut scopes = vec![RoaringBitmap::new(); draft.scopes.len()];
    for row in rows.filter(|row| row.class != NO_CLASS) {
        classes[row.class as usize].insert(row.ordinal);
        scopes[row.scope as usize].insert(row.ordinal);
    }
    out.begin(section::CLASS_NAMES)?;
    for (kind, status, is_of_face) in &draft.classes {
        add_text(out, kind)?;
        add_text(out, status)?;
        out.add(&[u8::from(*is_of_face)])?;
    }
    write_sets(out, section::CLASS_SETS, &mut classes)?;
    out.begin(section::SCOPE_NAMES)?;
    for (name, [seq, micros]) in &draft.scopes {
        add_text(out, name)?;
        out.add(&seq.to_le_bytes())?;
        out.add(&micros.to_le_bytes())?;
    }
    write_sets(out, section::SCOPE_SETS, &mut scopes)
}

fn add_text(out: &mut ContainerWriter, text: &[u8]) -> io::Result<()> {
    out.add(&(text.len() as u32).to_le_bytes())?;
    out.add(text)
}

fn write_sets(out: &mut ContainerWriter, id: u32, sets: &mut [RoaringBitmap]) -> io::Result<()> {
    out.begin(id)?;
    for set in sets {
        set.optimize();
        let mut bytes = Vec::with_capacity(set.serialized_size());
        set.serialize_into(&mut bytes)?;
        add_text(out, &bytes)?;
    }
    Ok(())
}

/// Writes one segment in place of some neighbours, which are given by their places in `sealed`.
///
/// # Errors
/// What the disk says; `InvalidData` if a check of a segment failed.
pub fn merge(file: Arc<dyn DiskFile>, sealed: &Sealed, which: std::ops::Range<usize>) -> io::Result<()> {
    let head = sealed.merged_head(which.clone());
    let (Some(sealed), Some(head)) = (sealed.part(which), head) else {
        return Ok(());
    };
    let mut draft = SegmentDraft {
        head,
        ..SegmentDraft::default()
    };
    // For each segment, the place of its classes and scopes in the merged names, and where its inline records begin.
    let (mut class_places, mut scope_places, mut inline) = (Vec::new(), Vec::new(), Vec::new());
    let (mut classes, mut scopes) = (HashMap::new(), HashMap::new());
    for part in sealed.segments() {
        inline.push(draft.inline.len() as u64);
        draft.inline.extend_from_slice(part.inline());
        let names = part.class_names().into_iter();
        let places = names.map(|name| place_of(&mut draft.classes, &mut classes, name.clone(), name));
        class_places.push(places.collect::<Vec<u32>>());
        let mut places = Vec::new();
        for (name, spoken) in part.scope_names() {
            let place = place_of(&mut draft.scopes, &mut scopes, name.clone(), (name, spoken));
            draft.scopes[place as usize].1 = spoken;
            places.push(place);
        }
        scope_places.push(places);
        draft
            .events
            .extend((part.head().from..part.head().to).map(|index| part.event(index)));
        draft.further.extend(part.further());
        add_runs(&mut draft.runs, part.runs());
        draft.renames.extend(part.renames());
    }
    let mut slots: Vec<u32> = sealed.replaced().collect();
    slots.sort_unstable();
    slots.extend(draft.head.first_slot..draft.head.end_slot);
    let rows: Vec<(u32, u32)> = slots.into_iter().map(|slot| sealed.place(slot)).collect();
    let row = |at: usize| {
        let (segment, row) = rows[at];
        let within = segment as usize;
        let mut row = sealed.segments()[within].row(row);
        if row.class != NO_CLASS {
            row.class = class_places[within]
                .get(row.class as usize)
                .copied()
                .unwrap_or(NO_CLASS);
            row.scope = scope_places[within].get(row.scope as usize).copied().unwrap_or(0);
        }
        if row.locator.source == Source::Inline {
            row.locator.offset += inline[within];
        }
        row
    };
    write_rows(file, &draft, (rows.len(), &row))?;
    match sealed.has_failed() {
        true => Err(io::Error::new(io::ErrorKind::InvalidData, "a segment is damaged")),
        false => Ok(()),
    }
}

/// Adds runs of consecutive seqs. One that only goes on is no new one.
pub(crate) fn add_runs(runs: &mut Vec<(u32, u64)>, more: Vec<(u32, u64)>) {
    for (index, seq) in more {
        let last = runs.last();
        if last.is_none_or(|(start, first)| first + u64::from(index - start) != seq) {
            runs.push((index, seq));
        }
    }
}

fn place_of<K: std::hash::Hash + Eq, T>(names: &mut Vec<T>, places: &mut HashMap<K, u32>, key: K, name: T) -> u32 {
    let next = names.len() as u32;
    let place = *places.entry(key).or_insert(next);
    if place == next {
        names.push(name);
    }
    place
}
