//! Compares the companions on disk with the rows that they were made of.
//!
//! Their checksums guard against accidents. Whoever forges codes forges those too, and codes decide which rows are scored:
//! so they are made again from the rows and compared.

use std::io;

use super::check::{are_rows, map_rows};
use super::companions::{Companions, codes_bytes, slot_bytes};
use crate::store::vectors::records::format::Bound;
use crate::store::vectors::records::index::{CHUNK_ROWS, RowChunk, Spaces};
use chronolog::damage::{Damage, DamageKind};
use chronolog::disk::Disk;
use chronolog::layout::{Layout, index_name};
use chronolog::ordered::in_order;
use chronolog::verify::finding;
use chronomemory_search::vector::companion::encode_groups;
use chronomemory_search::vector::{Cpu, VectorRows};
use chronomemory_state::state::State;

/// Finds companions that would be believed and are not those of the rows that the log names. A chunk with a damaged row is
/// passed over: that row is a finding of its own, and what was made of it when it was whole is right.
pub fn altered_companions(disk: &dyn Disk, layout: &Layout, state: &State, threads: usize) -> Vec<Damage> {
    let mut known = Spaces::default();
    known.follow(state, threads);
    let mut found = Vec::new();
    for index in known.spaces.values() {
        let bound = &index.bound;
        let path = layout.companion(&bound.name, bound.generation);
        if !disk.exists(&path) {
            continue;
        }
        let companions = Companions::new(disk, layout, bound);
        let whole = index
            .chunks
            .iter()
            .take_while(|chunk| chunk.digests.len() == CHUNK_ROWS);
        let Some((_, slots)) = companions.map(whole.count()) else {
            continue;
        };
        // Rows that cannot be mapped are findings of their own.
        let Ok(rows) = map_rows(disk, layout, bound, u64::MAX) else {
            continue;
        };
        let each = slot_bytes(bound.dim);
        let compare = |number: u64, is_forged: &mut bool| {
            let number = number as usize;
            let (chunk, codes) = (&index.chunks[number], &slots.bytes()[number * each..]);
            let codes = &codes[..codes_bytes(bound.dim)];
            *is_forged = companions.is_right(slots.bytes(), number, chunk)
                && made_of(rows.bytes(), bound, number, chunk).is_some_and(|right| right != codes);
            Ok(())
        };
        let mut forged = None;
        let mut number = 0;
        let chunks = (slots.bytes().len() / each) as u64;
        let outcome = in_order(chunks, threads, compare, |is_forged: &mut bool| {
            forged = is_forged.then_some(number);
            number += 1;
            Ok::<_, io::Error>(forged.is_none())
        });
        // INVARIANT: nothing here can fail.
        debug_assert!(outcome.is_ok());
        if let Some(number) = forged {
            let first = number * CHUNK_ROWS;
            let reason = format!(
                "the codes of rows {first} to {} are not those of the rows",
                first + CHUNK_ROWS - 1
            );
            found.push(Damage {
                offset: (number * each) as u64,
                ..finding(&index_name(&path), DamageKind::IndexAltered, reason)
            });
        }
    }
    found
}

/// The codes of a chunk; `None` if one of its rows is not what the log says.
fn made_of(rows: &[u8], bound: &Bound, number: usize, chunk: &RowChunk) -> Option<Vec<u8>> {
    let first = number * CHUNK_ROWS;
    let are_right = are_rows(rows, first as u32, bound, &chunk.digests);
    // What no group names has no digest, is nobody's, and no damage.
    let mut rows_of_chunk = are_right.iter().zip(&chunk.digests);
    if !rows_of_chunk.all(|(is_right, digest)| *is_right || *digest == [0; 32]) {
        return None;
    }
    let stride = 4 * bound.dim;
    let floats = bytemuck::try_cast_slice(rows.get(first * stride..(first + CHUNK_ROWS) * stride)?).ok()?;
    let mut codes = vec![0; codes_bytes(bound.dim)];
    encode_groups(VectorRows::packed(floats, bound.dim).ok()?, 0, &mut codes, Cpu::best()).ok()?;
    Some(codes)
}
