//! The companion of rows: their codes in eight bits a component, with a bound of what is lost.
//!
//! A row `x` of norm `n` becomes codes `c`, whole numbers from -127 to 127, and a scale `a`, so that `x / n = a·c + e`.
//! The norm of the rest `e` is kept, rounded up: whatever the codes are, it says how far they miss. Everything is
//! relative to the norm, so a scale is never too large or too small for a float32, and the norm is computed along with
//! the score.
//!
//! Sixteen rows are a *group*; only whole groups are written, once. Their codes are interleaved: four components of row
//! 0, the same four of row 1, up to row 15, then the next four. So all sixteen sums grow side by side in one register,
//! and one load serves any number of queries. Behind the codes lie sixteen scales and sixteen rests, little-endian.
//! Codes are stored 128 above their value, unsigned, as the dot product of x86-64 wants one side.
//!
//! A companion is derived from its rows and may be thrown away at any time.

use std::sync::{Mutex, PoisonError};

use super::cpu::Cpu;
use super::groups::{GROUP_ROWS, Groups, STEP_BYTES, TAIL_BYTES, group_bytes};
use super::lanes::{LANES, has_direction, tree};
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

/// What a code of zero is stored as.
pub(super) const ZERO_CODE: u8 = 128;
const LARGEST_CODE: f64 = 127.0;
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
