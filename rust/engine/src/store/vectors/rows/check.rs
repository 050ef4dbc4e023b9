//! Checks that rows are those that the log names.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::codes::{CodesFile, FILE_CHUNKS, FILE_ROWS};
use crate::store::vectors::records::format::{
    self, Bound, RowGroup, VectorRecord, generation_in, group_row, read, shown,
};
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk, Spaces, implied};
use chronolog::damage::{Damage, DamageKind};
use chronolog::digest::{sha256, sha256_each};
use chronolog::disk::{Disk, DiskFile, Mapping, open_if_there};
use chronolog::error::{At, Result};
use chronolog::event::faces::VECTORS;
use chronolog::layout::{Layout, index_name, rows_name};
use chronolog::ordered::in_order;
use chronolog::verify::finding;
use chronomemory_search::vector::codes::GROUP_ROWS;
use chronomemory_search::vector::team::together;
use chronomemory_search::vector::{Cpu, MemoryPart, VectorRows};
use chronomemory_state::state::State;

/// How many rows of a space are reported one by one.
const MOST_FINDINGS: usize = 100;

/// ELOOP, where we can be.
const TOO_MANY_LINKS: i32 = if cfg!(target_os = "linux") { 40 } else { 62 };

/// What was found in the files of rows.
#[derive(Default)]
pub struct RowFindings {
    /// What is wrong.
    pub damage: Vec<Damage>,
    /// What is worth knowing.
    pub notes: Vec<String>,
}

/// Whether a row has the digest that the log names; one that the file does not hold has not.
pub fn is_row(rows: &[u8], row: u32, bound: &Bound, digest: &[u8; 32]) -> bool {
    row_bytes(rows, row, bound).is_some_and(|bytes| sha256(bytes).raw() == *digest)
}

/// The bytes of a row, if the file holds them.
pub fn row_bytes<'a>(rows: &'a [u8], row: u32, bound: &Bound) -> Option<&'a [u8]> {
    let stride = usize::try_from(bound.stride()).ok()?;
    let start = (row as usize).checked_mul(stride)?;
    rows.get(start..start.checked_add(stride)?)
}

/// The rows of a group that are not what the log says, those aside that were taken back.
pub fn bad_rows(disk: &dyn Disk, layout: &Layout, bound: &Bound, group: &RowGroup<'_>) -> Result<Vec<u32>> {
    let path = layout.rows(&bound.name, bound.generation);
    let end = (u64::from(group.row) + group.ids.len() as u64) * bound.stride();
    let rows = map_rows(disk, layout, bound, end).at(&path)?;
    Ok(bad_among(rows.bytes(), bound, group))
}

fn bad_among(rows: &[u8], bound: &Bound, group: &RowGroup<'_>) -> Vec<u32> {
    (group.row..)
        .zip(are_rows(rows, group.row, bound, &group.digests))
        .filter(|(row, is_right)| !is_right && !group.gone.contains(row))
        .map(|(row, _)| row)
        .collect()
}

/// Which of the rows from `first` on have the digests that the log names.
pub fn are_rows(rows: &[u8], first: u32, bound: &Bound, digests: &[[u8; 32]]) -> Vec<bool> {
    let stride = 4 * bound.dim;
    let rest = rows.get(first as usize * stride..).unwrap_or_default();
    let there = (rest.len() / stride).min(digests.len());
    let mut found = Vec::with_capacity(there);
    sha256_each(&rest[..there * stride], stride, &mut found);
    (0..)
        .zip(digests)
        .map(|(at, digest)| found.get(at) == Some(digest))
        .collect()
}

/// The rows of a space, as far as the file goes; no rows if there is none.
pub fn map_rows(disk: &dyn Disk, layout: &Layout, bound: &Bound, bytes: u64) -> io::Result<Mapping> {
    open_rows(disk, layout, bound)?.map_or_else(|| Ok(Mapping::nothing()), |file| file.map(bytes))
}

/// The file of a space's rows, to be read; `None` if there is none.
pub fn open_rows(disk: &dyn Disk, layout: &Layout, bound: &Bound) -> io::Result<Option<Arc<dyn DiskFile>>> {
    open_if_there(disk, &layout.rows(&bound.name, bound.generation))
}

/// All spaces with the slots of their groups, without a look at those.
fn spaces_in(state: &State) -> HashMap<String, (Bound, Vec<u32>)> {
    let slots: Vec<u32> = state.of_face(VECTORS, None).collect();
    let mut spaces: HashMap<String, (Bound, Vec<u32>)> = HashMap::new();
    let mut dropped: HashMap<String, u64> = HashMap::new();
    for slot in &slots {
        let id = state.slots.id(*slot);
        match format::group_space(&id) {
            Some(space) => spaces.entry(space.to_owned()).or_insert_with(nowhere).1.push(*slot),
            None => {
                if let Some(VectorRecord::Space(bound)) = word_in(state, *slot) {
                    let name = bound.name.clone();
                    spaces.entry(name).or_insert_with(nowhere).0 = bound;
                } else if let Some(name) = format::space_name(&id) {
                    dropped.extend(generation_in(&state.slots.record(*slot)).map(|last| (name.to_owned(), last)));
                }
            }
        }
    }
    let known = |name: &str| {
        let bound = spaces.get(name).map(|(bound, _)| bound).filter(|bound| bound.dim > 0);
        bound
            .map(|bound| bound.generation)
            .or_else(|| dropped.get(name).copied())
    };
    for (name, bound) in implied(state, slots.iter(), known) {
        spaces.entry(name.to_owned()).or_insert_with(nowhere).0 = bound;
    }
    spaces
}

/// Files that end before rows which a state names. A glance shows as much; whether rows are right takes a check.
pub fn short_files(disk: &dyn Disk, layout: &Layout, state: &State) -> Vec<String> {
    let mut found = Vec::new();
    for (name, (bound, mut groups)) in spaces_in(state) {
        // The last group nearly always names a row that counts.
        groups.sort_unstable_by_key(|slot| Reverse(group_row(&state.slots.id(*slot))));
        let last_of = |slot: &u32| match word_in(state, *slot) {
            Some(VectorRecord::Group(group)) if group.generation == bound.generation => group.living().last(),
            _ => None,
        };
        let Some(last) = groups.iter().find_map(last_of) else {
            continue;
        };
        let file = rows_name(&name, bound.generation);
        match disk.status(&layout.rows(&name, bound.generation)) {
            Err(fault) => found.push(format!("{file} cannot be read ({fault}), and the log names row {last}")),
            Ok(status) => {
                let there = status.length / bound.stride().max(1);
                if there <= u64::from(last) {
                    found.push(format!("{file} ends before row {there}, and the log names row {last}"));
                }
            }
        }
    }
    found.sort();
    found
}

/// Checks every row that a state names.
///
/// # Errors
/// `Io`. Damage is no error.
pub fn check_rows<'a>(disk: &dyn Disk, layout: &Layout, state: &'a State, threads: usize) -> Result<RowFindings> {
    let spaces = spaces_in(state);
    let mut findings = RowFindings::default();
    let mut names: Vec<&String> = spaces.keys().collect();
    names.sort();
    for name in names {
        let (bound, groups) = &spaces[name];
        if bound.dim == 0 {
            continue;
        }
        let (rows, unread) = match map_rows(disk, layout, bound, u64::MAX) {
            Err(fault) if is_of_this_file(&fault) => (Mapping::nothing(), Some(fault)),
            mapped => (mapped.at(&layout.rows(name, bound.generation))?, None),
        };
        let mut found = 0;
        let work = |index: u64, bad: &mut Option<(RowGroup<'a>, Vec<u32>)>| {
            *bad = match word_in(state, groups[index as usize]) {
                Some(VectorRecord::Group(group)) if group.generation == bound.generation => {
                    let rows = bad_among(rows.bytes(), bound, &group);
                    (!rows.is_empty()).then_some((group, rows))
                }
                Some(VectorRecord::Group(group)) if group.generation < bound.generation => {
                    let rows = group.living().collect();
                    Some((group, rows))
                }
                _ => None,
            };
            Ok(())
        };
        in_order(
            groups.len() as u64,
            threads,
            work,
            |bad: &mut Option<(RowGroup<'a>, Vec<u32>)>| {
                let Some((group, rows_of_group)) = bad.take() else {
                    return Ok::<bool, io::Error>(true);
                };
                for row in rows_of_group {
                    found += 1;
                    if found <= MOST_FINDINGS {
                        let id = &group.ids[(row - group.row) as usize];
                        if group.generation < bound.generation {
                            findings.damage.push(left_behind(bound, &group, row, id));
                            continue;
                        }
                        let is_there = row_bytes(rows.bytes(), row, bound).is_some();
                        let mut damage = row_damage(bound, row, id, is_there);
                        if let Some(fault) = &unread {
                            damage.reason += &format!(" ({fault})");
                        }
                        findings.damage.push(damage);
                    }
                }
                Ok(true)
            },
        )
        .at(&layout.rows(name, bound.generation))?;
        if found > MOST_FINDINGS {
            let more = found - MOST_FINDINGS;
            findings.notes.push(format!("{more} more rows of {name} are damaged"));
        }
    }
    Ok(findings)
}

/// Whether there is something else than a file.
pub fn is_no_file(fault: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, IsADirectory, NotADirectory};
    // Links that lead to each other: the kind of that is not stable yet.
    matches!(fault.kind(), InvalidInput | IsADirectory | NotADirectory) || fault.raw_os_error() == Some(TOO_MANY_LINKS)
}

/// Whether it is this file that cannot be read, and not the disk that is in trouble.
pub fn is_of_this_file(fault: &io::Error) -> bool {
    is_no_file(fault) || fault.kind() == io::ErrorKind::PermissionDenied
}

fn word_in(state: &State, slot: u32) -> Option<VectorRecord<'_>> {
    match state.slots.record(slot) {
        Cow::Borrowed(record) => read(&state.slots.id(slot), record),
        Cow::Owned(record) => read(&state.slots.id(slot), &record).map(VectorRecord::into_owned),
    }
}

fn nowhere() -> (Bound, Vec<u32>) {
    let bound = Bound {
        name: String::new(),
        model: String::new(),
        dim: 0,
        generation: 0,
        tokens: 0,
    };
    (bound, Vec::new())
}

/// A row of an earlier generation: the line is lost that took it along, or took it back.
fn left_behind(bound: &Bound, group: &RowGroup<'_>, row: u32, id: &[u8]) -> Damage {
    let old = bound.at(group.generation);
    Damage {
        reason: format!("row {row}: its space has moved on without it"),
        ..row_damage(&old, row, id, false)
    }
}

/// A row that is not what the log says.
pub fn row_damage(bound: &Bound, row: u32, id: &[u8], is_there: bool) -> Damage {
    let what = if is_there {
        "its SHA-256 is another"
    } else {
        "the file ends before it"
    };
    Damage {
        path: rows_name(&bound.name, bound.generation),
        offset: u64::from(row) * bound.stride(),
        line: 0,
        seq: None,
        kind: if is_there {
            DamageKind::RowAltered
        } else {
            DamageKind::RowMissing
        },
        reason: format!("row {row}: {what}"),
        id: Some(shown(id)),
    }
}

/// Finds files of codes that would be used and are not those of the rows that the log names. A chunk with a damaged row is skipped: that row
/// is a finding of its own, and codes that were made before the damage are right.
pub fn altered_codes(disk: &dyn Disk, layout: &Layout, state: &State, threads: usize) -> Vec<Damage> {
    let mut known = Spaces::default();
    known.follow(state, threads);
    let mut found = Vec::new();
    for index in known.spaces.values().filter(|index| index.bound.tokens == 0) {
        let bound = &index.bound;
        // Rows that cannot be mapped are findings of their own.
        let Ok(rows) = map_rows(disk, layout, bound, u64::MAX) else {
            continue;
        };
        for (number, chunks) in index.chunks.chunks_exact(FILE_CHUNKS).enumerate() {
            let first = number * FILE_ROWS;
            let path = layout.codes(&bound.name, bound.generation, first..first + FILE_ROWS);
            let Some(file) = CodesFile::open(disk, &path, bound, chunks) else {
                continue;
            };
            let is_altered = AtomicBool::new(false);
            let next = AtomicUsize::new(0);
            together(threads, || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chunk) = chunks.get(place) else { return };
                    let right = made_of(rows.bytes(), bound, number * FILE_CHUNKS + place, chunk);
                    let contents = file.contents(place);
                    let both = right.zip(contents);
                    if both.is_some_and(|(right, found)| found.iter().zip(&right).any(|(one, other)| one != other)) {
                        is_altered.store(true, Ordering::Relaxed);
                    }
                }
            });
            if is_altered.into_inner() {
                let reason = format!(
                    "the codes of rows {first} to {} are not those of the rows",
                    first + FILE_ROWS - 1
                );
                found.push(finding(&index_name(&path), DamageKind::IndexAltered, reason));
            }
        }
    }
    found
}

/// The XXH3 of the rows of a chunk and their codes; `None` if one of its rows is not what the log names.
fn made_of(rows: &[u8], bound: &Bound, number: usize, chunk: &RowChunk) -> Option<[Vec<u8>; 3]> {
    let first = number * CHUNK_ROWS;
    let are_right = are_rows(rows, first as u32, bound, &chunk.digests);
    // Rows that no group names have no digest.
    let mut rows_of_chunk = are_right.iter().zip(&chunk.digests);
    if !rows_of_chunk.all(|(is_right, digest)| *is_right || *digest == [0; 32]) {
        return None;
    }
    let stride = 4 * bound.dim;
    let bytes = rows.get(first * stride..(first + CHUNK_ROWS) * stride)?;
    let sums = bytes.chunks_exact(stride).flat_map(|row| xxh3_64(row).to_le_bytes());
    let rows = VectorRows::packed(bytemuck::try_cast_slice(bytes).ok()?, bound.dim).ok()?;
    let part = MemoryPart::of(rows, CHUNK_ROWS / GROUP_ROWS, None, Cpu::best()).ok()?;
    let (high, low) = part.planes();
    Some([sums.collect(), high.to_vec(), low.to_vec()])
}
