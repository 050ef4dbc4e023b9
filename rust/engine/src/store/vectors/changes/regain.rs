//! Finds the bytes of damaged rows elsewhere, and puts them back.
//!
//! Backups and set-aside folders hold files of rows too, and the log names the digest of each row: it is looked for at
//! its place in a file of the same name, then among all rows of its space, because a compaction moves them. Rows are
//! put back when the new log is in place. Those that are found nowhere are kept in `quarantine/` and taken back by an
//! event.
//!
//! A compaction moves a space by one batch of lines. If one of them is lost, the old groups stay, while others have
//! written to the new file since: all old rows are taken back.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::Arc;

use crate::store::files::proofs::other_folders;
use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::{
    self, Bound, RowGroup, VectorRecord, read, shown, write_empty, write_gone, write_space,
};
use crate::store::vectors::records::index::RowIndex;
use crate::store::vectors::rows::check::{bad_rows, is_of_this_file, is_row, open_rows, row_bytes};
use chronolog::digest::{sha256, sha256_each, write_hex};
use chronolog::disk::{Access, Disk, Mapping, open_if_there, read_upto};
use chronolog::error::{At, Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::faces::VECTORS;
use chronolog::event::stamp;
use chronolog::layout::{ROWS_SUFFIX, is_rows_file, rows_name};
use chronolog::log::files::{Scratch, copy_bytes, free_name, with_suffix};
use chronolog::log::{Log, Site};
use chronomemory_state::state::State;

/// So many bytes are hashed between two looks whether anything is still missing.
const PIECE_BYTES: usize = 1024 * 1024;
/// A row that is not what the log says.
struct Bad {
    row: u32,
    id: Vec<u8>,
    digest: [u8; 32],
    /// It is the embedding of its record; else there was a later one, or the record is gone.
    is_living: bool,
    /// A file that holds its bytes, and the row there.
    found: Option<(Arc<Mapping>, u32)>,
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

    /// Which rows are not what the log says, and where their bytes lie. Nothing is changed; files that cannot be read are
    /// left as they are.
    pub fn find(vectors: &Vectors, state: &State) -> Result<Self> {
        let mut left_behind = LeftBehind::default();
        let mut spaces: BTreeMap<String, (Bound, Vec<Bad>)> = BTreeMap::new();
        each_damaged_group(vectors, state, &mut left_behind, |index, group, rows| {
            let entry = spaces.entry(group.space.clone());
            let (_, bad) = entry.or_insert_with(|| (index.bound.clone(), Vec::new()));
            bad.extend(rows.into_iter().map(|row| {
                let at = (row - group.row) as usize;
                Bad {
                    row,
                    id: group.ids[at].to_vec(),
                    digest: group.digests[at],
                    is_living: index.is_living(row),
                    found: None,
                }
            }));
            Ok(())
        })?;
        let mut plan = Self::default();
        for (name, (bound, mut bad)) in spaces {
            bad.sort_unstable_by_key(|bad| bad.row);
            look_elsewhere(&vectors.site, &bound, &mut bad);
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
    pub fn put_back(&self, vectors: &mut Vectors) -> Result<u64> {
        let mut count = 0;
        for (bound, rows) in &self.spaces {
            // What was right a moment ago may lie in a file of somebody else.
            let found: Vec<(u32, &[u8])> = rows
                .iter()
                .filter_map(|bad| {
                    let (file, at) = bad.found.as_ref()?;
                    let bytes = row_bytes(file.bytes(), *at, bound)?;
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

/// Hands over the rows of each group that are not what the log says; groups that were left behind are noted. Gives why a file
/// could not be read, if one could not: its rows are passed over.
fn each_damaged_group(
    vectors: &Vectors,
    state: &State,
    left_behind: &mut LeftBehind,
    mut found: impl FnMut(&RowIndex, &RowGroup<'_>, Vec<u32>) -> Result<()>,
) -> Result<Option<Error>> {
    let (disk, layout) = (&*vectors.site.disk, &vectors.site.layout);
    let known = vectors.known(state);
    let mut unread = None;
    for slot in state.of_face(VECTORS, None) {
        let record = state.slots.record(slot);
        let Some(VectorRecord::Group(group)) = read(&state.slots.id(slot), &record) else {
            continue;
        };
        let Some(index) = known.spaces.spaces.get(&group.space) else {
            continue;
        };
        if left_behind.takes(state, index, &group) || group.generation > index.bound.generation {
            continue;
        }
        match bad_rows(disk, layout, &index.bound, &group) {
            Err(Error::Io { path, source }) if is_of_this_file(&source) => unread = Some(Error::Io { path, source }),
            Err(fault) => return Err(fault),
            Ok(rows) if rows.is_empty() => {}
            Ok(rows) => found(index, &group, rows)?,
        }
    }
    Ok(unread)
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
                bad.found = Some((Arc::clone(&rows), bad.row));
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
                    bad[at].found = Some((Arc::clone(&rows), row));
                }
                if missing.is_empty() {
                    break;
                }
            }
        }
    }
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

/// So much is written at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// The number of a row, and the id of its record.
type OwnedRow = (u32, Vec<u8>);

/// Rows that are not what the log says.
pub(in crate::store) struct DamagedRows {
    /// Takes them back.
    draft: Draft,
    /// By space: which they are, and whose.
    lost: BTreeMap<String, (Bound, Vec<OwnedRow>)>,
    left_behind: LeftBehind,
    /// Why a file could not be read.
    unread: Option<Error>,
}

impl DamagedRows {
    /// Looks at all rows that a state names. Files that cannot be read are left as they are.
    pub fn find(vectors: &Vectors, state: &State) -> Result<Self> {
        let mut found = Self {
            draft: Draft::default(),
            lost: BTreeMap::new(),
            left_behind: LeftBehind::default(),
            unread: None,
        };
        let Self {
            draft,
            lost,
            left_behind,
            unread,
        } = &mut found;
        *unread = each_damaged_group(vectors, state, left_behind, |index, group, rows| {
            write_gone(draft, &index.bound, group.row, &rows)?;
            let id = |row: u32| group.ids[(row - group.row) as usize].to_vec();
            let entry = lost.entry(group.space.clone());
            let (_, owned) = entry.or_insert_with(|| (index.bound.clone(), Vec::new()));
            owned.extend(rows.into_iter().map(|row| (row, id(row))));
            Ok(())
        })?;
        Ok(found)
    }

    /// Whether some of them can be taken back: an error if all that could be damaged cannot be read.
    pub fn check(self) -> Result<()> {
        let is_nothing = self.draft.is_empty() && self.left_behind.is_empty();
        self.unread.filter(|_| is_nothing).map_or(Ok(()), Err)
    }

    /// Keeps what they hold in `quarantine/`; gives the changes that take them back,
    /// or `None` if there is nothing to say.
    ///
    /// # Errors
    /// `Io`; also if a file could not be read, and nothing else is to be done, in a log that is whole.
    pub fn take_back(mut self, vectors: &Vectors, log: &Log, depth: i64, now: i64) -> Result<Option<Draft>> {
        for (bound, rows) in self.lost.values_mut() {
            rows.sort();
            keep_rows(&vectors.site, bound, rows, now)?;
        }
        self.left_behind.take_back(depth, &mut self.draft)?;
        if !self.draft.is_empty() {
            return Ok(Some(self.draft));
        }
        // If there is nothing else to do, at least it should be known why.
        let unread = self.unread.filter(|_| log.report.damage.is_empty());
        unread.map_or(Ok(None), Err)
    }
}

/// Keeps what rows hold, as far as they are there: a line for each.
fn keep_rows(site: &Site, bound: &Bound, rows: &[OwnedRow], now: i64) -> Result<()> {
    let path = site.layout.rows(&bound.name, bound.generation);
    let Some(file) = open_if_there(&*site.disk, &path).at(&path)? else {
        return Ok(());
    };
    let quarantine = site.layout.quarantine();
    site.make_folder(&quarantine, site.layout.folder())?;
    let name = format!("{}-{}-rows.jsonl", stamp::spell_name(now), format::file_name(bound));
    let target = free_name(&*site.disk, &quarantine, &name)?;
    let scratch = Scratch::at(&site.disk, with_suffix(&target, ".tmp"));
    let kept = site.disk.create(scratch.path()).at(scratch.path())?;
    let (mut bytes, mut lines, mut written) = (Vec::new(), Vec::new(), 0);
    for (number, (row, id)) in rows.iter().enumerate() {
        bytes.clear();
        let offset = u64::from(*row) * bound.stride();
        read_upto(&*file, &mut bytes, offset, bound.stride() as usize).at(&path)?;
        lines.extend_from_slice(b"{\"bytes\":\"");
        write_hex(&bytes, &mut lines);
        lines.extend_from_slice(b"\",\"id\":\"");
        lines.extend_from_slice(id);
        lines.extend_from_slice(format!("\",\"row\":{row}}}\n").as_bytes());
        if lines.len() >= BUFFER_BYTES || number + 1 == rows.len() {
            kept.write_at(&lines, written).at(scratch.path())?;
            written += lines.len() as u64;
            lines.clear();
        }
    }
    kept.sync().at(scratch.path())?;
    scratch.name(&target)
}

/// What one space has left behind.
struct SpaceLeft {
    bound: Bound,
    /// The space has no record of its own for the new generation.
    is_implied: bool,
    groups: Vec<u32>,
    /// The records that have no row since.
    ids: BTreeSet<Vec<u8>>,
}

/// What all spaces have left behind.
#[derive(Default)]
pub(in crate::store) struct LeftBehind {
    spaces: BTreeMap<String, SpaceLeft>,
}

impl LeftBehind {
    /// Whether no group was left behind.
    pub fn is_empty(&self) -> bool {
        self.spaces.is_empty()
    }

    /// Whether a group was left behind; then it is noted.
    pub fn takes(&mut self, state: &State, index: &RowIndex, group: &RowGroup<'_>) -> bool {
        if group.generation >= index.bound.generation || group.ids.is_empty() {
            return false;
        }
        let space = self.spaces.entry(group.space.clone()).or_insert_with(|| SpaceLeft {
            bound: index.bound.clone(),
            is_implied: index.is_implied && !index.bound.model.is_empty(),
            groups: Vec::new(),
            ids: BTreeSet::new(),
        });
        space.groups.push(group.row);
        let living = (group.row..)
            .zip(&group.ids)
            .filter(|(row, _)| !group.gone.contains(row));
        let has_none = |id: &[u8]| {
            state
                .slots
                .of_spelled(id)
                .is_some_and(|owner| index.ever_of(owner).is_none())
        };
        let ids = living.map(|(_, id)| id.to_vec()).filter(|id| has_none(id));
        space.ids.extend(ids);
        true
    }

    /// The embeddings that are lost with them, one sentence each.
    pub fn lost(&self) -> Vec<String> {
        let spaces = self.spaces.iter().filter(|(_, space)| space.is_implied);
        let lost = spaces.flat_map(|(name, space)| space.ids.iter().map(|id| describe_embedding(id, name, true)));
        lost.collect()
    }

    /// Writes the changes that take the groups back.
    ///
    /// # Errors
    /// `Refused` if a change cannot be spelled.
    pub fn take_back(&self, depth: i64, draft: &mut Draft) -> Result<()> {
        for space in self.spaces.values() {
            for group in &space.groups {
                write_empty(draft, &space.bound.name, *group)?;
            }
            if space.is_implied {
                write_space(draft, &space.bound, depth)?;
            }
        }
        Ok(())
    }
}

/// How a report names an embedding that is lost.
pub(in crate::store) fn describe_embedding(id: &[u8], space: &str, is_living: bool) -> String {
    let which = if is_living { "the" } else { "an earlier" };
    format!("{which} embedding of {:?} in space {space:?}", shown(id))
}
