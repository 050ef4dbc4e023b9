//! Checks that rows are those that the log names.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use super::codes::{CodesFile, FILE_CHUNKS, codes_path, file_sizes};
use crate::store::vectors::records::format::{Bound, RowGroup, group_row, group_space, shown, with_group};
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk, RowIndex, Spaces};
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

#[derive(Default)]
pub struct RowFindings {
    pub damage: Vec<Damage>,
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

/// The rows that are not what the log says, those aside that were taken back or that no group names.
pub fn damaged_rows(rows: &[u8], index: &RowIndex, threads: usize) -> Vec<u32> {
    let work = |number: u64, bad: &mut Vec<u32>| {
        let (first, chunk) = (number as u32 * CHUNK_ROWS as u32, &index.chunks[number as usize]);
        let are_right = are_rows(rows, first, &index.bound, &chunk.digests);
        let checked = (first..).zip(are_right.iter().zip(&chunk.digests));
        let is_bad = |row: &u32, is_right: bool, digest: &[u8; 32]| {
            !is_right && *digest != [0; 32] && !index.gone.contains(*row)
        };
        let found = checked.filter(|(row, (is_right, digest))| is_bad(row, **is_right, digest));
        bad.extend(found.map(|(row, _)| row));
        Ok(())
    };
    let mut all = Vec::new();
    let outcome = in_order(index.chunks.len() as u64, threads, work, |bad: &mut Vec<u32>| {
        all.append(bad);
        Ok::<_, io::Error>(true)
    });
    // INVARIANT: nothing here can fail.
    debug_assert!(outcome.is_ok());
    all
}

/// The id of the record that a row is of, as the log spells it.
pub fn id_of_row(state: &State, index: &RowIndex, row: u32) -> Vec<u8> {
    let owner = index.owner_of(row).map(|owner| state.slots.id(owner).into_owned());
    // Where only the records of embeddings are loaded, their groups have the ids.
    let in_group = || {
        let first = index.group_of(row)?;
        with_group(state, &index.bound.name, first, |group| {
            group.ids.get((row - first) as usize).map(|id| id.to_vec())
        })?
    };
    owner.or_else(in_group).unwrap_or_default()
}

/// Files that end before rows which a state names. A glance at the last group of each space shows as much; whether rows are right takes
/// a check.
pub fn short_files(disk: &dyn Disk, layout: &Layout, state: &State) -> Vec<String> {
    let mut groups: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    for slot in state.of_face(VECTORS, None) {
        let id = state.slots.id(slot);
        if let (Some(space), Some(row)) = (group_space(&id), group_row(&id)) {
            groups.entry(space.to_owned()).or_default().push(row);
        }
    }
    let mut found = Vec::new();
    for (name, mut rows) in groups {
        rows.sort_unstable_by(|a, b| b.cmp(a));
        let last_in = |row: &u32| {
            let last = |group: &RowGroup<'_>| Some((group.generation, group.dim, group.living().last()?));
            with_group(state, &name, *row, last)?
        };
        let Some((generation, dim, last)) = rows.iter().find_map(last_in) else {
            continue;
        };
        let file = rows_name(&name, generation);
        match disk.status(&layout.rows(&name, generation)) {
            Err(fault) => found.push(format!("{file} cannot be read ({fault}), and the log names row {last}")),
            Ok(status) => {
                let there = status.length / (4 * dim.max(1));
                if there <= u64::from(last) {
                    found.push(format!("{file} ends before row {there}, and the log names row {last}"));
                }
            }
        }
    }
    found
}

/// Checks every row that a state names.
///
/// # Errors
/// `Io`. Damage is no error.
pub fn check_rows(
    disk: &dyn Disk,
    layout: &Layout,
    state: &State,
    spaces: &Spaces,
    threads: usize,
) -> Result<RowFindings> {
    let mut findings = RowFindings::default();
    for (name, index) in &spaces.spaces {
        let bound = &index.bound;
        let (rows, unread) = match map_rows(disk, layout, bound, u64::MAX) {
            Err(fault) if is_of_this_file(&fault) => (Mapping::nothing(), Some(fault)),
            mapped => (mapped.at(&layout.rows(name, bound.generation))?, None),
        };
        let bad = damaged_rows(rows.bytes(), index, threads);
        for row in bad.iter().take(MOST_FINDINGS) {
            let is_there = row_bytes(rows.bytes(), *row, bound).is_some();
            let mut damage = row_damage(bound, *row, &id_of_row(state, index, *row), is_there);
            if let Some(fault) = &unread {
                damage.reason += &format!(" ({fault})");
            }
            findings.damage.push(damage);
        }
        let mut found = bad.len();
        for (_, first) in index.left_behind.keys() {
            with_group(state, name, *first, |group| {
                // The line is lost that took these rows along, or took them back.
                let old = bound.at(group.generation);
                for row in group.living() {
                    found += 1;
                    if found <= MOST_FINDINGS {
                        let id = &group.ids[(row - group.row) as usize];
                        findings.damage.push(Damage {
                            reason: format!("row {row}: its space has moved on without it"),
                            ..row_damage(&old, row, id, false)
                        });
                    }
                }
            });
        }
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
pub fn altered_codes(disk: &dyn Disk, layout: &Layout, spaces: &Spaces, threads: usize) -> Vec<Damage> {
    let mut found = Vec::new();
    for index in spaces.spaces.values().filter(|index| index.bound.tokens == 0) {
        let bound = &index.bound;
        // Rows that cannot be mapped are findings of their own.
        let Ok(rows) = map_rows(disk, layout, bound, u64::MAX) else {
            continue;
        };
        let ranges = (0..index.chunks.len()).step_by(FILE_CHUNKS);
        let ranges =
            ranges.flat_map(|first| file_sizes(index.chunks.len() - first).map(move |size| first..first + size));
        for range in ranges {
            let (path, chunks) = (codes_path(layout, bound, range.clone()), &index.chunks[range.clone()]);
            let Some(file) = CodesFile::open(disk, &path, bound, chunks) else {
                continue;
            };
            let is_altered = AtomicBool::new(false);
            let next = AtomicUsize::new(0);
            together(threads, || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let Some(chunk) = chunks.get(place) else { return };
                    let right = made_of(rows.bytes(), bound, range.start + place, chunk);
                    let both = right.zip(file.contents(place));
                    if both.is_some_and(|(right, found)| found.iter().zip(&right).any(|(one, other)| one != other)) {
                        is_altered.store(true, Ordering::Relaxed);
                    }
                }
            });
            if is_altered.into_inner() {
                let (first, last) = (range.start * CHUNK_ROWS, range.end * CHUNK_ROWS - 1);
                let reason = format!("the codes of rows {first} to {last} are not those of the rows");
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
    let part = MemoryPart::of(rows, CHUNK_ROWS / GROUP_ROWS, Cpu::best()).ok()?;
    let (high, low) = part.planes();
    Some([sums.collect(), high.to_vec(), low.to_vec()])
}
