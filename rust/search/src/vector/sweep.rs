//! Sweeps over the high plane of codes for the rows that may be good enough.
//!
//! The loop is written once and compiled for every kind of processor; what differs is [`Dots`]. A group of rows is read
//! once and compared with all queries while it is in the nearest cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::codes::{Codes, GROUP_ROWS, STEP_BYTES};
use super::search::BoundedQuery;

/// The low plane of a survivor is asked for while so many others are looked at.
const AHEAD: usize = 6;

/// Multiplies the codes of a group with those of `W` queries.
pub(super) trait Dots: Copy {
    /// For each query the dot products with sixteen rows; each step has two words of a query, one for each half of the bytes.
    #[inline(always)]
    fn dots<const W: usize>(
        self,
        codes: &[[u8; STEP_BYTES]],
        words: &[[[i32; W]; 2]],
        dots: &mut [[i32; GROUP_ROWS]; W],
    ) {
        *dots = [[0; GROUP_ROWS]; W];
        for step in 0..codes.len().min(words.len()) {
            let codes = codes[step].as_chunks::<4>().0;
            for query in 0..W {
                let words = words[step].map(|word| word[query].to_le_bytes());
                for row in 0..GROUP_ROWS {
                    let mut sum = 0;
                    for component in 0..4 {
                        let code = codes[row][component];
                        sum += i32::from(code & 0x0F) * i32::from(words[0][component].cast_signed());
                        sum += i32::from(code >> 4) * i32::from(words[1][component].cast_signed());
                    }
                    dots[query][row] += sum;
                }
            }
        }
    }

    /// See [`low_dot`].
    #[inline(always)]
    fn low_dot(self, row: &[u8], query: [&[i8]; 2]) -> i32 {
        low_dot(row, query)
    }

    /// Asks for bytes that are read soon, where the processor can be asked.
    #[inline(always)]
    fn prefetch(self, _: &[u8]) {}
}

/// Plain integers, on any processor.
#[derive(Clone, Copy)]
pub(super) struct Portable;

impl Dots for Portable {}

/// `W` queries side by side. Where there are fewer, the rest of the places can be reached by no row.
#[derive(Debug)]
pub(super) struct Panel<const W: usize> {
    pub(super) words: Vec<[[i32; W]; 2]>,
    /// What twice a product has too much, because codes stand for 7.5 less.
    pub(super) excess: [i32; W],
    pub(super) scales: [f32; W],
}

/// What the high plane of a row is compared with: a row `x` may score `T` or more with a query `q` only if the angle between `q` and the
/// codes is at most the sum of the angle that `T` stands for and that between the codes and `x`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Floor {
    /// T, less all that is rounded.
    pub(super) least: f32,
    /// T, or zero if it is less.
    pub(super) cosine: f32,
    /// The sine of its angle.
    pub(super) sine: f32,
}

impl Floor {
    /// What no row reaches.
    pub(super) const NOTHING: Self = Self {
        least: f32::INFINITY,
        cosine: 0.0,
        sine: 0.0,
    };
    /// What every row reaches.
    pub(super) const EVERYTHING: Self = Self {
        least: f32::NEG_INFINITY,
        ..Self::NOTHING
    };
}

/// Some neighbouring groups, and what they are held against.
#[derive(Debug)]
pub(super) struct SweepRun<'a, const W: usize> {
    pub(super) codes: Codes<'a>,
    pub(super) from: usize,
    pub(super) to: usize,
    /// For each group of the run which of its rows count.
    pub(super) masks: Option<&'a [u16]>,
    pub(super) panels: &'a [Panel<W>],
    /// For each query of each panel what a row must reach.
    pub(super) floors: &'a [[Floor; W]],
}

/// Rows of one group that may be good enough for one query.
#[derive(Debug)]
pub(super) struct Survivor {
    pub(super) group: usize,
    pub(super) query: usize,
    /// Which rows.
    pub(super) rows: u16,
    /// The products of all sixteen.
    pub(super) dots: [i32; GROUP_ROWS],
}

impl Survivor {
    /// The first row of the group.
    #[inline(always)]
    fn first(&self) -> usize {
        self.group * GROUP_ROWS
    }
}

/// Holds a run of groups against all panels.
///
/// Plain loops over indices, here and in what is called: adapters of iterators are not inlined reliably into code for
/// other instructions than their own.
#[inline(always)]
#[expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "a bound that is no number excludes nothing"
)]
pub(super) fn sweep<D: Dots, const W: usize>(way: D, run: &SweepRun<'_, W>, found: &mut Vec<Survivor>) {
    let mut dots = [[0; GROUP_ROWS]; W];
    for index in run.from..run.to {
        let mask = if let Some(masks) = run.masks {
            masks[index - run.from]
        } else {
            u16::MAX
        };
        if mask == 0 {
            continue;
        }
        // The search is void if a page failed.
        let Some(group) = run.codes.group(index) else {
            continue;
        };
        for number in 0..run.panels.len().min(run.floors.len()) {
            let (panel, floors) = (&run.panels[number], &run.floors[number]);
            way.dots(group.codes, &panel.words, &mut dots);
            // Read after the codes, as they lie in memory: that is what processors foresee.
            let [scales, residuals] = group.tail();
            for place in 0..W {
                let (scale, excess, floor) = (panel.scales[place], panel.excess[place], floors[place]);
                let mut uppers = [0.0; GROUP_ROWS];
                let mut passed = 0;
                for row in 0..GROUP_ROWS {
                    let near = (2 * dots[place][row] - excess) as f32 * (scales[row] * scale);
                    let square = residuals[row] * residuals[row];
                    // INVARIANT: the root of 1 - y is at least (1 - y) (1 + y / 2), for the cosine of a row's angle.
                    let missing = square * (0.5 + 0.5 * square);
                    uppers[row] = near + (residuals[row] * floor.sine + missing * floor.cosine);
                    // A residual that is no number bounds nothing.
                    passed |= u32::from(!(uppers[row] < floor.least));
                }
                if passed != 0 {
                    let mut rows = 0;
                    for (row, upper) in uppers.iter().enumerate() {
                        rows |= u16::from(!(*upper < floor.least)) << row;
                    }
                    rows &= mask;
                    if rows != 0 && floor.least < f32::INFINITY {
                        found.push(Survivor {
                            group: index,
                            query: number * W + place,
                            rows,
                            dots: dots[place],
                        });
                    }
                }
            }
        }
    }
}

/// What the low plane of survivors is compared with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refinement<'a> {
    pub(super) codes: Codes<'a>,
    pub(super) queries: &'a [&'a BoundedQuery],
    /// The score that a row must reach for each query.
    pub(super) bars: &'a [f64],
}

/// A row that may be good enough by both planes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) query: usize,
    pub(super) row: u32,
    /// The score that the codes stand for, and how far from it the score may lie; no number if nothing is known.
    pub(super) near: f64,
    pub(super) far: f64,
}

/// Compares the low plane of survivors.
#[inline(always)]
pub(super) fn refine<D: Dots>(way: D, with: &Refinement<'_>, found: &[Survivor], kept: &mut Vec<Candidate>) {
    for number in 0..found.len() {
        // One query reads rows that are far apart; many read the same ones.
        if with.queries.len() == 1 && number + AHEAD < found.len() {
            let next = &found[number + AHEAD];
            let mut rows = next.rows;
            while rows != 0 {
                if let Some(bytes) = with.codes.low_bytes(next.first() + rows.trailing_zeros() as usize) {
                    way.prefetch(bytes);
                }
                rows &= rows - 1;
            }
        }
        let survivor = &found[number];
        let query = with.queries[survivor.query];
        let bar = with.bars[survivor.query];
        let mut rows = survivor.rows;
        while rows != 0 {
            let place = rows.trailing_zeros() as usize;
            rows &= rows - 1;
            let row = survivor.first() + place;
            // The search is void if a page failed.
            let Some(low) = with.codes.low(row) else {
                continue;
            };
            let low_dot = way.low_dot(low.codes, [&query.halves[0], &query.halves[1]]);
            let (near, far) = query.bounds(survivor.dots[place], low_dot, low.scale, low.residual);
            if near + far < bar {
                continue;
            }
            kept.push(Candidate {
                query: survivor.query,
                row: row as u32,
                near,
                far,
            });
        }
    }
}

/// The product of a row of the low plane with the codes of a query: those of the lower halves, then those of the upper.
#[inline(always)]
pub(super) fn low_dot(row: &[u8], query: [&[i8]; 2]) -> i32 {
    let length = row.len().min(query[0].len()).min(query[1].len());
    let (row, one, other) = (&row[..length], &query[0][..length], &query[1][..length]);
    let mut sum = 0;
    for at in 0..length {
        sum += i32::from(row[at] & 0x0F) * i32::from(one[at]) + i32::from(row[at] >> 4) * i32::from(other[at]);
    }
    sum
}

/// Runs of groups, handed out to threads. Not in order: rows that lie together are often alike, and a bar that rises
/// early spares work for all that comes later.
pub(super) struct Pieces {
    pieces: Vec<Range<usize>>,
    /// How long they are at most.
    pub(super) each: usize,
    stride: usize,
    next: AtomicUsize,
}

impl Pieces {
    /// Cuts runs into pieces, as far as there are groups.
    pub(super) fn new(runs: &[Range<usize>], groups: usize, each: usize) -> Self {
        let there = runs.iter().map(|run| run.start..run.end.min(groups));
        let cut = |run: Range<usize>| {
            let end = run.end;
            run.step_by(each).map(move |from| from..end.min(from + each))
        };
        let pieces: Vec<_> = there.flat_map(cut).collect();
        // Steps of the golden ratio come near every place early.
        let mut stride = (pieces.len() as f64 * 0.618) as usize + 1;
        while divisor(stride, pieces.len()) > 1 {
            stride += 1;
        }
        Self {
            pieces,
            each,
            stride,
            next: AtomicUsize::new(0),
        }
    }

    /// How many groups there are in all of them.
    pub(super) fn groups(&self) -> usize {
        self.pieces.iter().map(ExactSizeIterator::len).sum()
    }

    /// The next of them, for whoever asks first.
    pub(super) fn next(&self) -> Option<Range<usize>> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        (turn < self.pieces.len()).then(|| self.pieces[turn * self.stride % self.pieces.len()].clone())
    }
}

/// The greatest number that divides both.
fn divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { divisor(b, a % b) }
}
