//! Finds the bytes of damaged rows elsewhere, and puts them back.
//!
//! Backups, and what was set aside, hold files of rows too. A row is believed by the digest that the log names, wherever it
//! lies: first at the same place of a file of the same name, then anywhere among the rows of its space, because a compaction
//! moves them, and then at any place of its own file, because bytes may have been lost before it. As with all that a repair puts in place, it is found out first and done when the log stands that tells of it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::Arc;

use super::left_behind::{LeftBehind, describe_embedding};
use crate::store::files::proofs::other_folders;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::read::{VectorRecord, read};
use crate::store::vectors::rows::check::{bad_rows, is_of_this_file, is_row};
use chronolog::digest::{sha256, sha256_each};
use chronolog::disk::{Access, Disk, Mapping};
use chronolog::error::{At, Error, Result};
use chronolog::event::faces::VECTORS;
use chronolog::layout::{ROWS_SUFFIX, is_rows_file, rows_name};
use chronolog::log::Site;
use chronolog::log::files::{Scratch, copy_bytes, with_suffix};
use chronomemory_state::state::State;

use crate::store::vectors::rows::check::open_rows;

/// So many bytes are hashed between two looks whether anything is still missing.
const PIECE_BYTES: usize = 1024 * 1024;
/// So much may be hashed in search of one row that has moved, in blocks of 64 bytes.
const SHIFT_BLOCKS: u64 = 5_000_000;
/// So many rows are looked for at every place: with a single hole one of the last two has moved as a whole.
const MOST_PROBES: usize = 4;

/// A row that is not what the log says.
struct Bad {
    row: u32,
    id: Vec<u8>,
    digest: [u8; 32],
    /// It is the embedding of its record; else there was a later one, or the record is gone.
    is_living: bool,
    /// A file that holds its bytes, and where.
    found: Option<(Arc<Mapping>, u64)>,
    /// It was looked for at every place of its own file.
    is_sought: bool,
}

/// What is to be done about damaged rows.
#[derive(Default)]
pub(in crate::store) struct RowPlan {
    spaces: Vec<(Bound, Vec<Bad>)>,
    /// The embeddings that nothing in the folder holds, one sentence each.
    pub lost: Vec<String>,
}

impl RowPlan {
    /// The files that hold damaged rows, from the store's folder on.
    pub fn files(&self) -> impl Iterator<Item = String> {
        let bounds = self.spaces.iter().map(|(bound, _)| bound);
        bounds.map(|bound| rows_name(&bound.name, bound.generation))
    }
}

impl RowPlan {
    /// Which rows are not what the log says, and where their bytes lie. Nothing is changed; files that cannot be read are
    /// left as they are.
    ///
    /// # Errors
    /// `Io`.
    pub fn find(vectors: &Vectors, state: &State) -> Result<Self> {
        let known = vectors.known(state);
        let mut left_behind = LeftBehind::default();
        let mut spaces: BTreeMap<String, (Bound, Vec<Bad>)> = BTreeMap::new();
        for slot in state.of_face(VECTORS) {
            let word = read(state.spelled_id(slot), state.record_in(slot));
            let Some(VectorRecord::Group(group)) = word else {
                continue;
            };
            let Some(index) = known.spaces.spaces.get(&group.space) else {
                continue;
            };
            if left_behind.takes(state, index, &group) || group.generation > index.bound.generation {
                continue;
            }
            let bad = match bad_rows(&*vectors.site.disk, &vectors.site.layout, &index.bound, &group) {
                Err(Error::Io { source, .. }) if is_of_this_file(&source) => continue,
                bad => bad?,
            };
            let bad = bad.into_iter().map(|row| {
                let at = (row - group.row) as usize;
                Bad {
                    row,
                    id: group.ids[at].to_vec(),
                    digest: group.digests[at],
                    is_living: index.is_living(row),
                    found: None,
                    is_sought: false,
                }
            });
            let bad: Vec<Bad> = bad.collect();
            if !bad.is_empty() {
                let entry = spaces.entry(group.space.clone());
                entry.or_insert_with(|| (index.bound.clone(), Vec::new())).1.extend(bad);
            }
        }
        drop(known);
        let mut plan = Self::default();
        for (name, (bound, mut bad)) in spaces {
            bad.sort_unstable_by_key(|bad| bad.row);
            look_elsewhere(&vectors.site, &bound, &mut bad);
            look_shifted(&vectors.site, &bound, &mut bad);
            let lost = bad.iter().filter(|bad| bad.found.is_none());
            plan.lost
                .extend(lost.map(|bad| describe_embedding(&bad.id, &name, bad.is_living)));
            plan.spaces.push((bound, bad));
        }
        plan.lost.extend(left_behind.lost());
        Ok(plan)
    }

    /// Puts the bytes of rows back that were found; gives how many. Others may have mapped the file, so that it is not
    /// written to: another one takes its name.
    ///
    /// # Errors
    /// `Io`.
    pub fn put_back(&self, vectors: &mut Vectors) -> Result<u64> {
        let mut count = 0;
        for (bound, rows) in &self.spaces {
            // What was right a moment ago may lie in a file of somebody else.
            let found: Vec<(u32, &[u8])> = rows
                .iter()
                .filter_map(|bad| {
                    let (file, at) = bad.found.as_ref()?;
                    let bytes = bytes_at(file.bytes(), *at, bound)?;
                    (sha256(bytes).raw() == bad.digest).then_some((bad.row, bytes))
                })
                .collect();
            if found.is_empty() {
                continue;
            }
            let folder = vectors.site.layout.vectors();
            vectors.site.make_folder(&folder, vectors.site.layout.folder())?;
            let path = vectors.site.layout.rows(&bound.name, bound.generation);
            let scratch = Scratch::at(&vectors.site.disk, with_suffix(&path, ".tmp"));
            match open_rows(&*vectors.site.disk, &vectors.site.layout, bound).at(&path)? {
                Some(own) => {
                    let length = own.length().at(&path)?;
                    copy_bytes(&*vectors.site.disk, &*own, 0..length, scratch.path(), None)?;
                }
                None => drop(vectors.site.disk.create(scratch.path()).at(scratch.path())?),
            }
            let file = vectors
                .site
                .disk
                .open(scratch.path(), Access::Write)
                .at(scratch.path())?;
            for (row, bytes) in &found {
                let offset = u64::from(*row) * bound.stride();
                file.write_at(bytes, offset).at(scratch.path())?;
            }
            file.sync().at(scratch.path())?;
            scratch.name(&path)?;
            count += found.len() as u64;
        }
        if count > 0 {
            vectors.forget();
        }
        Ok(count)
    }
}

/// Finds the bytes of rows in other folders, and in other files of the space.
fn look_elsewhere(site: &Site, bound: &Bound, bad: &mut [Bad]) {
    let others = other_folders(&*site.disk, &site.layout);
    for other in &others {
        let Some(rows) = mapped(&*site.disk, &other.rows(&bound.name, bound.generation)) else {
            continue;
        };
        for bad in bad.iter_mut().filter(|bad| bad.found.is_none()) {
            if is_row(rows.bytes(), bad.row, bound, &bad.digest) {
                bad.found = Some((Arc::clone(&rows), u64::from(bad.row) * bound.stride()));
            }
        }
    }
    for folder in others
        .iter()
        .map(|other| other.vectors())
        .chain([site.layout.vectors()])
    {
        let missing = bad.iter().enumerate().filter(|(_, bad)| bad.found.is_none());
        let mut missing: HashMap<[u8; 32], Vec<usize>> = missing.fold(HashMap::new(), |mut missing, (at, bad)| {
            missing.entry(bad.digest).or_default().push(at);
            missing
        });
        let names = site.disk.list(&folder).unwrap_or_default();
        for name in names.iter().filter(|name| is_of_space(name, &bound.name)) {
            if missing.is_empty() {
                break;
            }
            let Some(rows) = mapped(&*site.disk, &folder.join(name)) else {
                continue;
            };
            for (row, digest) in digests(rows.bytes(), bound) {
                for at in missing.remove(&digest).unwrap_or_default() {
                    bad[at].found = Some((Arc::clone(&rows), u64::from(row) * bound.stride()));
                }
                if missing.is_empty() {
                    break;
                }
            }
        }
    }
}

/// Finds rows of the space's own file that do not stand where they should: bytes were lost before them, or slipped in. All that
/// come behind have moved by as many, so that one of them tells where the others are.
fn look_shifted(site: &Site, bound: &Bound, bad: &mut [Bad]) {
    let Some(rows) = mapped(&*site.disk, &site.layout.rows(&bound.name, bound.generation)) else {
        return;
    };
    let mut probes = 0;
    while let Some(last) = bad.iter().rposition(|bad| bad.found.is_none() && !bad.is_sought) {
        probes += 1;
        if probes > MOST_PROBES {
            return;
        }
        bad[last].is_sought = true;
        let Some(shift) = shift_of(rows.bytes(), &bad[last], bound) else {
            continue;
        };
        for bad in bad.iter_mut().filter(|bad| bad.found.is_none()) {
            let at = (u64::from(bad.row) * bound.stride()).checked_add_signed(shift);
            let is_it =
                |at: &u64| bytes_at(rows.bytes(), *at, bound).is_some_and(|row| sha256(row).raw() == bad.digest);
            bad.found = at.filter(is_it).map(|at| (Arc::clone(&rows), at));
        }
    }
}

/// By how many bytes a row has moved, as far as may be looked: the nearest places first.
fn shift_of(rows: &[u8], bad: &Bad, bound: &Bound) -> Option<i64> {
    let place = u64::from(bad.row) * bound.stride();
    let (mut budget, each) = (SHIFT_BLOCKS, bound.stride() / 64 + 2);
    let farthest = i64::try_from(rows.len().max(place as usize)).ok()?;
    for distance in 1..=farthest {
        for shift in [-distance, distance] {
            let row = place.checked_add_signed(shift).and_then(|at| bytes_at(rows, at, bound));
            let Some(row) = row else { continue };
            budget = budget.checked_sub(each)?;
            if sha256(row).raw() == bad.digest {
                return Some(shift);
            }
        }
    }
    None
}

/// As many bytes as a row has, from a place on.
fn bytes_at<'a>(rows: &'a [u8], at: u64, bound: &Bound) -> Option<&'a [u8]> {
    let (start, stride) = (usize::try_from(at).ok()?, usize::try_from(bound.stride()).ok()?);
    rows.get(start..start.checked_add(stride)?)
}

/// A file of rows; what cannot be read holds none.
fn mapped(disk: &dyn Disk, path: &Path) -> Option<Arc<Mapping>> {
    let file = disk.open(path, Access::Read).ok()?;
    file.map(u64::MAX).ok().map(Arc::new)
}

/// Whether a file of this name holds rows of a space, of any generation.
fn is_of_space(name: &str, space: &str) -> bool {
    let parts = name.strip_suffix(ROWS_SUFFIX).and_then(|name| name.rsplit_once('.'));
    is_rows_file(name) && parts.is_some_and(|(of, _)| of == space)
}

/// All rows of a file with their digests, a piece at a time.
fn digests<'a>(rows: &'a [u8], bound: &Bound) -> impl Iterator<Item = (u32, [u8; 32])> + 'a {
    let stride = 4 * bound.dim.max(1);
    let piece = (PIECE_BYTES / stride).max(1) * stride;
    let all = rows.chunks(piece).flat_map(move |piece| {
        let mut found = Vec::new();
        sha256_each(piece, stride, &mut found);
        found
    });
    (0..).zip(all)
}
