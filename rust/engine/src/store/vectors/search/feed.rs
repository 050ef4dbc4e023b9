//! Hands out the embeddings of blocks that came since somebody looked last.

use std::collections::HashMap;

use crate::store::vectors::known::Vectors;
use crate::store::vectors::records::format::space_name;
use crate::store::vectors::records::read::{VectorRecord, read};
use crate::store::vectors::rows::check::{is_row, map_rows, row_bytes};
use chronolog::disk::Mapping;
use chronolog::error::{At, Result};
use chronolog::event::faces::VECTORS;
use chronomemory_search::blocks::{BlockColumns, block_in};
use chronomemory_state::state::State;

impl Vectors {
    /// Tells columns of blocks which embeddings are new, checked against the log: a row that is damaged is none.
    ///
    /// # Errors
    /// `Io`.
    pub fn feed(&self, state: &State, columns: &mut BlockColumns) -> Result<()> {
        let mut slots = state.of_face_since(VECTORS, columns.embedded());
        let known = self.known(state);
        // A space that was dropped, or had rows in another file before: who had an embedding there cannot be told any more.
        let is_other = |slot: &u32| {
            let name = space_name(state.spelled_id(*slot));
            let space = name.map(|name| known.spaces.spaces.get(name));
            space.is_some_and(|space| space.is_none_or(|index| index.bound.generation > 0))
        };
        if columns.embeddings_seen() > 0 && slots.iter().any(is_other) {
            *columns = BlockColumns::default();
            columns.follow(state);
            slots = state.of_face(VECTORS).collect();
        }
        let told = slots.len();
        let mut lacks = false;
        let mut files: HashMap<String, Mapping> = HashMap::new();
        for slot in slots {
            let word = read(state.spelled_id(slot), state.record_in(slot));
            let Some(VectorRecord::Group(group)) = word else {
                continue;
            };
            let Some(index) = known.spaces.spaces.get(&group.space) else {
                continue;
            };
            let bound = &index.bound;
            if bound.generation != group.generation {
                continue;
            }
            if !files.contains_key(&bound.name) {
                let path = self.site.layout.rows(&bound.name, bound.generation);
                let bytes = u64::from(index.rows) * bound.stride();
                let mapped = map_rows(&*self.site.disk, &self.site.layout, bound, bytes).at(&path)?;
                files.insert(bound.name.clone(), mapped);
            }
            let rows = files.get(&bound.name).map(Mapping::bytes).unwrap_or_default();
            for ((row, id), digest) in (group.row..).zip(&group.ids).zip(&group.digests) {
                let Some(block) = block_in(id) else { continue };
                let current = state.slot_spelled(id).and_then(|owner| index.row_of(owner));
                if current.is_some_and(|current| current != row) {
                    continue;
                }
                let is_good = current == Some(row) && is_row(rows, row, bound, digest);
                lacks |= current == Some(row) && !is_good;
                let bytes = row_bytes(rows, row, bound).filter(|_| is_good);
                if bound.tokens > 0 {
                    columns.take_codes(&bound.name, block, bound.tokens, bytes);
                    continue;
                }
                let vector: Option<Vec<f32>> = bytes.map(|bytes| {
                    let (values, _) = bytes.as_chunks::<4>();
                    values.iter().map(|&value| f32::from_le_bytes(value)).collect()
                });
                columns.take_embedding(&bound.name, block, vector.as_deref());
            }
        }
        columns.end_embeddings(state, told, lacks, self.threads);
        Ok(())
    }
}
