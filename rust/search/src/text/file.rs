//! Spells sealed documents as a file, and reads them back.
//!
//! In one file: what it was made of (seq and head of the log, and the choice of fields), the columns and lists as arrays of
//! little-endian numbers, and the SHA-256 of all that. A file that is not whole, or not of this version, is no file.

use super::columns::{JoinedNames, TextColumns};
use super::lists::{ListRun, SPAN_DOCS};
use super::sealed::Sealed;
use chronolog::digest::{Hex, sha256};
use chronolog::scope::{Carried, Scope};
use chronomemory_state::state::Class;

/// The first bytes; the last one is the version. It also stands for how a text becomes words: a file of stems that nobody would
/// cut today finds nothing.
const MAGIC: &[u8; 8] = b"CMTEXT\x00\x05";
const DIGEST_BYTES: usize = 32;

/// What sealed documents were made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// The last event.
    pub seq: u64,
    /// Its hash.
    pub head: String,
    /// The record that chose the fields, if one did.
    pub choice: Option<Vec<u8>>,
}

/// The bytes of a file.
pub fn spell(source: &Source, sealed: &Sealed) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    let columns = &sealed.columns;
    numbers(&mut out, [source.seq], u64::to_le_bytes);
    bytes(&mut out, source.head.as_bytes());
    bytes(&mut out, source.choice.as_deref().unwrap_or_default());
    numbers(&mut out, columns.slots.iter().copied(), u32::to_le_bytes);
    numbers(&mut out, columns.lengths.iter().copied(), u32::to_le_bytes);
    numbers(&mut out, columns.classes.iter().copied(), u32::to_le_bytes);
    numbers(&mut out, columns.confidences.iter().copied(), f64::to_le_bytes);
    numbers(&mut out, columns.seqs.iter().copied(), u64::to_le_bytes);
    numbers(&mut out, columns.times.iter().copied(), i64::to_le_bytes);
    names(&mut out, &columns.ids);
    let mut kinds = JoinedNames::default();
    for class in &columns.kinds {
        kinds.push(&class.kind);
        kinds.push(&class.status);
        kinds.push(if class.face { b"face" } else { b"" });
    }
    names(&mut out, &kinds);
    numbers(&mut out, columns.scopes.iter().copied(), u32::to_le_bytes);
    let mut owners = JoinedNames::default();
    columns
        .owners
        .iter()
        .for_each(|owner| owners.push(spelled_owner(owner)));
    names(&mut out, &owners);
    names(&mut out, &sealed.stems);
    numbers(&mut out, sealed.first_runs.iter().copied(), u32::to_le_bytes);
    numbers(&mut out, sealed.first_places.iter().copied(), u32::to_le_bytes);
    let runs = sealed
        .runs
        .iter()
        .flat_map(|run| [run.span, run.start, run.most, run.shortest]);
    let runs: Vec<u32> = runs.collect();
    numbers(&mut out, runs, u32::to_le_bytes);
    numbers(&mut out, sealed.places.iter().copied(), u16::to_le_bytes);
    numbers(&mut out, sealed.counts.iter().copied(), u16::to_le_bytes);
    let digest = sha256(&out).raw();
    out.extend_from_slice(&digest);
    out
}

/// Whose a document is, in a file; no scope is spelled like what is none.
const NO_SCOPE: &[u8] = &[u8::MAX];

fn spelled_owner(owner: &Carried) -> &[u8] {
    match owner {
        Carried::Names(scope) => scope.key(),
        Carried::Malformed => NO_SCOPE,
    }
}

fn owner_of(spelled: &[u8]) -> Option<Carried> {
    match spelled {
        NO_SCOPE => Some(Carried::Malformed),
        key => Scope::of_key(key).map(Carried::Names),
    }
}

fn numbers<T, const N: usize>(
    out: &mut Vec<u8>,
    values: impl IntoIterator<Item = T, IntoIter: ExactSizeIterator>,
    spell: impl Fn(T) -> [u8; N],
) {
    let values = values.into_iter();
    out.extend_from_slice(&(values.len() as u64).to_le_bytes());
    out.reserve(values.len() * N);
    values.for_each(|value| out.extend_from_slice(&spell(value)));
}

fn bytes(out: &mut Vec<u8>, text: &[u8]) {
    out.extend_from_slice(&(text.len() as u64).to_le_bytes());
    out.extend_from_slice(text);
}

fn names(out: &mut Vec<u8>, names: &JoinedNames) {
    bytes(out, &names.bytes);
    numbers(out, names.ends.iter().copied(), u32::to_le_bytes);
}

/// What a file holds; `None` if it is not whole, not of this version, or does not hold together.
pub fn read(file: &[u8]) -> Option<(Source, Sealed)> {
    let (text, digest) = file.split_at_checked(file.len().checked_sub(DIGEST_BYTES)?)?;
    let digest = Hex::spell(digest.try_into().ok()?);
    let mut rest = text.strip_prefix(MAGIC)?;
    if sha256(text) != digest {
        return None;
    }
    let rest = &mut rest;
    let seq = *take(rest, u64::from_le_bytes)?.first()?;
    let head = String::from_utf8(take_bytes(rest)?.to_vec()).ok()?;
    let choice = Some(take_bytes(rest)?.to_vec()).filter(|choice| !choice.is_empty());
    let mut columns = TextColumns {
        slots: take(rest, u32::from_le_bytes)?,
        lengths: take(rest, u32::from_le_bytes)?,
        classes: take(rest, u32::from_le_bytes)?,
        confidences: take(rest, f64::from_le_bytes)?,
        seqs: take(rest, u64::from_le_bytes)?,
        times: take(rest, i64::from_le_bytes)?,
        ids: take_names(rest)?,
        ..TextColumns::default()
    };
    let kinds = take_names(rest)?;
    for number in 0..kinds.len() / 3 {
        columns.name_class(Class {
            kind: kinds.get(number * 3).into(),
            status: kinds.get(number * 3 + 1).into(),
            face: !kinds.get(number * 3 + 2).is_empty(),
        });
    }
    columns.scopes = take(rest, u32::from_le_bytes)?;
    let owners = take_names(rest)?;
    for number in 0..owners.len() {
        columns.name_owner(owner_of(owners.get(number))?);
    }
    let sealed = Sealed {
        columns,
        stems: take_names(rest)?,
        first_runs: take(rest, u32::from_le_bytes)?,
        first_places: take(rest, u32::from_le_bytes)?,
        runs: take_runs(rest)?,
        places: take(rest, u16::from_le_bytes)?,
        counts: take(rest, u16::from_le_bytes)?,
    };
    (rest.is_empty() && holds_together(&sealed)).then_some((Source { seq, head, choice }, sealed))
}

fn take_bytes<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (text, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(text)
}

fn take<T, const N: usize>(rest: &mut &[u8], read: impl Fn([u8; N]) -> T) -> Option<Vec<T>> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?.checked_mul(N)?;
    let (text, after) = after.split_at_checked(length)?;
    *rest = after;
    Some(text.as_chunks::<N>().0.iter().map(|&chunk| read(chunk)).collect())
}

fn take_names(rest: &mut &[u8]) -> Option<JoinedNames> {
    let bytes = take_bytes(rest)?.to_vec();
    let ends = take(rest, u32::from_le_bytes)?;
    let whole = ends.is_sorted() && ends.last().map_or(0, |&end| end as usize) == bytes.len();
    whole.then_some(JoinedNames { bytes, ends })
}

fn take_runs(rest: &mut &[u8]) -> Option<Vec<ListRun>> {
    let flat = take(rest, u32::from_le_bytes)?;
    let (fours, left) = flat.as_chunks::<4>();
    let run = |&[span, start, most, shortest]: &[u32; 4]| ListRun {
        span,
        start,
        most,
        shortest,
    };
    left.is_empty().then(|| fours.iter().map(run).collect())
}

/// Whether every number in it that leads elsewhere leads to something: nobody checks again later.
fn holds_together(sealed: &Sealed) -> bool {
    let columns = &sealed.columns;
    let docs = columns.slots.len();
    let lengths = [
        columns.lengths.len(),
        columns.classes.len(),
        columns.confidences.len(),
        columns.seqs.len(),
        columns.times.len(),
        columns.scopes.len(),
        columns.ids.len(),
    ];
    let stems = sealed.stems.len();
    lengths.iter().all(|&length| length == docs)
        && columns
            .classes
            .iter()
            .all(|&class| (class as usize) < columns.kinds.len())
        && columns.owners.is_sorted_by(|one, other| one < other)
        && columns.scopes.is_sorted()
        && columns
            .scopes
            .last()
            .is_none_or(|&last| (last as usize) < columns.owners.len())
        && sealed.counts.len() == sealed.places.len()
        && are_cuts(&sealed.first_runs, stems, sealed.runs.len())
        && are_cuts(&sealed.first_places, stems, sealed.places.len())
        && (1..stems).all(|at| sealed.stems.get(at - 1) < sealed.stems.get(at))
        && (0..stems).all(|at| is_list(sealed, at, docs))
}

fn are_cuts(cuts: &[u32], pieces: usize, total: usize) -> bool {
    cuts.len() == pieces + 1
        && cuts.is_sorted()
        && cuts.first() == Some(&0)
        && cuts.last().is_some_and(|&end| end as usize == total)
}

fn is_list(sealed: &Sealed, at: usize, docs: usize) -> bool {
    let list = sealed.list_at(at);
    let starts = list.runs.iter().map(|run| run.start as usize);
    let ends = starts.clone().skip(1).chain([list.places.len()]);
    list.runs.first().map_or(list.places.is_empty(), |run| run.start == 0)
        && list.runs.is_sorted_by(|one, other| one.span < other.span)
        && list.runs.iter().zip(starts.zip(ends)).all(|(run, (start, end))| {
            let first = run.span as usize * SPAN_DOCS;
            let places = list.places.get(start..end).unwrap_or_default();
            let last = places.last().map_or(docs, |&place| first + usize::from(place));
            last < docs && usize::from(places[places.len() - 1]) < SPAN_DOCS && places.is_sorted_by(|a, b| a < b)
        })
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::super::words::WordSplitter;
    use super::super::{Fields, TextIndex};
    use super::*;
    use chronolog::digest::Hasher;
    use chronolog::json::Span;
    use chronomemory_state::state::Row;

    /// What the words below are cut to, in the version that `MAGIC` names.
    const STEMS: &str = "e2a5fc5ecb6883afee2cc551a5590f792dec2d25c8ce0ed1b5625eb322fe6e60";

    fn spelled() -> Vec<u8> {
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
            seq: 1,
            head: String::new(),
            choice: None,
        };
        spell(&source, index.sealed())
    }

    #[test]
    fn a_file_of_another_version_is_no_file() {
        let mut file = spelled();
        assert!(read(&file).is_some());
        for version in [MAGIC[7] - 1, MAGIC[7] + 1] {
            file.truncate(file.len() - DIGEST_BYTES);
            file[7] = version;
            let digest = sha256(&file).raw();
            file.extend_from_slice(&digest);
            assert!(read(&file).is_none(), "version {version}");
        }
    }

    #[test]
    fn a_version_stands_for_one_way_to_cut_words() {
        let beginnings =
            "add organ univers even run hop happi fl tr inter communic gener past relat nation agre ski d li"
                .split(' ');
        let endings = " s ed ing er ation ational ization ize iveness fulness ousli ness ity al ally es ies y ying ied eed eedly ement".split(' ');
        let mut words = WordSplitter::default();
        let mut hasher = Hasher::default();
        for word in beginnings.flat_map(|beginning| endings.clone().map(move |ending| format!("{beginning}{ending}"))) {
            for stem in words.stems(&word) {
                hasher.update(stem.as_bytes());
                hasher.update(b" ");
            }
        }
        assert_eq!(
            hasher.finish().text(),
            STEMS,
            "words are cut otherwise than before: give the file a new version, and this its new digest"
        );
    }
}
