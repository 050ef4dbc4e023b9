//! The companion of rows: their codes in eight bits a component, with a bound of what is lost.
//!
//! A row `x` of norm `n` becomes codes `c`, whole numbers from -127 to 127, and a scale `a`, so that `x / n = a·c + e`.
//! The norm of the rest `e` is kept, rounded up. Codes are rounded to the nearest, but nothing depends on it: whatever
//! the codes are, the rest says how far they miss.
//!
//! Everything is kept relative to the norm. So a scale is never too large or too small for a float32, whatever the row
//! holds, and the norm itself need not be kept: it is computed along with the score, from the row.
//!
//! Sixteen rows are a *group*, and only whole groups are written, once. In a group the codes are interleaved: four
//! components of row 0, the same four of row 1, and so on to row 15, then the next four. The sums of all sixteen rows
//! then grow side by side in one register, no sum has to be gathered from its lanes, and one load serves any number of
//! queries. Behind the codes lie sixteen scales and sixteen rests, little-endian. Codes are stored 128 above their
//! value, unsigned, since that is what the dot product of x86-64 wants of one side.
//!
//! A companion is derived from its rows and may be thrown away at any time.

use std::sync::{Mutex, PoisonError};

use super::codes::eights_of;
use super::cpu::Cpu;
use super::groups::{GROUP_ROWS, Groups, STEP_BYTES, TAIL_BYTES, group_bytes};
use super::lanes::LANES;
use super::rows::{VectorMisfit, VectorRows, checked_dim};
use super::team::together;
use chronolog::memory::AlignedBytes;

/// How many groups a thread encodes before it asks for more.
const ENCODED_GROUPS: usize = 64;

/// Writes the groups from `first` on into `out`, as many as fit.
///
/// # Errors
/// If `out` does not end with a group, or the rows end before.
pub fn encode_groups(rows: VectorRows<'_>, first: usize, out: &mut [u8], cpu: Cpu) -> Result<(), VectorMisfit> {
    let bytes = group_bytes(rows.dim());
    let groups = out.len() / bytes;
    let there = rows.count() as usize / GROUP_ROWS;
    if groups * bytes != out.len() || first + groups > there {
        return Err(VectorMisfit::Length {
            expected: there.saturating_sub(first).min(groups) * bytes,
            found: out.len(),
        });
    }
    let mut codes = vec![[0; LANES]; eights_of(rows.dim())];
    for (group, out) in (first..).zip(out.chunks_exact_mut(bytes)) {
        let (steps, tail) = out.split_at_mut(bytes - TAIL_BYTES);
        let (scales, residuals) = tail.as_chunks_mut::<4>().0.split_at_mut(GROUP_ROWS);
        for place in 0..GROUP_ROWS {
            let loss = cpu.encode(rows.row((group * GROUP_ROWS + place) as u32), &mut codes);
            let fours = codes.as_flattened().as_chunks::<4>().0;
            for (four, step) in fours.iter().zip(steps.as_chunks_mut::<STEP_BYTES>().0) {
                step.as_chunks_mut().0[place] = *four;
            }
            scales[place] = loss.scale.to_le_bytes();
            residuals[place] = loss.residual.to_le_bytes();
        }
    }
    Ok(())
}

/// Groups that are kept in memory and grow with their rows.
#[derive(Debug)]
pub struct Companion {
    room: AlignedBytes,
    groups: usize,
    dim: usize,
}

impl Companion {
    /// A companion of no rows.
    ///
    /// # Errors
    /// If the dimension is refused.
    pub fn new(dim: usize) -> Result<Self, VectorMisfit> {
        Ok(Self {
            room: AlignedBytes::new(0).map_err(|_| VectorMisfit::Memory)?,
            groups: 0,
            dim: checked_dim(dim)?,
        })
    }

    /// The groups so far.
    #[must_use]
    pub fn groups(&self) -> Groups<'_> {
        Groups::known(self.bytes(), self.dim)
    }

    /// Their bytes, end to end.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.room.bytes()[..self.groups * group_bytes(self.dim)]
    }

    /// Adds every whole group of the rows that is not there yet. Rows that are there are taken to be the same.
    ///
    /// # Errors
    /// If the rows have another dimension, or there is no memory.
    pub fn extend(&mut self, rows: VectorRows<'_>, threads: usize, cpu: Cpu) -> Result<(), VectorMisfit> {
        if rows.dim() != self.dim {
            return Err(VectorMisfit::OtherDimension {
                expected: self.dim,
                found: rows.dim(),
            });
        }
        let each = group_bytes(self.dim);
        let (old, new) = (self.groups, rows.count() as usize / GROUP_ROWS);
        if new <= old {
            return Ok(());
        }
        self.make_room(new * each)?;
        let fresh = &mut self.room.bytes_mut()[old * each..new * each];
        let threads = threads.min((new - old).div_ceil(ENCODED_GROUPS));
        let pieces = Mutex::new(
            (old..)
                .step_by(ENCODED_GROUPS)
                .zip(fresh.chunks_mut(ENCODED_GROUPS * each)),
        );
        let outcomes = together(threads, || {
            loop {
                let piece = pieces.lock().unwrap_or_else(PoisonError::into_inner).next();
                match piece {
                    Some((first, out)) => encode_groups(rows, first, out, cpu)?,
                    None => return Ok(()),
                }
            }
        });
        outcomes.into_iter().collect::<Result<(), VectorMisfit>>()?;
        self.groups = new;
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), VectorMisfit> {
        if self.room.bytes().len() >= bytes {
            return Ok(());
        }
        let used = self.bytes();
        let mut room = AlignedBytes::new(bytes.max(used.len() + used.len() / 2)).map_err(|_| VectorMisfit::Memory)?;
        room.bytes_mut()[..used.len()].copy_from_slice(used);
        self.room = room;
        Ok(())
    }
}
