//! Writes sealed documents to a file, and opens them without reading it.
//!
//! The file is a container of sections, as those of the state. Its footer says what the documents were made of. Opening reads the
//! footer, the names of classes and the scopes; everything else is mapped, and checked when it is first read.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use bytemuck::Pod;

use super::columns::TextColumns;
use super::context::ContextColumns;
use super::sealed::{ScopeRanges, Sealed, SealedFile};
use chronolog::disk::{DiskFile, Mapping};
use chronolog::scope::{Carried, Scope};
use chronomemory_state::segment::{Column, Container, ContainerWriter, JoinedNames, SectionId};
use chronomemory_state::state::Class;

/// What the bytes for the reader begin with; the last one is the version. It also stands for how a text becomes words: a file of
/// stems that are cut otherwise today finds nothing.
const MAGIC: &[u8; 8] = b"CMTEXT\x00\x07";

/// Numbers of the sections.
mod section {
    pub const SLOTS: u32 = 1;
    pub const LENGTHS: u32 = 2;
    pub const CLASSES: u32 = 3;
    pub const CONFIDENCES: u32 = 4;
    pub const SCOPES: u32 = 5;
    pub const IDS: [u32; 2] = [6, 7];
    pub const DOCS: u32 = 8;
    pub const CLASS_NAMES: [u32; 2] = [9, 10];
    pub const SCOPE_NAMES: [u32; 2] = [11, 12];
    pub const SCOPE_ENDS: u32 = 13;
    pub const SCOPE_WORDED: u32 = 14;
    pub const SCOPE_WORDS: u32 = 15;
    pub const STEMS: [u32; 2] = [16, 17];
    pub const FIRST_RUNS: u32 = 18;
    pub const FIRST_PLACES: u32 = 19;
    pub const RUNS: u32 = 20;
    pub const PLACES: u32 = 21;
    pub const COUNTS: u32 = 22;
    pub const CONTEXT: u32 = 23;
    pub const CONTEXT_KEYS: u32 = 24;
    pub const CONTEXT_TARGETS: u32 = 25;
}

/// What sealed documents were made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The hash of the first event of the log, if records have the numbers that they have in every process.
    pub origin: Option<[u8; 32]>,
    /// How many events the log had.
    pub events: u32,
    /// The seq of the last one.
    pub seq: u64,
    /// Its hash.
    pub head: String,
    /// The record that chose the fields, if one did.
    pub choice: Option<Vec<u8>>,
}

impl Source {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.events.to_le_bytes());
        bytes.extend_from_slice(&self.seq.to_le_bytes());
        for part in [
            self.origin.as_ref().map_or(&[][..], |origin| origin),
            self.head.as_bytes(),
            self.choice.as_deref().unwrap_or_default(),
        ] {
            bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
            bytes.extend_from_slice(part);
        }
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let rest = bytes.strip_prefix(MAGIC)?;
        let (events, rest) = rest.split_first_chunk()?;
        let (seq, mut rest) = rest.split_first_chunk()?;
        let mut part = || {
            let (length, behind) = rest.split_first_chunk()?;
            let (part, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = behind;
            Some(part)
        };
        let (origin, head, choice) = (part()?, part()?, part()?);
        Some(Self {
            origin: origin.try_into().ok(),
            events: u32::from_le_bytes(*events),
            seq: u64::from_le_bytes(*seq),
            head: String::from_utf8(head.to_vec()).ok()?,
            choice: Some(choice.to_vec()).filter(|choice| !choice.is_empty()),
        })
    }
}

/// Writes documents to an empty file.
///
/// # Errors
/// What the disk says.
pub fn write(file: Arc<dyn DiskFile>, source: &Source, sealed: &Sealed) -> io::Result<()> {
    let mut out = ContainerWriter::new(file);
    let columns = &sealed.columns;
    numbers(&mut out, section::SLOTS, &columns.slots)?;
    numbers(&mut out, section::LENGTHS, &columns.lengths)?;
    numbers(&mut out, section::CLASSES, &columns.classes)?;
    numbers(&mut out, section::CONFIDENCES, &columns.confidences)?;
    numbers(&mut out, section::SCOPES, &columns.scopes)?;
    names(&mut out, section::IDS, &columns.ids)?;
    numbers(&mut out, section::DOCS, &sealed.docs)?;
    let mut kinds = JoinedNames::default();
    for class in &columns.kinds.values {
        kinds.push(&class.kind);
        kinds.push(&class.status);
        kinds.push(if class.face { b"face" } else { b"" });
    }
    names(&mut out, section::CLASS_NAMES, &kinds)?;
    let mut owners = JoinedNames::default();
    columns
        .owners
        .values
        .iter()
        .for_each(|owner| owners.push(scope_name(owner)));
    names(&mut out, section::SCOPE_NAMES, &owners)?;
    numbers(&mut out, section::SCOPE_ENDS, &sealed.ranges.ends)?;
    numbers(&mut out, section::SCOPE_WORDED, &sealed.ranges.worded)?;
    numbers(&mut out, section::SCOPE_WORDS, &sealed.ranges.words)?;
    names(&mut out, section::STEMS, &sealed.stems)?;
    numbers(&mut out, section::FIRST_RUNS, &sealed.first_runs)?;
    numbers(&mut out, section::FIRST_PLACES, &sealed.first_places)?;
    numbers(&mut out, section::RUNS, &sealed.runs)?;
    numbers(&mut out, section::PLACES, &sealed.places)?;
    numbers(&mut out, section::COUNTS, &sealed.counts)?;
    numbers(&mut out, section::CONTEXT, &columns.context.rows)?;
    numbers(&mut out, section::CONTEXT_KEYS, &columns.context.keys)?;
    numbers(&mut out, section::CONTEXT_TARGETS, &columns.context.targets)?;
    out.finish(&source.to_bytes())?;
    match sealed.has_failed() {
        true => Err(io::ErrorKind::InvalidData.into()),
        false => Ok(()),
    }
}

fn numbers<T: Pod>(out: &mut ContainerWriter, id: SectionId, column: &Column<T>) -> io::Result<()> {
    out.section(id, bytemuck::cast_slice(column.all()))
}

fn names(out: &mut ContainerWriter, [bytes, ends]: [SectionId; 2], names: &JoinedNames) -> io::Result<()> {
    numbers(out, bytes, &names.bytes)?;
    numbers(out, ends, &names.ends)
}

/// The name of what is no scope; no scope has it.
const NO_SCOPE: &[u8] = &[u8::MAX];

fn scope_name(owner: &Carried) -> &[u8] {
    match owner {
        Carried::Names(scope) => scope.key(),
        Carried::Malformed => NO_SCOPE,
    }
}

fn owner_of(name: &[u8]) -> Option<Carried> {
    match name {
        NO_SCOPE => Some(Carried::Malformed),
        key => Scope::of_key(key).map(Carried::Names),
    }
}

/// The documents of a file; `None` if it is not whole, not of this version, or its sections do not fit together.
pub fn open(bytes: Mapping) -> Option<(Source, Sealed)> {
    let file = Arc::new(Container::open(bytes, &Arc::default())?);
    let source = Source::from_bytes(file.meta())?;
    let mut columns = TextColumns {
        slots: Column::of(&file, section::SLOTS)?,
        lengths: Column::of(&file, section::LENGTHS)?,
        classes: Column::of(&file, section::CLASSES)?,
        confidences: Column::of(&file, section::CONFIDENCES)?,
        scopes: Column::of(&file, section::SCOPES)?,
        ids: JoinedNames::of(&file, section::IDS)?,
        context: ContextColumns {
            rows: Column::of(&file, section::CONTEXT)?,
            keys: Column::of(&file, section::CONTEXT_KEYS)?,
            targets: Column::of(&file, section::CONTEXT_TARGETS)?,
        },
        ..TextColumns::default()
    };
    let kinds = JoinedNames::of(&file, section::CLASS_NAMES)?;
    columns.kinds = (0..kinds.len() / 3)
        .map(|number| Class {
            kind: kinds.get(number * 3).into(),
            status: kinds.get(number * 3 + 1).into(),
            face: !kinds.get(number * 3 + 2).is_empty(),
        })
        .collect::<Vec<_>>()
        .into();
    let owners = JoinedNames::of(&file, section::SCOPE_NAMES)?;
    columns.owners = (0..owners.len())
        .map(|number| owner_of(owners.get(number)))
        .collect::<Option<Vec<_>>>()?
        .into();
    let stems = JoinedNames::of(&file, section::STEMS)?;
    let sealed = Sealed {
        columns,
        first_runs: Column::of(&file, section::FIRST_RUNS)?,
        first_places: Column::of(&file, section::FIRST_PLACES)?,
        runs: Column::of(&file, section::RUNS)?,
        places: Column::of(&file, section::PLACES)?,
        counts: Column::of(&file, section::COUNTS)?,
        ranges: ScopeRanges {
            ends: Column::of(&file, section::SCOPE_ENDS)?,
            worded: Column::of(&file, section::SCOPE_WORDED)?,
            words: Column::of(&file, section::SCOPE_WORDS)?,
        },
        docs: Column::of(&file, section::DOCS)?,
        gone: Vec::new(),
        file: Some(SealedFile {
            checked: (0..stems.len().div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            container: file,
        }),
        stems,
    };
    (fits_together(&sealed) && !sealed.has_failed()).then_some((source, sealed))
}

/// Whether all columns are as long as they should be, and scopes are in order. What they hold is checked where it is used.
fn fits_together(sealed: &Sealed) -> bool {
    let (columns, ranges, stems) = (&sealed.columns, &sealed.ranges, sealed.stems.len());
    let docs = columns.slots.len();
    let (ends, scopes) = (ranges.ends.all(), columns.owners.values.len());
    [
        columns.lengths.len(),
        columns.classes.len(),
        columns.confidences.len(),
        columns.scopes.len(),
        columns.ids.len(),
        columns.context.rows.len(),
    ]
    .iter()
    .all(|length| *length == docs)
        && [ends.len(), ranges.worded.len(), ranges.words.len()]
            .iter()
            .all(|length| *length == scopes)
        && u32::try_from(docs).is_ok()
        && ends.is_sorted()
        && ends.last().map_or(0, |end| *end as usize) == docs
        && columns.owners.values.is_sorted_by(|one, other| one < other)
        && sealed.counts.len() == sealed.places.len()
        && columns.context.targets.len() == columns.context.keys.len()
        && [sealed.first_runs.len(), sealed.first_places.len()]
            .iter()
            .all(|length| *length == stems + 1)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::words::WordSplitter;
    use super::super::{Fields, TextIndex};
    use super::*;
    use chronolog::digest::Hasher;
    use chronolog::disk::{Bytes, MemoryFile};
    use chronolog::json::Span;
    use chronomemory_state::state::Row;

    /// What the words below are cut to, in the version that `MAGIC` names.
    const STEMS: &str = "e2a5fc5ecb6883afee2cc551a5590f792dec2d25c8ce0ed1b5625eb322fe6e60";

    fn written() -> Vec<u8> {
        let class = Class {
            kind: (*b"fact").into(),
            status: (*b"active").into(),
            face: false,
        };
        let mut index = TextIndex::new(Fields::default(), Sealed::default());
        index.put(&Row {
            slot: 0,
            id_span: Span { start: 7, end: 8 },
            record: Cow::Borrowed(br#"{"id":"R","label":"added in the evening"}"#),
            class: &class,
            confidence: 1.0,
            seq: 1,
        });
        index.seal();
        let source = Source {
            origin: None,
            events: 1,
            seq: 1,
            head: String::new(),
            choice: None,
        };
        let file = Arc::new(MemoryFile::default());
        write(file.clone(), &source, index.sealed()).expect("written");
        file.contents()
    }

    #[test]
    fn a_file_of_another_version_is_no_file() {
        let bytes = written();
        let opened = |bytes: &[u8]| open(Bytes(bytes.to_vec()).map(u64::MAX).expect("memory")).is_some();
        assert!(opened(&bytes));
        assert!(Source::from_bytes(MAGIC).is_none());
        let source = Source {
            origin: Some([7; 32]),
            events: 3,
            seq: 9,
            head: "ab".to_owned(),
            choice: Some(b"{}".to_vec()),
        };
        let mut meta = source.to_bytes();
        assert_eq!(Source::from_bytes(&meta), Some(source));
        for version in [MAGIC[7] - 1, MAGIC[7] + 1] {
            meta[7] = version;
            assert_eq!(Source::from_bytes(&meta), None, "version {version}");
        }
    }

    #[test]
    fn a_version_stands_for_one_way_to_cut_words() {
        let beginnings =
            "add organ univers even run hop happi fl tr inter communic gener past relat nation agre ski d li"
                .split(' ');
        let endings = " s ed ing er ation ational ization ize iveness fulness ousli ness ity al ally es ies y ying ied eed eedly ement".split(' ');
        let words = WordSplitter::default();
        let mut hasher = Hasher::default();
        for word in beginnings.flat_map(|beginning| endings.clone().map(move |ending| format!("{beginning}{ending}"))) {
            hasher.update(words.stem(&word).as_bytes());
            hasher.update(b" ");
        }
        assert_eq!(
            hasher.finish().text(),
            STEMS,
            "words are cut otherwise than before: give the file a new version, and this its new digest"
        );
    }
}
