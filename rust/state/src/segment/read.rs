//! Reads segments: the rows of one, and the newest row of a slot among all.

use std::borrow::Cow;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::first_in;
use chronolog::disk::{DiskFile, Mapping};
use chronolog::event::salt;
use chronolog::json::{self, Span};
use hashbrown::HashMap;
use roaring::RoaringBitmap;

use super::build::{ClassName, EventRow, Head, ScopeName, SegmentRow};
use super::container::Container;
use super::window::{self, FileNumber};
use super::{LOCATOR_BYTES, Locator, NEVER, Source, check_of, id_hash, ids, section};

const EVENT_BYTES: usize = 16;
const FURTHER_BYTES: usize = 12;

/// One segment.
#[derive(Debug)]
pub struct Segment {
    file: Container,
    head: Head,
    rows: u32,
    replaced: u32,
    /// Whether its file has a name, so that other processes find it.
    pub is_named: bool,
    /// Where each section lies, by its number.
    sections: [Range<usize>; section::COUNT],
    /// Its key file, once it was opened.
    pub(crate) keys: Mutex<Option<Arc<Container>>>,
}

impl Segment {
    /// Opens a segment; `None` if it is none that this version reads. A failed check sets `failed` later.
    pub fn open(bytes: Mapping, failed: &Arc<AtomicBool>) -> Option<Self> {
        let file = Container::open(bytes, failed)?;
        let head = Head::from_bytes(file.meta())?;
        let count = |id: u32, width: usize| {
            let length = file.section(id).len();
            length.is_multiple_of(width).then_some(length / width)
        };
        let rows = count(section::LOCATORS, LOCATOR_BYTES)?;
        let replaced = count(section::ORDINALS, 4)?;
        let widths = [
            (section::IDS, 8),
            (section::HASHES, 8),
            (section::CLASSES, 4),
            (section::SCOPES, 4),
            (section::CONFIDENCES, 8),
            (section::MOMENTS, 32),
            (section::LAST_EVENTS, 4),
        ];
        let is_whole = widths.iter().all(|(id, width)| count(*id, *width) == Some(rows));
        let fresh = head.end_slot.checked_sub(head.first_slot)? as usize;
        let events = head.to.checked_sub(head.from)? as usize;
        let expiries = file.section(section::EXPIRIES);
        if !is_whole
            || rows != replaced + fresh
            || count(section::EVENTS, EVENT_BYTES)? != events
            || !(expiries.is_empty() || expiries.len() == rows * 8)
        {
            return None;
        }
        Some(Self {
            rows: u32::try_from(rows).ok()?,
            replaced: u32::try_from(replaced).ok()?,
            is_named: true,
            sections: std::array::from_fn(|id| file.section(id as u32)),
            file,
            head,
            keys: Mutex::default(),
        })
    }

    /// What it says about itself.
    pub fn head(&self) -> &Head {
        &self.head
    }

    pub(crate) fn fail(&self) {
        self.file.fail();
    }

    /// How many rows it has.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many of its rows replace one of an earlier segment. They come first.
    pub fn replaced(&self) -> usize {
        self.replaced as usize
    }

    #[inline]
    fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let bytes = self.file.bytes(at..at + N).and_then(|bytes| bytes.try_into().ok());
        bytes.unwrap_or([0; N])
    }

    #[inline]
    fn start(&self, id: u32) -> usize {
        self.sections[id as usize].start
    }

    #[inline]
    fn word(&self, id: u32, at: u32) -> u32 {
        u32::from_le_bytes(self.array(self.start(id) + at as usize * 4))
    }

    #[inline]
    fn long(&self, id: u32, at: u32) -> u64 {
        u64::from_le_bytes(self.array(self.start(id) + at as usize * 8))
    }

    /// The slot of a row.
    #[inline]
    pub fn ordinal(&self, row: u32) -> u32 {
        match row.checked_sub(self.replaced) {
            Some(fresh) => self.head.first_slot + fresh,
            None => self.word(section::ORDINALS, row),
        }
    }

    /// One of its rows.
    pub fn row(&self, row: u32) -> SegmentRow {
        let moments: [u8; 32] = self.array(self.start(section::MOMENTS) + row as usize * 32);
        let moment = |at: usize| i64::from_le_bytes(std::array::from_fn(|byte| moments[at * 8 + byte]));
        SegmentRow {
            ordinal: self.ordinal(row),
            locator: self.locator(row),
            id: self.id_span(row),
            id_hash: self.long(section::HASHES, row),
            class: self.word(section::CLASSES, row),
            scope: self.word(section::SCOPES, row),
            confidence: f64::from_bits(self.long(section::CONFIDENCES, row)),
            moments: [moment(0), moment(1), moment(2), moment(3)],
            last_event: self.word(section::LAST_EVENTS, row),
            expires: self.expires(row),
        }
    }

    /// The hash of the id of a row.
    pub fn id_hash(&self, row: u32) -> u64 {
        self.long(section::HASHES, row)
    }

    /// The class of a row, by its place in the names of the segment.
    pub fn class(&self, row: u32) -> u32 {
        self.word(section::CLASSES, row)
    }

    /// The scope of a row, by its place in the names of the segment.
    pub fn scope(&self, row: u32) -> u32 {
        self.word(section::SCOPES, row)
    }

    /// The confidence of a row.
    pub fn confidence(&self, row: u32) -> f64 {
        f64::from_bits(self.long(section::CONFIDENCES, row))
    }

    fn locator(&self, row: u32) -> Locator {
        Locator::from_bytes(self.array(self.start(section::LOCATORS) + row as usize * LOCATOR_BYTES))
    }

    /// Where the id of a row is in its record.
    pub fn id_span(&self, row: u32) -> Span {
        let id = self.long(section::IDS, row);
        Span {
            start: id as u32,
            end: (id >> 32) as u32,
        }
    }

    /// When a row expires, or `NEVER`.
    pub fn expires(&self, row: u32) -> i64 {
        match self.sections[section::EXPIRIES as usize].is_empty() {
            true => NEVER,
            false => self.long(section::EXPIRIES, row) as i64,
        }
    }

    /// One of its events, by its index in the log.
    #[inline]
    pub fn event(&self, index: u32) -> EventRow {
        let at = self.start(section::EVENTS) + (index - self.head.from) as usize * EVENT_BYTES;
        let bytes: [u8; EVENT_BYTES] = self.array(at);
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]));
        EventRow {
            offset: u64::from_le_bytes(std::array::from_fn(|byte| bytes[byte])),
            slot: word(8),
            earlier: word(12),
        }
    }

    /// The records of events about several: event, slot, and the event before it about that record.
    pub fn further(&self) -> impl Iterator<Item = [u32; 3]> + '_ {
        (0..self.further_len()).map(|at| self.further_at(at))
    }

    fn further_len(&self) -> u32 {
        (self.sections[section::FURTHER as usize].len() / FURTHER_BYTES) as u32
    }

    fn further_at(&self, at: u32) -> [u32; 3] {
        let bytes: [u8; FURTHER_BYTES] = self.array(self.start(section::FURTHER) + at as usize * FURTHER_BYTES);
        std::array::from_fn(|part| u32::from_le_bytes(std::array::from_fn(|byte| bytes[part * 4 + byte])))
    }

    /// The records of one event about several.
    pub fn further_of(&self, index: u32) -> impl Iterator<Item = [u32; 3]> + '_ {
        let all = 0..self.further_len();
        let first = first_in(all.clone(), |at| self.further_at(at)[0] < index);
        let rest = (first..all.end).map(|at| self.further_at(at));
        rest.take_while(move |[event, ..]| *event == index)
    }

    fn numbers(&self, id: u32) -> Vec<u64> {
        let bytes = self.file.bytes(self.file.section(id)).unwrap_or_default();
        let number = |bytes: &[u8]| bytes.try_into().map_or(0, u64::from_le_bytes);
        bytes.chunks_exact(8).map(number).collect()
    }

    /// Runs of consecutive seqs: index of the first event and its seq.
    pub fn runs(&self) -> Vec<(u32, u64)> {
        let numbers = self.numbers(section::RUNS);
        numbers.chunks_exact(2).map(|run| (run[0] as u32, run[1])).collect()
    }

    /// Slots of mere mentions whose id got another slot: old and new.
    pub fn renames(&self) -> Vec<[u32; 2]> {
        let numbers = self.numbers(section::RENAMES).into_iter();
        numbers.map(|both| [both as u32, (both >> 32) as u32]).collect()
    }

    /// What expires after a moment and not after another, as moment and slot, in order.
    pub fn due(&self, from: i64, until: i64) -> Vec<(i64, u32)> {
        let count = (self.sections[section::EXPIRY_KEYS as usize].len() / 16) as u32;
        let moment = |at: u32| self.long(section::EXPIRY_KEYS, 2 * at) as i64;
        let first_behind = |limit: i64| first_in(0..count, |at| moment(at) <= limit);
        let slot = |at: u32| self.long(section::EXPIRY_KEYS, 2 * at + 1) as u32;
        let due = first_behind(from)..first_behind(until);
        due.map(|at| (moment(at), slot(at))).collect()
    }

    /// Whether anything in it expires.
    pub fn has_expiries(&self) -> bool {
        !self.sections[section::EXPIRIES as usize].is_empty()
    }

    /// The bytes of its inline records.
    pub fn inline(&self) -> &[u8] {
        self.file.bytes(self.file.section(section::INLINE)).unwrap_or_default()
    }

    fn inline_at(&self, offset: u64, length: usize) -> Option<&[u8]> {
        let all = self.file.section(section::INLINE);
        let start = all.start.checked_add(usize::try_from(offset).ok()?)?;
        let end = start.checked_add(length).filter(|end| *end <= all.end)?;
        self.file.bytes(start..end)
    }

    /// The classes of its rows.
    pub fn class_names(&self) -> Vec<ClassName> {
        let mut texts = Texts::of(self, section::CLASS_NAMES);
        let mut names = Vec::new();
        while let Some(kind) = texts.text() {
            let (Some(status), Some(face)) = (texts.text(), texts.take(1)) else {
                self.file.fail();
                break;
            };
            names.push((kind.to_vec(), status.to_vec(), face != [0]));
        }
        names
    }

    /// The scopes of its rows.
    pub fn scope_names(&self) -> Vec<ScopeName> {
        let mut texts = Texts::of(self, section::SCOPE_NAMES);
        let mut names = Vec::new();
        while let Some(name) = texts.text() {
            let number = |bytes: &[u8]| bytes.try_into().map_or(0, i64::from_le_bytes);
            let (Some(seq), Some(micros)) = (texts.take(8).map(number), texts.take(8).map(number)) else {
                self.file.fail();
                break;
            };
            names.push((name.to_vec(), [seq, micros]));
        }
        names
    }

    /// The slots of each class that have a row here.
    pub fn class_sets(&self) -> Vec<RoaringBitmap> {
        self.sets(section::CLASS_SETS)
    }

    /// The slots of each scope that have a row here.
    pub fn scope_sets(&self) -> Vec<RoaringBitmap> {
        self.sets(section::SCOPE_SETS)
    }

    fn sets(&self, id: u32) -> Vec<RoaringBitmap> {
        let mut texts = Texts::of(self, id);
        let mut sets = Vec::new();
        while let Some(bytes) = texts.text() {
            let set = RoaringBitmap::deserialize_from(bytes);
            sets.push(set.unwrap_or_else(|_| {
                self.file.fail();
                RoaringBitmap::new()
            }));
        }
        sets
    }

    /// Calls `visit` with every row whose id may have this hash, until it returns true.
    fn find(&self, hash: u64, mut visit: impl FnMut(u32) -> bool) {
        let table = self.sections[section::ID_TABLE as usize].clone();
        let bucket = |range: Range<usize>| self.file.bytes(table.start + range.start..table.start + range.end);
        ids::find(hash, ids::bucket_count(table.len()), bucket, |row| {
            row < self.rows && self.long(section::HASHES, row) == hash && visit(row)
        });
    }
}

/// Texts with their lengths before them, one behind the other.
struct Texts<'a>(&'a [u8], &'a Segment);

impl<'a> Texts<'a> {
    fn of(segment: &'a Segment, id: u32) -> Self {
        Self(
            segment.file.bytes(segment.file.section(id)).unwrap_or_default(),
            segment,
        )
    }

    fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn text(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let length = self.take(4).map(|bytes| bytes.try_into().map_or(0, u32::from_le_bytes));
        let text = length.and_then(|length| self.take(length as usize));
        if text.is_none() {
            self.1.file.fail();
        }
        text
    }
}

/// Where the key files of segments are kept.
pub trait KeyFolder: Send + Sync {
    /// The file of a segment, if there is one.
    fn open(&self, head: &Head) -> Option<Mapping>;
    /// Lets a file be written and gives it its name; false if it cannot be kept.
    ///
    /// # Errors
    /// `Io` if the disk refuses, and the errors of `write`.
    fn write(&self, head: &Head, write: &dyn Fn(Arc<dyn DiskFile>) -> io::Result<()>) -> io::Result<bool>;
}

/// The files that hold canonical bytes.
#[derive(Clone)]
pub struct Sources {
    log: Arc<dyn DiskFile>,
    base: Option<Arc<dyn DiskFile>>,
    numbers: [FileNumber; 2],
    folder: Arc<OnceLock<Arc<dyn KeyFolder>>>,
}

impl Sources {
    /// The live log, and the base if the log has one.
    pub fn new(log: Arc<dyn DiskFile>, base: Option<Arc<dyn DiskFile>>) -> Self {
        let numbers = [FileNumber::new(), FileNumber::new()];
        Self {
            log,
            base,
            numbers,
            folder: Arc::default(),
        }
    }

    /// Sets where key files are kept; without it they are made in memory.
    pub fn keep_keys(&self, folder: Arc<dyn KeyFolder>) {
        let _ = self.folder.set(folder);
    }

    /// The live log.
    pub fn log(&self) -> &dyn DiskFile {
        &*self.log
    }

    /// The base.
    pub fn base(&self) -> Option<&Arc<dyn DiskFile>> {
        self.base.as_ref()
    }
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sources")
    }
}

/// Segments that follow each other from the beginning of a log.
#[derive(Debug)]
pub struct Sealed {
    segments: Vec<Arc<Segment>>,
    sources: Sources,
    /// Slots whose newest row is in another segment than their first one.
    moved: HashMap<u32, (u32, u32)>,
    seed: u64,
    failed: Arc<AtomicBool>,
}

impl Sealed {
    /// These segments, which follow each other. `failed` is the mark that they set.
    pub fn of(segments: Vec<Arc<Segment>>, sources: Sources, failed: Arc<AtomicBool>) -> Self {
        let mut moved = HashMap::new();
        for (number, segment) in (0..).zip(&segments) {
            moved.extend((0..segment.replaced).map(|row| (segment.ordinal(row), (number, row))));
        }
        let seed = segments.first().map_or(0, |first| first.head.seed);
        Self {
            segments,
            sources,
            moved,
            seed,
            failed,
        }
    }

    /// Whether any record expires.
    pub fn has_expiries(&self) -> bool {
        self.segments.iter().any(|segment| segment.has_expiries())
    }

    /// The segments, the oldest first.
    pub fn segments(&self) -> &[Arc<Segment>] {
        &self.segments
    }

    /// How many of them, from the first on, are in files that other processes find.
    pub fn named_len(&self) -> usize {
        self.segments.iter().take_while(|segment| segment.is_named).count()
    }

    /// Some neighbours of them; `None` if these are none.
    pub fn part(&self, which: Range<usize>) -> Option<Self> {
        let segments = self.segments.get(which).filter(|segments| !segments.is_empty())?;
        Some(Self::of(
            segments.to_vec(),
            self.sources.clone(),
            Arc::clone(&self.failed),
        ))
    }

    /// The seed of the hashes of ids.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// The files that hold canonical bytes.
    pub fn sources(&self) -> &Sources {
        &self.sources
    }

    pub(crate) fn folder(&self) -> Option<&dyn KeyFolder> {
        self.sources.folder.get().map(|folder| &**folder)
    }

    /// The mark that a failed check sets.
    pub fn mark(&self) -> &Arc<AtomicBool> {
        &self.failed
    }

    /// Whether a check failed: nothing that was read is to be used then.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// What the last segment says about itself.
    pub fn head(&self) -> Option<&Head> {
        self.segments.last().map(|last| &last.head)
    }

    /// What a segment that takes the place of some neighbours says about itself.
    pub fn merged_head(&self, which: Range<usize>) -> Option<Head> {
        let segments = self.segments.get(which)?;
        let first = &segments.first()?.head;
        Some(Head {
            from: first.from,
            first_slot: first.first_slot,
            ..segments.last()?.head.clone()
        })
    }

    /// The slots of earlier segments that have a row in these, in no order.
    pub(super) fn replaced(&self) -> impl Iterator<Item = u32> {
        let start = self.segments.first().map_or(0, |first| first.head.first_slot);
        self.moved.keys().copied().filter(move |slot| *slot < start)
    }

    /// Whether a slot has rows in several of them.
    pub fn has_replaced(&self) -> bool {
        !self.moved.is_empty()
    }

    /// How many slots have a row.
    pub fn slots(&self) -> u32 {
        self.head().map_or(0, |head| head.end_slot)
    }

    /// How many events are covered.
    pub fn events(&self) -> u32 {
        self.head().map_or(0, |head| head.to)
    }

    /// Segment and place of the newest row of a slot.
    #[inline]
    pub fn place(&self, slot: u32) -> (u32, u32) {
        if let Some(place) = self.moved.get(&slot) {
            return *place;
        }
        let number = self.segments.partition_point(|segment| segment.head.end_slot <= slot);
        let row = self
            .segments
            .get(number)
            .map_or(0, |segment| segment.replaced + slot - segment.head.first_slot);
        (number as u32, row)
    }

    /// The hash of the id of a slot.
    pub fn id_hash_of(&self, slot: u32) -> u64 {
        let (number, row) = self.place(slot);
        self.segments[number as usize].id_hash(row)
    }

    /// The event of the log with this index.
    pub fn event(&self, index: u32) -> EventRow {
        self.segment_of_event(index).event(index)
    }

    /// The segment that has an event.
    pub fn segment_of_event(&self, index: u32) -> &Segment {
        let number = self.segments.partition_point(|segment| segment.head.to <= index);
        &self.segments[number]
    }

    /// The hash of an id as it stands between quotes in canonical JSON.
    pub fn hash(&self, id: &[u8]) -> u64 {
        id_hash(id, self.seed)
    }

    /// Calls `visit` with every slot whose id may be this one, until it returns true.
    pub fn find(&self, id: &[u8], mut visit: impl FnMut(u32) -> bool) {
        let hash = self.hash(id);
        let mut is_found = false;
        for segment in self.segments.iter().rev().filter(|segment| !segment.is_empty()) {
            segment.find(hash, |row| {
                is_found = !segment.locator(row).is_gone && visit(segment.ordinal(row));
                is_found
            });
            if is_found {
                return;
            }
        }
    }

    /// The canonical bytes of the record of a row, as [`Sealed::read`].
    pub fn read_row(&self, segment: u32, row: u32) -> Option<Vec<u8>> {
        let locator = self.segments.get(segment as usize)?.locator(row);
        self.read(segment, locator)
    }

    /// The canonical bytes of a record; nothing if they cannot be read or are not those that were sealed.
    pub fn read(&self, segment: u32, locator: Locator) -> Option<Vec<u8>> {
        let bytes = self.read_checked(segment, locator);
        if bytes.is_none() {
            self.failed.store(true, Ordering::Relaxed);
        }
        bytes
    }

    fn read_checked(&self, segment: u32, locator: Locator) -> Option<Vec<u8>> {
        let length = locator.length as usize;
        let sources = &self.sources;
        let file = match locator.source {
            Source::Log => (sources.numbers[0], sources.log()),
            Source::Base => (sources.numbers[1], &**sources.base()?),
            Source::Inline => {
                let bytes = self.segments.get(segment as usize)?.inline_at(locator.offset, length)?;
                return (check_of(bytes) == locator.check).then(|| bytes.to_vec());
            }
        };
        if length > json::MAX_LINE_BYTES {
            return None;
        }
        let take = |bytes: &[u8]| {
            let record = match locator.is_salted {
                true => salt::without(bytes),
                false => Cow::Borrowed(bytes),
            };
            let is_whole = bytes.len() == length && check_of(&record) == locator.check;
            is_whole.then(|| record.into_owned())
        };
        let found = window::read(file, locator.offset, length, take).ok()?;
        found.or_else(|| {
            // What this thread read before may have been an interrupted write that others replaced since.
            window::forget();
            window::read(file, locator.offset, length, take).ok()?
        })
    }
}

/// The seed of the hashes of ids, from the hash of an event.
pub fn seed_of(hash: &[u8; 32]) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|at| hash[at]))
}
