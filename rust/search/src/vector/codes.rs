//! The codes of rows: eight bits a component in two planes of four, and bounds of what the codes miss.
//!
//! A row is divided by its norm and turned by a fixed orthogonal transform ([`Turn`]), so that no component is much larger than the
//! others. Component `i` becomes a number `v` from 0 to 255 that stands for `a · (v − 127.5)`, where `a` is the same for the row. The upper
//! four bits of `v` lie in the *high plane*, the lower four in the *low plane*.
//!
//! - Sixteen rows are a *group* of the high plane. Eight components are a step of 64 bytes: byte `4 r + j` has components `j` and `j + 4`
//!   of row `r` in its lower and upper half. So one load serves sixteen rows. Behind the steps lie sixteen scales (one divided by the norm
//!   of the upper halves less 7.5) and sixteen residuals (the sine of the angle between the row and the upper halves), as float32.
//! - The low plane has one row after the other, each in the same order; behind it lie `a` and the norm of what all eight bits miss.
//!
//! Both bounds are measured and rounded outwards. Codes are derived from rows and the same on every processor.

use std::ops::Range;

use super::cpu::Cpu;
use super::lanes::{LANES, has_direction, tree};
use super::rows::{VectorMisfit, VectorRows, checked_dim};
use super::turn::Turn;
use chronolog::memory::AlignedBytes;
use chronomemory_state::segment::Container;

/// How many rows lie side by side.
pub const GROUP_ROWS: usize = 16;
/// How many groups a part has, unless it is the last.
pub const PART_GROUPS: usize = 64;
/// How many rows that is.
const PART_ROWS: usize = PART_GROUPS * GROUP_ROWS;
/// How many components are a step.
const STEP: usize = 8;
/// The bytes of a step for one row, and for a group.
const ROW_STEP: usize = STEP / 2;
pub(super) const STEP_BYTES: usize = ROW_STEP * GROUP_ROWS;
/// Scales and residuals of a group.
const TAIL_BYTES: usize = 2 * 4 * GROUP_ROWS;
/// The scale and the residual of a row in the low plane.
const LOW_TAIL_BYTES: usize = 8;
/// The number that stands for zero.
const MIDDLE: f64 = 127.5;
/// At least the norm of all that is rounded when a vector of norm 1 is turned: 77 operations on float32, each to one part in 2^24.
pub(super) const TURN_SLACK: f64 = 1.0 / (1u64 << 17) as f64;
/// The residual of a row that no bound excludes.
const NO_BOUND: f32 = f32::NAN;
/// Up to this sine of the angle to its high plane a row has a bound.
const LARGEST_SINE: f64 = 0.8;

/// How many bytes a group takes in the high plane.
#[must_use]
pub const fn high_bytes(dim: usize) -> usize {
    dim.div_ceil(STEP) * STEP_BYTES + TAIL_BYTES
}

/// How many bytes a row takes in the low plane.
#[must_use]
pub const fn low_bytes(dim: usize) -> usize {
    dim.div_ceil(STEP) * ROW_STEP + LOW_TAIL_BYTES
}

/// Writes the codes of the first groups, as many as there is room for.
///
/// # Errors
/// If the planes have room for other groups than each other, or the rows end before.
fn encode(rows: VectorRows<'_>, high: &mut [u8], low: &mut [u8], cpu: Cpu) -> Result<(), VectorMisfit> {
    let dim = rows.dim();
    let groups = high.len() / high_bytes(dim);
    let there = rows.count() as usize / GROUP_ROWS;
    if groups * high_bytes(dim) != high.len() || groups * GROUP_ROWS * low_bytes(dim) != low.len() || groups > there {
        return Err(VectorMisfit::Length {
            expected: there.min(groups) * high_bytes(dim),
            found: high.len(),
        });
    }
    let mut encoder = Encoder::new(dim);
    let lows = low.chunks_exact_mut(GROUP_ROWS * low_bytes(dim));
    for (group, (high, low)) in (0..).zip(high.chunks_exact_mut(high_bytes(dim)).zip(lows)) {
        let (steps, tail) = high.split_at_mut(high_bytes(dim) - TAIL_BYTES);
        let (scales, residuals) = tail.as_chunks_mut::<4>().0.split_at_mut(GROUP_ROWS);
        for (place, low) in low.chunks_exact_mut(low_bytes(dim)).enumerate() {
            let loss = cpu.encode(rows.row((group * GROUP_ROWS + place) as u32), &mut encoder);
            let (codes, tail) = low.split_at_mut(low_bytes(dim) - LOW_TAIL_BYTES);
            let both = steps
                .as_chunks_mut::<STEP_BYTES>()
                .0
                .iter_mut()
                .zip(codes.as_chunks_mut::<ROW_STEP>().0);
            for ((step, low), values) in both.zip(encoder.codes.as_chunks::<STEP>().0) {
                let high = &mut step.as_chunks_mut::<ROW_STEP>().0[place];
                for at in 0..ROW_STEP {
                    let (one, other) = (values[at], values[at + ROW_STEP]);
                    high[at] = one >> 4 | other & 0xF0;
                    low[at] = one & 0x0F | other << 4;
                }
            }
            scales[place] = loss.scale.to_le_bytes();
            residuals[place] = loss.residual.to_le_bytes();
            tail[..4].copy_from_slice(&loss.fine_scale.to_le_bytes());
            tail[4..].copy_from_slice(&loss.fine_residual.to_le_bytes());
        }
    }
    Ok(())
}

/// What the codes of a row mean, relative to its norm.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Loss {
    /// One divided by the norm of twice the upper halves less 15.
    scale: f32,
    /// At least the sine of the angle between the row and these.
    residual: f32,
    /// How much a code of one stands for.
    fine_scale: f32,
    /// At least the norm of what the codes miss.
    fine_residual: f32,
}

/// The turned row and its codes, filled up to a multiple of eight.
pub(super) struct Encoder {
    turn: Turn,
    turned: Vec<f32>,
    codes: Vec<u8>,
}

impl Encoder {
    fn new(dim: usize) -> Self {
        Self {
            turn: Turn::of(dim),
            turned: vec![0.0; dim.next_multiple_of(STEP)],
            codes: vec![0; dim.next_multiple_of(STEP)],
        }
    }

    /// See [`Cpu::encode`]. A vector without direction scores zero: its codes mean zero, without a loss.
    #[inline(always)]
    pub(super) fn encode(&mut self, vector: &[f32]) -> Loss {
        if !turned(vector, &self.turn, &mut self.turned) {
            self.codes.fill(0);
            return Loss::default();
        }
        let top = largest(&self.turned);
        let step = top / MIDDLE as f32;
        let inverse = 1.0 / step;
        for (code, value) in self.codes.iter_mut().zip(&self.turned) {
            // Casts stay within 0 to 255 whatever the number is.
            *code = (value * inverse + 128.0) as u8;
        }
        let (mut products, mut misses) = ([0.0; LANES], [0.0; LANES]);
        let mut square = [0i32; LANES];
        let (codes, values) = (&self.codes[..vector.len()], &self.turned[..vector.len()]);
        let mut add = |lane: usize, code: u8, value: f32| {
            // Twice the upper half less 7.5: an odd number.
            let odd = 2 * i32::from(code >> 4) - 15;
            square[lane] += odd * odd;
            products[lane] += f64::from(odd) * f64::from(value);
            let left = f64::from(value) - (f64::from(code) - MIDDLE) * f64::from(step);
            misses[lane] += left * left;
        };
        let (code_eights, code_rest) = codes.as_chunks::<LANES>();
        let (value_eights, value_rest) = values.as_chunks::<LANES>();
        for at in 0..code_eights.len() {
            for lane in 0..LANES {
                add(lane, code_eights[at][lane], value_eights[at][lane]);
            }
        }
        for lane in 0..code_rest.len() {
            add(lane, code_rest[lane], value_rest[lane]);
        }
        let norm = f64::from(square.iter().sum::<i32>()).sqrt();
        let cosine = tree(products) / norm - 2.0 * TURN_SLACK;
        let sine = (1.0 - cosine.min(1.0) * cosine.min(1.0)).max(0.0).sqrt();
        Loss {
            scale: (1.0 / norm) as f32,
            residual: if cosine > 0.0 && sine < LARGEST_SINE {
                round_up(sine)
            } else {
                NO_BOUND
            },
            fine_scale: step,
            fine_residual: round_up(tree(misses).sqrt() + 2.0 * TURN_SLACK),
        }
    }
}

/// Divides a vector by its norm and turns it, into a vector that may be longer; false for one without direction.
#[inline(always)]
fn turned(vector: &[f32], turn: &Turn, out: &mut [f32]) -> bool {
    let mut squares = [0.0; LANES];
    let (eights, rest) = vector.as_chunks::<LANES>();
    for eight in eights {
        for lane in 0..LANES {
            squares[lane] += f64::from(eight[lane]) * f64::from(eight[lane]);
        }
    }
    for lane in 0..rest.len() {
        squares[lane] += f64::from(rest[lane]) * f64::from(rest[lane]);
    }
    let norm = tree(squares).sqrt();
    if !has_direction(norm) {
        return false;
    }
    let inverse = 1.0 / norm;
    for (out, value) in out.iter_mut().zip(vector) {
        *out = (f64::from(*value) * inverse) as f32;
    }
    turn.turn(&mut out[..vector.len()]);
    true
}

#[inline(always)]
fn largest(values: &[f32]) -> f32 {
    let mut tops = [0f32; LANES];
    for eight in values.as_chunks::<LANES>().0 {
        for lane in 0..LANES {
            let size = eight[lane].abs();
            tops[lane] = if size > tops[lane] { size } else { tops[lane] };
        }
    }
    tops.iter().fold(0.0, |top, other| top.max(*other))
}

/// The codes of a query: eight bits with a sign.
#[derive(Debug, Default)]
pub(super) struct QueryCodes {
    /// In steps of eight components, filled up with zeros.
    pub(super) codes: Vec<i8>,
    /// How much a code of one stands for.
    pub(super) scale: f32,
    /// At least the norm of what the codes miss.
    pub(super) residual: f64,
}

impl QueryCodes {
    /// The codes of a query that has a direction; none otherwise.
    pub(super) fn of(query: &[f32], turn: &Turn) -> Self {
        let mut values = vec![0.0; query.len().next_multiple_of(STEP)];
        if !turned(query, turn, &mut values) {
            return Self::default();
        }
        let scale = largest(&values) / f32::from(i8::MAX);
        let codes: Vec<i8> = values
            .iter()
            .map(|value| (value / scale).round_ties_even() as i8)
            .collect();
        let left = |(code, value): (&i8, &f32)| f64::from(*value) - f64::from(*code) * f64::from(scale);
        let misses: f64 = codes.iter().zip(&values).map(left).map(|left| left * left).sum();
        Self {
            residual: misses.sqrt() * (1.0 + 2f64.powi(-34)) + 2.0 * TURN_SLACK,
            codes,
            scale,
        }
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

/// Both planes of some groups, in a file or in memory.
#[derive(Clone, Copy, Debug)]
pub struct CodePart<'a> {
    high: Plane<'a>,
    low: Plane<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Plane<'a> {
    Memory(&'a [u8]),
    /// Where it begins in a file whose pages are checked when they are read, and its length.
    File(&'a Container, usize, usize),
}

impl<'a> Plane<'a> {
    fn of_file(file: &'a Container, range: Range<usize>) -> Self {
        Self::File(file, range.start, range.len())
    }

    fn len(&self) -> usize {
        match self {
            Self::Memory(bytes) => bytes.len(),
            Self::File(_, _, length) => *length,
        }
    }

    /// Some bytes; `None` if a page of the file fails its check, which marks the file.
    #[inline(always)]
    fn get(&self, from: usize, length: usize) -> Option<&'a [u8]> {
        match self {
            Self::Memory(bytes) => bytes.get(from..)?.get(..length),
            Self::File(file, start, _) => file.bytes(start + from..start + from + length),
        }
    }
}

impl<'a> CodePart<'a> {
    /// Planes in memory, as [`encode`] wrote them.
    #[must_use]
    pub fn in_memory(high: &'a [u8], low: &'a [u8]) -> Self {
        Self {
            high: Plane::Memory(high),
            low: Plane::Memory(low),
        }
    }

    /// Planes in a file.
    #[must_use]
    pub fn in_file(file: &'a Container, high: Range<usize>, low: Range<usize>) -> Self {
        Self {
            high: Plane::of_file(file, high),
            low: Plane::of_file(file, low),
        }
    }
}

/// The codes of the first rows: parts of [`PART_GROUPS`] groups each, of which the last may be shorter.
#[derive(Clone, Copy, Debug)]
pub struct Codes<'a> {
    parts: &'a [CodePart<'a>],
    groups: usize,
    dim: usize,
}

/// One group of the high plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeGroup<'a> {
    pub(super) codes: &'a [[u8; STEP_BYTES]],
    tail: &'a [u8],
}

impl CodeGroup<'_> {
    /// Scales and residuals, which lie behind the codes.
    #[inline(always)]
    pub(super) fn tail(&self) -> [[f32; GROUP_ROWS]; 2] {
        let (scales, residuals) = self.tail.split_at(TAIL_BYTES / 2);
        [floats(scales), floats(residuals)]
    }
}

/// One row of the low plane.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowRow<'a> {
    pub(super) codes: &'a [u8],
    pub(super) scale: f32,
    pub(super) residual: f32,
}

impl<'a> Codes<'a> {
    /// The codes in these parts.
    ///
    /// # Errors
    /// If the dimension is refused, or a part has another length.
    pub fn new(parts: &'a [CodePart<'a>], dim: usize) -> Result<Self, VectorMisfit> {
        let each = high_bytes(checked_dim(dim)?);
        let mut groups = 0;
        for part in parts {
            let here = part.high.len() / each;
            let is_whole = part.high.len() == here * each && part.low.len() == here * GROUP_ROWS * low_bytes(dim);
            if !is_whole || here > PART_GROUPS || groups % PART_GROUPS != 0 {
                return Err(VectorMisfit::Length {
                    expected: PART_GROUPS * each,
                    found: part.high.len(),
                });
            }
            groups += here;
        }
        Ok(Self { parts, groups, dim })
    }

    /// How many components a row has.
    #[must_use]
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// How many groups there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.groups
    }

    /// A group of the high plane; `None` if its page in the file failed: the search is void then.
    #[inline(always)]
    pub(super) fn group(&self, group: usize) -> Option<CodeGroup<'a>> {
        let each = high_bytes(self.dim);
        let bytes = self.parts[group / PART_GROUPS]
            .high
            .get(group % PART_GROUPS * each, each)?;
        let (codes, tail) = bytes.split_at(each - TAIL_BYTES);
        Some(CodeGroup {
            codes: codes.as_chunks().0,
            tail,
        })
    }

    /// The bytes of a row in the low plane; `None` as above.
    #[inline(always)]
    pub(super) fn low_bytes(&self, row: usize) -> Option<&'a [u8]> {
        let each = low_bytes(self.dim);
        self.parts[row / PART_ROWS].low.get(row % PART_ROWS * each, each)
    }

    /// What they mean.
    #[inline(always)]
    pub(super) fn low(&self, row: usize) -> Option<LowRow<'a>> {
        let bytes = self.low_bytes(row)?;
        let (codes, tail) = bytes.split_at(bytes.len() - LOW_TAIL_BYTES);
        let [scale, residual] = floats(tail);
        Some(LowRow { codes, scale, residual })
    }
}

#[inline(always)]
fn floats<const N: usize>(bytes: &[u8]) -> [f32; N] {
    let fours = bytes.as_chunks::<4>().0;
    let mut floats = [0.0; N];
    for at in 0..N {
        floats[at] = f32::from_le_bytes(fours[at]);
    }
    floats
}

/// Codes that are kept in memory.
#[derive(Debug)]
pub struct MemoryPart {
    planes: AlignedBytes,
    groups: usize,
    dim: usize,
}

impl MemoryPart {
    /// The codes of the first groups of these rows.
    ///
    /// # Errors
    /// If there is no memory, or the rows end before.
    pub fn of(rows: VectorRows<'_>, groups: usize, cpu: Cpu) -> Result<Self, VectorMisfit> {
        let (each, each_low) = (high_bytes(rows.dim()), GROUP_ROWS * low_bytes(rows.dim()));
        let mut planes = AlignedBytes::new(groups * (each + each_low)).map_err(|_| VectorMisfit::Memory)?;
        let (high, low) = planes.bytes_mut().split_at_mut(groups * each);
        encode(rows, high, low, cpu)?;
        Ok(Self {
            planes,
            groups,
            dim: rows.dim(),
        })
    }

    /// How many groups there are.
    #[must_use]
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// The high plane and the low plane.
    #[must_use]
    pub fn planes(&self) -> (&[u8], &[u8]) {
        self.planes.bytes().split_at(self.groups * high_bytes(self.dim))
    }

    /// The first groups of them.
    #[must_use]
    pub fn part(&self, groups: usize) -> CodePart<'_> {
        let (high, low) = self.planes();
        let groups = groups.min(self.groups);
        CodePart::in_memory(
            &high[..groups * high_bytes(self.dim)],
            &low[..groups * GROUP_ROWS * low_bytes(self.dim)],
        )
    }
}
