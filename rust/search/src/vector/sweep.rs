//! Sweeps over codes for the rows that may be good enough.
//!
//! The loop is written once and compiled for every kind of processor; what differs is [`Dots`]. A group of rows is read
//! once and compared with all queries while it is in the nearest cache.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::groups::{GROUP_ROWS, Groups};

/// Multiplies the codes of a group with those of `W` queries.
pub(super) trait Dots: Copy {
    /// For each query the dot products with sixteen rows. `start` is what undoes the offset of unsigned codes: minus
    /// 128 times the sum of the query's codes.
    fn dots<const W: usize>(
        self,
        codes: &[[u8; 64]],
        words: &[[i32; W]],
        start: &[i32; W],
        dots: &mut [[i32; GROUP_ROWS]; W],
    );
}

/// `W` queries side by side. Where there are fewer, the rest of the places can be reached by no row.
#[derive(Debug)]
pub(super) struct Panel<const W: usize> {
    pub(super) words: Vec<[i32; W]>,
    pub(super) start: [i32; W],
    pub(super) scales: [f32; W],
    pub(super) reaches: [f32; W],
}

/// Some neighbouring groups, and what they are held against.
#[derive(Debug)]
pub(super) struct SweepRun<'a, const W: usize> {
    pub(super) groups: Groups<'a>,
    pub(super) from: usize,
    pub(super) to: usize,
    /// For each group of the run which of its rows count.
    pub(super) masks: Option<&'a [u16]>,
    pub(super) panels: &'a [Panel<W>],
    /// For each query of each panel what a row must reach; nothing reaches infinity.
    pub(super) floors: &'a [[f32; W]],
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

/// Holds a run of groups against all panels.
///
/// Plain loops over indices, here and in what is called: adapters of iterators are not inlined reliably into code for
/// other instructions than their own.
#[inline(always)]
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
        let group = run.groups.group(index);
        for number in 0..run.panels.len().min(run.floors.len()) {
            let (panel, floors) = (&run.panels[number], &run.floors[number]);
            way.dots(group.codes, &panel.words, &panel.start, &mut dots);
            for place in 0..W {
                let (scale, reach, floor) = (panel.scales[place], panel.reaches[place], floors[place]);
                let mut uppers = [0.0; GROUP_ROWS];
                let mut passed = 0;
                for row in 0..GROUP_ROWS {
                    let near = dots[place][row] as f32 * group.scales[row] * scale;
                    uppers[row] = near + group.residuals[row] * reach;
                    passed |= u32::from(uppers[row] >= floor);
                }
                if passed != 0 {
                    let mut rows = 0;
                    for (row, upper) in uppers.iter().enumerate() {
                        rows |= u16::from(*upper >= floor) << row;
                    }
                    rows &= mask;
                    if rows != 0 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_group_is_handed_out_once() {
        for groups in [0, 1, 2, 7, 64, 100, 1001] {
            let pieces = Pieces::new(std::slice::from_ref(&(0..groups)), groups, 7);
            let mut seen: Vec<_> = std::iter::from_fn(|| pieces.next()).flatten().collect();
            seen.sort_unstable();
            assert_eq!(seen, (0..groups).collect::<Vec<_>>());
        }
    }

    #[test]
    fn only_runs_are_handed_out_and_only_as_far_as_there_are_groups() {
        let pieces = Pieces::new(&[3..5, 40..60, 90..120], 100, 7);
        assert_eq!(pieces.groups(), 32);
        let mut seen: Vec<_> = std::iter::from_fn(|| pieces.next()).flatten().collect();
        seen.sort_unstable();
        assert_eq!(seen, (3..5).chain(40..60).chain(90..100).collect::<Vec<_>>());
    }
}
