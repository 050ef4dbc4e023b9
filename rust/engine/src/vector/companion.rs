//! What is a row in eight bits a component, and how much of it is lost?
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

use super::cpu::Cpu;
use super::rows::{Misfit, Rows, checked_dim};
use super::score::{LANES, has_direction, tree};
use super::team::together;
use crate::memory::Room;

/// How many rows lie side by side.
pub const GROUP_ROWS: usize = 16;
/// Four components of each row of a group.
const STEP_BYTES: usize = 4 * GROUP_ROWS;
/// Scales and rests of a group.
const TAIL_BYTES: usize = 2 * 4 * GROUP_ROWS;
/// What a code of zero is stored as.
pub(super) const ZERO_CODE: u8 = 128;
const LARGEST_CODE: f64 = 127.0;
/// How many groups a thread encodes before it asks for more.
const ENCODED_GROUPS: usize = 64;

/// How many bytes a group takes.
#[must_use]
pub const fn group_bytes(dim: usize) -> usize {
    dim.div_ceil(4) * STEP_BYTES + TAIL_BYTES
}

/// What codes leave out, relative to the norm of the vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Loss {
    /// How much a code of one stands for.
    pub scale: f32,
    /// At least the norm of what the codes miss.
    pub residual: f32,
}

/// Added to a small number, it leaves the number's nearest integer in the low bits.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// How a vector becomes codes, eight components at a time; the last eight are filled up with zeros.
pub(super) trait Encode {
    /// The lanes of its square, and its largest component.
    fn measure(eights: Eights<'_>) -> ([f64; LANES], f32);
    /// Writes the codes; returns the lanes of the square of what they miss.
    fn quantise(eights: Eights<'_>, step: f64, codes: &mut [[u8; LANES]]) -> [f64; LANES];
}

/// A vector in steps of eight components.
#[derive(Clone, Copy)]
pub(super) struct Eights<'a> {
    whole: &'a [[f32; LANES]],
    last: [f32; LANES],
}

impl<'a> Eights<'a> {
    #[inline(always)]
    fn new(vector: &'a [f32]) -> Self {
        let (whole, rest) = vector.as_chunks::<LANES>();
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        Self { whole, last }
    }

    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        self.whole.len() + 1
    }

    #[inline(always)]
    pub(super) fn get(&self, at: usize) -> &[f32; LANES] {
        if at < self.whole.len() {
            &self.whole[at]
        } else {
            &self.last
        }
    }
}

/// How many eights a vector takes, when one more is always there.
pub(super) const fn eights_of(dim: usize) -> usize {
    dim / LANES + 1
}

/// Codes of a vector, as they are stored, and zeros behind them, up to [`eights_of`].
///
/// A vector without direction becomes zeros without a loss, as its score is zero.
#[inline(always)]
pub(super) fn encode<E: Encode>(vector: &[f32], codes: &mut [[u8; LANES]]) -> Loss {
    let eights = Eights::new(vector);
    let (squares, top) = E::measure(eights);
    let norm = tree(squares).sqrt();
    if !has_direction(norm) {
        codes.fill([ZERO_CODE; LANES]);
        return Loss {
            scale: 0.0,
            residual: 0.0,
        };
    }
    let scale = (f64::from(top) / LARGEST_CODE / norm) as f32;
    let misses = E::quantise(eights, f64::from(scale) * norm, codes);
    // Rounding in float64 falsifies each difference by less than 2^-50 of the norm taken together, and the sum and its
    // root by less than one part in 2^34 for every dimension that is allowed.
    let residual = tree(misses).sqrt() / norm * (1.0 + 2f64.powi(-34)) + 2f64.powi(-50);
    Loss {
        scale,
        residual: round_up(residual),
    }
}

/// The least float32 that is not below.
#[inline(always)]
pub(super) fn round_up(value: f64) -> f32 {
    let near = value as f32;
    if f64::from(near) < value { near.next_up() } else { near }
}

/// The greatest float32 that is not above.
#[inline(always)]
pub(super) fn round_down(value: f64) -> f32 {
    -round_up(-value)
}

/// Writes the groups from `first` on into `out`, as many as fit.
///
/// # Errors
/// If `out` does not end with a group, or the rows end before.
pub fn encode_groups(rows: Rows<'_>, first: usize, out: &mut [u8], cpu: Cpu) -> Result<(), Misfit> {
    let bytes = group_bytes(rows.dim());
    let groups = out.len() / bytes;
    let there = rows.count() as usize / GROUP_ROWS;
    if groups * bytes != out.len() || first + groups > there {
        return Err(Misfit::Length {
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

/// Whole groups in memory, wherever they came from.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    parts: Parts<'a>,
    dim: usize,
}

#[derive(Clone, Copy, Debug)]
enum Parts<'a> {
    Whole(&'a [u8]),
    /// Equal numbers of groups in each but the last.
    Blocks(&'a [&'a [u8]], usize),
}

/// One group: codes in steps of four components, and what each row lost.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeGroup<'a> {
    pub(super) codes: &'a [[u8; STEP_BYTES]],
    pub(super) scales: [f32; GROUP_ROWS],
    pub(super) residuals: [f32; GROUP_ROWS],
}

impl<'a> Groups<'a> {
    /// Takes bytes that [`encode_groups`] wrote.
    ///
    /// # Errors
    /// If the dimension is refused, or the bytes end inside a group.
    pub fn new(bytes: &'a [u8], dim: usize) -> Result<Self, Misfit> {
        check_whole(bytes, dim)?;
        Ok(Self {
            parts: Parts::Whole(bytes),
            dim,
        })
    }

    /// The same in blocks of so many groups each, wherever each block lies. Only the last may have fewer.
    ///
    /// # Errors
    /// If the dimension is refused, or a block has another length.
    pub fn in_blocks(blocks: &'a [&'a [u8]], groups: usize, dim: usize) -> Result<Self, Misfit> {
        let each = group_bytes(checked_dim(dim)?);
        let expected = each * groups;
        let (last, others) = blocks
            .split_last()
            .map_or((&[][..], blocks), |(last, others)| (*last, others));
        let is_last_short = last.len() < expected && last.len().is_multiple_of(each);
        let other = others.iter().find(|block| block.len() != expected);
        match other.or((last.len() != expected && !is_last_short).then_some(&last)) {
            Some(other) => Err(Misfit::Length {
                expected,
                found: other.len(),
            }),
            None => Ok(Self {
                parts: Parts::Blocks(blocks, groups.max(1)),
                dim,
            }),
        }
    }

    /// How many components a row has.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        match self.parts {
            Parts::Whole(bytes) => bytes.len() / group_bytes(self.dim),
            Parts::Blocks(blocks, each) => blocks.split_last().map_or(0, |(last, others)| {
                others.len() * each + last.len() / group_bytes(self.dim)
            }),
        }
    }

    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> CodeGroup<'a> {
        let each = group_bytes(self.dim);
        let bytes = match self.parts {
            Parts::Whole(bytes) => &bytes[group * each..][..each],
            Parts::Blocks(blocks, groups) => &blocks[group / groups][group % groups * each..][..each],
        };
        let (codes, tail) = bytes.split_at(each - TAIL_BYTES);
        let (scales, residuals) = tail.split_at(TAIL_BYTES / 2);
        CodeGroup {
            codes: codes.as_chunks().0,
            scales: floats(scales),
            residuals: floats(residuals),
        }
    }
}

fn check_whole(bytes: &[u8], dim: usize) -> Result<(), Misfit> {
    let each = group_bytes(checked_dim(dim)?);
    if bytes.len().is_multiple_of(each) {
        return Ok(());
    }
    Err(Misfit::Length {
        expected: bytes.len() / each * each,
        found: bytes.len(),
    })
}

#[inline(always)]
fn floats(bytes: &[u8]) -> [f32; GROUP_ROWS] {
    let fours = bytes.as_chunks::<4>().0;
    let mut floats = [0.0; GROUP_ROWS];
    for row in 0..GROUP_ROWS {
        floats[row] = f32::from_le_bytes(fours[row]);
    }
    floats
}

/// Groups that are kept in memory and grow with their rows.
#[derive(Debug)]
pub struct Companion {
    room: Room,
    groups: usize,
    dim: usize,
}

impl Companion {
    /// A companion of no rows.
    ///
    /// # Errors
    /// If the dimension is refused.
    pub fn new(dim: usize) -> Result<Self, Misfit> {
        Ok(Self {
            room: Room::new(0).map_err(|_| Misfit::Memory)?,
            groups: 0,
            dim: checked_dim(dim)?,
        })
    }

    /// The groups so far.
    #[must_use]
    pub fn groups(&self) -> Groups<'_> {
        Groups {
            parts: Parts::Whole(self.bytes()),
            dim: self.dim,
        }
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
    pub fn extend(&mut self, rows: Rows<'_>, threads: usize, cpu: Cpu) -> Result<(), Misfit> {
        if rows.dim() != self.dim {
            return Err(Misfit::OtherDimension {
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
        outcomes.into_iter().collect::<Result<(), Misfit>>()?;
        self.groups = new;
        Ok(())
    }

    fn make_room(&mut self, bytes: usize) -> Result<(), Misfit> {
        if self.room.bytes().len() >= bytes {
            return Ok(());
        }
        let used = self.bytes();
        let mut room = Room::new(bytes.max(used.len() + used.len() / 2)).map_err(|_| Misfit::Memory)?;
        room.bytes_mut()[..used.len()].copy_from_slice(used);
        self.room = room;
        Ok(())
    }
}
