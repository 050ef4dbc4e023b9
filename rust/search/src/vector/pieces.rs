//! Divides the groups into pieces, in the order in which they are swept.

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

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
