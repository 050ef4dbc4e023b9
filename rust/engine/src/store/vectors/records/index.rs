//! An index of which row belongs to which record.
//!
//! The highest row that names a record is its embedding, unless that row was taken back: then it has none. This does not
//! depend on the order in which groups are met, so the index can be made from a base as well as from a log.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use roaring::RoaringBitmap;

use super::format::{
    Bound, FIRST_SPACE, VectorRecord, dim_in, file_of, generation_in, group_space, names_rows, read, space_name,
};
use chronolog::event::faces::VECTORS;
use chronolog::ordered::in_order;
use chronomemory_state::state::{State, Watermark};

/// So many rows are looked after together: they share codes, and what is known of their digests.
pub const CHUNK_ROWS: usize = 1024;
/// So many groups a thread reads before it hands them over.
const PIECE_GROUPS: usize = 16;
/// Nobody's row; no row.
pub const NONE: u32 = u32::MAX;

/// What the log says of some rows.
#[derive(Clone, Debug, Default)]
pub struct RowChunk {
    pub owners: Vec<u32>,
    pub digests: Vec<[u8; 32]>,
}

/// The rows of one space.
#[derive(Clone, Debug)]
pub struct RowIndex {
    pub bound: Bound,
    /// Whether only its groups say so: its own record is lost, or that it moved.
    pub is_implied: bool,
    /// All rows that the log names; a running search keeps the chunks it began with.
    pub chunks: Arc<Vec<Arc<RowChunk>>>,
    pub rows: u32,
    /// Groups of other generations that still name rows, by generation and first row, and how many.
    pub left_behind: BTreeMap<(u64, u32), u32>,
    /// The highest row of each slot; a running search keeps those it began with.
    pub current: Arc<Vec<u32>>,
    pub gone: Arc<RoaringBitmap>,
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
            is_implied: false,
            chunks: Arc::default(),
            rows: 0,
            left_behind: BTreeMap::new(),
            current: Arc::default(),
            gone: Arc::default(),
            died: Vec::new(),
            living: 0,
            groups: BTreeMap::new(),
        }
    }

    pub fn row_of(&self, slot: u32) -> Option<u32> {
        let row = self.current.get(slot as usize).copied().unwrap_or(NONE);
        (row != NONE && !self.gone.contains(row)).then_some(row)
    }

    /// The slot of the record that a row belongs to, even if a later row took its place.
    pub fn owner_of(&self, row: u32) -> Option<u32> {
        let chunk = self.chunks.get(row as usize / CHUNK_ROWS)?;
        let owner = *chunk.owners.get(row as usize % CHUNK_ROWS)?;
        (owner != NONE).then_some(owner)
    }

    pub fn digest_of(&self, row: u32) -> Option<[u8; 32]> {
        let chunk = self.chunks.get(row as usize / CHUNK_ROWS)?;
        chunk.digests.get(row as usize % CHUNK_ROWS).copied()
    }

    /// Whether a row is the embedding of its record.
    pub fn is_living(&self, row: u32) -> bool {
        self.owner_of(row)
            .is_some_and(|owner| self.current.get(owner as usize) == Some(&row))
            && !self.gone.contains(row)
    }

    /// The rows that are embeddings of records, in order, each with the slot of its record.
    pub fn living_rows(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let owners = self.chunks.iter().flat_map(|chunk| &chunk.owners);
        let named = (0..).zip(owners).filter(|(_, owner)| **owner != NONE);
        named
            .filter(|(row, owner)| self.current[**owner as usize] == *row && !self.gone.contains(*row))
            .map(|(row, owner)| (row, *owner))
    }

    /// Up to here groups of other generations name rows: a new group must not take the place of such a one.
    pub fn reserved(&self) -> u32 {
        let ends = self.left_behind.iter().map(|((_, row), count)| row + count);
        ends.max().unwrap_or(0)
    }

    /// The highest row that ever was a record's here, even if it was taken back.
    pub fn ever_of(&self, slot: u32) -> Option<u32> {
        self.current.get(slot as usize).copied().filter(|row| *row != NONE)
    }

    /// The first row of the group that a row is in.
    pub fn group_of(&self, row: u32) -> Option<u32> {
        let (first, length) = self.groups.range(..=row).next_back()?;
        (row < first + length).then_some(*first)
    }

    fn take(&mut self, owned: Owned) {
        let count = owned.chunk.owners.len() as u32;
        if owned.generation != self.bound.generation {
            self.left_behind.insert((owned.generation, owned.row), count);
            return;
        }
        self.groups.insert(owned.row, count);
        self.give(owned.row, &owned.chunk.owners);
        self.lay(owned.row, owned.chunk);
        for row in owned.gone {
            let was_living = self.is_living(row);
            if Arc::make_mut(&mut self.gone).insert(row) && was_living {
                self.living -= 1;
                self.died.push(row);
            }
        }
    }

    /// Gives the rows from `first` on to their owners.
    fn give(&mut self, first: u32, owners: &[u32]) {
        let current = Arc::make_mut(&mut self.current);
        let highest = owners.iter().filter(|owner| **owner != NONE).max();
        let slots = highest.map_or(0, |owner| *owner as usize + 1);
        if current.len() < slots {
            current.resize(slots, NONE);
        }
        let is_gone = |row: u32| self.gone.contains(row);
        for (row, owner) in (first..).zip(owners).filter(|(_, owner)| **owner != NONE) {
            let current = &mut current[*owner as usize];
            let before = *current;
            if before != NONE && before >= row {
                continue;
            }
            if before != NONE && !is_gone(before) {
                self.living -= 1;
                self.died.push(before);
            }
            *current = row;
            self.living += u32::from(!is_gone(row));
        }
    }

    /// Keeps what the log says of the rows from `first` on. A group that begins with a chunk becomes that chunk.
    fn lay(&mut self, first: u32, said: RowChunk) {
        if said.owners.is_empty() {
            return;
        }
        self.rows = self.rows.max(first + said.owners.len() as u32);
        let (mut number, mut place) = (first as usize / CHUNK_ROWS, first as usize % CHUNK_ROWS);
        if place == 0 && said.owners.len() <= CHUNK_ROWS && self.chunks.len() <= number {
            while self.chunks.len() < number {
                self.begin(RowChunk::default());
            }
            self.begin(said);
            return;
        }
        let (mut owners, mut digests) = (&said.owners[..], &said.digests[..]);
        while !owners.is_empty() {
            let length = owners.len().min(CHUNK_ROWS - place);
            while self.chunks.len() <= number {
                self.begin(RowChunk::default());
            }
            let chunk = Arc::make_mut(&mut Arc::make_mut(&mut self.chunks)[number]);
            fill(chunk, place + length);
            let (these, others) = owners.split_at(length);
            chunk.owners[place..][..length].copy_from_slice(these);
            owners = others;
            let (these, others) = digests.split_at(length);
            chunk.digests[place..][..length].copy_from_slice(these);
            digests = others;
            (number, place) = (number + 1, 0);
        }
    }

    /// Begins a chunk. The one before is full then: rows that no group names are nobody's, and a log of ours has none.
    fn begin(&mut self, chunk: RowChunk) {
        let chunks = Arc::make_mut(&mut self.chunks);
        if let Some(last) = chunks.last_mut().filter(|last| last.owners.len() < CHUNK_ROWS) {
            fill(Arc::make_mut(last), CHUNK_ROWS);
        }
        chunks.push(Arc::new(chunk));
    }
}

/// What a group says, and the slots of its records.
struct Owned {
    space: String,
    generation: u64,
    row: u32,
    chunk: RowChunk,
    gone: Vec<u32>,
}

impl Owned {
    /// Reads a group. Its records most often came together: `next` is where the next one is looked for first.
    fn read(state: &State, slot: u32, next: &mut u32) -> Option<Self> {
        let record = state.slots.record(slot);
        let Some(VectorRecord::Group(group)) = read(&state.slots.id(slot), &record) else {
            return None;
        };
        let mut owner = |id: &[u8]| {
            let found = state.slots.of_spelled_near(id, *next);
            *next = found.map_or(*next, |slot| slot + 1);
            found.unwrap_or(NONE)
        };
        Some(Self {
            chunk: RowChunk {
                owners: group.ids.iter().map(|id| owner(id)).collect(),
                digests: group.digests,
            },
            space: group.space,
            generation: group.generation,
            row: group.row,
            gone: group.gone,
        })
    }
}

fn fill(chunk: &mut RowChunk, length: usize) {
    if chunk.owners.len() < length {
        chunk.owners.resize(length, NONE);
        chunk.digests.resize(length, [0; 32]);
    }
}

/// All spaces, as far as the state was looked through.
#[derive(Debug, Default)]
pub struct Spaces {
    pub spaces: BTreeMap<String, RowIndex>,
    /// Spaces that were dropped, and the generation that each had last: their files may still be there.
    pub dropped: BTreeMap<String, u64>,
    choice: Option<String>,
    mark: Watermark,
}

impl Spaces {
    /// The space that is asked when none is named.
    pub fn choice(&self) -> &str {
        self.choice.as_deref().unwrap_or(FIRST_SPACE)
    }

    /// Takes in what was said since the last time.
    pub fn follow(&mut self, state: &State, threads: usize) {
        if !self.mark.is_behind(state.changes()) {
            return;
        }
        let mut fresh = state.of_face_since(VECTORS, &self.mark);
        self.mark = state.changes().watermark();
        let mut moved = false;
        let of_groups = |slot: &u32| group_space(&state.slots.id(*slot)).is_some();
        for slot in fresh.iter().filter(|slot| !of_groups(slot)) {
            let (id, record) = (state.slots.id(*slot), state.slots.record(*slot));
            match read(&id, &record) {
                Some(VectorRecord::Space(bound)) => moved |= self.bind(bound),
                Some(VectorRecord::Choice(space)) => self.choice = Some(space),
                Some(VectorRecord::Group(_)) => {}
                None => self.drop(space_name(&id), &record),
            }
        }
        moved |= self.bind_implied(state, &fresh);
        if moved {
            // Rows of another generation: those of its groups count that were passed over before.
            fresh = state.of_face(VECTORS, None).collect();
        }
        fresh.retain(of_groups);
        // A store that is opened has to look up all owners once. Threads take many groups at a time: to hand something over
        // takes about as long as to read one.
        let pieces: Vec<&[u32]> = fresh.chunks(PIECE_GROUPS).collect();
        let work = |index: u64, piece: &mut Vec<Owned>| {
            let mut next = 0;
            let groups = pieces[index as usize].iter();
            piece.extend(groups.filter_map(|slot| Owned::read(state, *slot, &mut next)));
            Ok(())
        };
        let outcome = in_order(pieces.len() as u64, threads, work, |piece: &mut Vec<Owned>| {
            for owned in piece.drain(..) {
                if let Some(index) = self.spaces.get_mut(&owned.space) {
                    index.take(owned);
                }
            }
            Ok::<_, io::Error>(true)
        });
        // INVARIANT: neither reading nor taking in can fail.
        debug_assert!(outcome.is_ok());
    }

    /// Binds spaces that groups speak of in a later generation than their own records do; whether one that was known before has moved.
    fn bind_implied(&mut self, state: &State, fresh: &[u32]) -> bool {
        let mut found: BTreeMap<String, Bound> = BTreeMap::new();
        for slot in fresh {
            let (id, record) = (state.slots.id(*slot), state.slots.record(*slot));
            let Some((space, generation)) = file_of(&id, &record) else {
                continue;
            };
            let bound = self.spaces.get(space).map(|index| &index.bound);
            let known = found.get(space).or(bound).map(|bound| bound.generation);
            if known.or_else(|| self.dropped.get(space).copied()) >= Some(generation) || !names_rows(&record) {
                continue;
            }
            if let Some(dim) = dim_in(&record) {
                // What moved is of the same model, and rows of the same kind.
                let before = bound.filter(|bound| bound.dim == dim);
                let bound = Bound {
                    name: space.to_owned(),
                    model: before.map_or_else(String::new, |bound| bound.model.clone()),
                    dim,
                    generation,
                    tokens: before.map_or(0, |bound| bound.tokens),
                };
                found.insert(space.to_owned(), bound);
            }
        }
        let mut moved = false;
        for (name, bound) in found {
            moved |= self.bind(bound);
            if let Some(index) = self.spaces.get_mut(&name) {
                index.is_implied = true;
            }
        }
        moved
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
                known.is_implied = false;
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
