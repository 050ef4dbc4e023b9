//! Which row belongs to which record?
//!
//! The highest row that names a record is its embedding, unless that row was taken back: then it has none. This does not
//! depend on the order in which groups are met, so the index can be made from a base as well as from a log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::read::{Group, Word, read};
use super::words::{Bound, FIRST_SPACE, generation_in, group_space, space_name};
use crate::ordered::in_order;
use crate::state::State;

/// So many rows are looked after together: they share a companion, and what is known of their digests.
pub const BLOCK_ROWS: usize = 1024;
/// Nobody's row; no row.
const NONE: u32 = u32::MAX;

/// What the log says of some rows.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// The slots of the records.
    pub owners: Vec<u32>,
    /// The digests of the rows.
    pub digests: Vec<[u8; 32]>,
}

/// The rows of one space.
#[derive(Clone, Debug)]
pub struct RowIndex {
    /// The space.
    pub bound: Bound,
    /// All rows that the log names; a running search keeps the blocks it began with.
    pub blocks: Vec<Arc<Block>>,
    /// How many rows there are.
    pub rows: u32,
    /// The highest row of each slot; a running search keeps those it began with.
    pub current: Arc<Vec<u32>>,
    /// Rows that were taken back.
    pub gone: RoaringBitmap,
    /// Rows that ceased to be anybody's embedding, as that became known.
    pub died: Vec<u32>,
    /// How many rows are somebody's embedding.
    pub living: u32,
    /// The first rows of the groups, so that a group can be spoken of again.
    pub groups: BTreeMap<u32, u32>,
}

impl RowIndex {
    fn new(bound: Bound) -> Self {
        Self {
            bound,
            blocks: Vec::new(),
            rows: 0,
            current: Arc::default(),
            gone: RoaringBitmap::new(),
            died: Vec::new(),
            living: 0,
            groups: BTreeMap::new(),
        }
    }

    /// The row of a record.
    pub fn row_of(&self, slot: u32) -> Option<u32> {
        let row = self.current.get(slot as usize).copied().unwrap_or(NONE);
        (row != NONE && !self.gone.contains(row)).then_some(row)
    }

    /// The slot of the record that a row belongs to, even if a later row took its place.
    pub fn owner_of(&self, row: u32) -> Option<u32> {
        let block = self.blocks.get(row as usize / BLOCK_ROWS)?;
        let owner = *block.owners.get(row as usize % BLOCK_ROWS)?;
        (owner != NONE).then_some(owner)
    }

    /// The digest of a row.
    pub fn digest_of(&self, row: u32) -> Option<[u8; 32]> {
        let block = self.blocks.get(row as usize / BLOCK_ROWS)?;
        block.digests.get(row as usize % BLOCK_ROWS).copied()
    }

    /// Whether a row is the embedding of its record.
    pub fn is_living(&self, row: u32) -> bool {
        self.owner_of(row)
            .is_some_and(|owner| self.current.get(owner as usize) == Some(&row))
            && !self.gone.contains(row)
    }

    /// The first row of the group that a row is in.
    pub fn group_of(&self, row: u32) -> Option<u32> {
        let (first, length) = self.groups.range(..=row).next_back()?;
        (row < first + length).then_some(*first)
    }

    fn take(&mut self, Owned { group, owners }: &Owned<'_>) {
        if group.generation != self.bound.generation {
            return;
        }
        self.groups.insert(group.row, group.ids.len() as u32);
        for ((row, owner), digest) in (group.row..).zip(owners).zip(&group.digests) {
            self.put(row, *owner, *digest);
        }
        for row in &group.gone {
            let was_living = self.is_living(*row);
            if self.gone.insert(*row) && was_living {
                self.living -= 1;
                self.died.push(*row);
            }
        }
    }

    fn put(&mut self, row: u32, owner: u32, digest: [u8; 32]) {
        let (number, place) = (row as usize / BLOCK_ROWS, row as usize % BLOCK_ROWS);
        while self.blocks.len() <= number {
            // Rows that no group names: there are none in a log of ours.
            if let Some(last) = self.blocks.last_mut() {
                fill(Arc::make_mut(last), BLOCK_ROWS);
            }
            self.blocks.push(Arc::default());
        }
        let block = Arc::make_mut(&mut self.blocks[number]);
        fill(block, place + 1);
        (block.owners[place], block.digests[place]) = (owner, digest);
        self.rows = self.rows.max(row + 1);
        if owner == NONE {
            return;
        }
        let before = self.current.get(owner as usize).copied().unwrap_or(NONE);
        if before != NONE && before >= row {
            return;
        }
        if self.row_of(owner).is_some() {
            self.living -= 1;
            self.died.push(before);
        }
        let current = Arc::make_mut(&mut self.current);
        if current.len() <= owner as usize {
            current.resize(owner as usize + 1, NONE);
        }
        current[owner as usize] = row;
        self.living += u32::from(!self.gone.contains(row));
    }
}

/// A group, and the slots of its records.
struct Owned<'a> {
    group: Group<'a>,
    owners: Vec<u32>,
}

impl<'a> Owned<'a> {
    fn read(state: &'a State, slot: u32) -> Option<Self> {
        let Some(Word::Group(group)) = read(state.spelled_id(slot), state.record_in(slot)) else {
            return None;
        };
        let owners = group.ids.iter().map(|id| state.slot_spelled(id).unwrap_or(NONE));
        Some(Self {
            owners: owners.collect(),
            group,
        })
    }
}

fn fill(block: &mut Block, length: usize) {
    if block.owners.len() < length {
        block.owners.resize(length, NONE);
        block.digests.resize(length, [0; 32]);
    }
}

/// All spaces, as far as the state was looked through.
#[derive(Debug, Default)]
pub struct Spaces {
    /// The spaces by name.
    pub spaces: BTreeMap<String, RowIndex>,
    /// Spaces that were dropped, and the generation that each had last: their files may still be there.
    pub dropped: BTreeMap<String, u64>,
    choice: Option<String>,
    seen: usize,
}

impl Spaces {
    /// The space that is asked when none is named.
    pub fn choice(&self) -> &str {
        self.choice.as_deref().unwrap_or(FIRST_SPACE)
    }

    /// Takes in what was said since the last time.
    pub fn follow<'a>(&mut self, state: &'a State, threads: usize) {
        let changes = state.vector_changes();
        if self.seen >= changes.len() {
            return;
        }
        let mut fresh = changes[self.seen..].to_vec();
        let mut moved = false;
        let of_groups = |slot: &u32| group_space(state.spelled_id(*slot)).is_some();
        for slot in fresh.iter().filter(|slot| !of_groups(slot)) {
            let (id, record) = (state.spelled_id(*slot), state.record_in(*slot));
            match read(id, record) {
                Some(Word::Space(bound)) => moved |= self.bind(bound),
                Some(Word::Choice(space)) => self.choice = Some(space),
                Some(Word::Group(_)) => {}
                None => self.drop(space_name(id), record),
            }
        }
        if moved {
            // Rows of another generation: those of its groups count that were passed over before.
            fresh = changes.to_vec();
        }
        fresh.retain(of_groups);
        fresh.sort_unstable();
        fresh.dedup();
        // To look up a million owners takes half a second, and a store that is opened has to do that once.
        let read = |index: u64, owned: &mut Option<Owned<'a>>| {
            *owned = Owned::read(state, fresh[index as usize]);
            Ok(())
        };
        let outcome = in_order(fresh.len() as u64, threads, read, |owned: &mut Option<Owned<'a>>| {
            if let Some(owned) = owned
                && let Some(index) = self.spaces.get_mut(&owned.group.space)
            {
                index.take(owned);
            }
            Ok::<_, io::Error>(true)
        });
        // INVARIANT: neither reading nor taking in can fail.
        debug_assert!(outcome.is_ok());
        self.seen = changes.len();
    }

    fn drop(&mut self, name: Option<&str>, record: &[u8]) {
        if let (Some(name), Some(generation)) = (name, generation_in(record)) {
            self.spaces.remove(name);
            self.dropped.insert(name.to_owned(), generation);
        }
    }

    /// Whether a space that was known before has moved.
    fn bind(&mut self, bound: Bound) -> bool {
        self.dropped.remove(&bound.name);
        match self.spaces.get_mut(&bound.name) {
            Some(known) if known.bound.generation == bound.generation && known.bound.dim == bound.dim => {
                known.bound = bound;
                false
            }
            known => {
                let moved = known.is_some();
                self.spaces.insert(bound.name.clone(), RowIndex::new(bound));
                moved
            }
        }
    }
}
