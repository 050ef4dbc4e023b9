//! Which blocks belong together, and which contradict each other?

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

/// Two rows and what joins them. A link that was taken away stays in its place, without strength.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// The row with the smaller id.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// How much it adds to the degree of its ends; nothing if it does not count.
    pub strength: Option<f64>,
}

impl Link {
    /// The other end.
    pub fn across(&self, row: u32) -> u32 {
        if self.a == row { self.b } else { self.a }
    }
}

/// Pairs of rows, found from either end.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: Vec<Link>,
    by_pair: HashMap<(u32, u32), u32, RandomState>,
    by_end: HashMap<u32, Vec<u32>, RandomState>,
}

impl Links {
    /// Says what joins two rows now.
    pub fn set(&mut self, a: u32, b: u32, strength: Option<f64>) {
        if strength.is_none() && !self.by_pair.contains_key(&(a, b)) {
            return;
        }
        let next = self.links.len() as u32;
        let number = *self.by_pair.entry((a, b)).or_insert(next);
        if number == next {
            self.links.push(Link { a, b, strength });
            for end in [a, b] {
                self.by_end.entry(end).or_default().push(number);
            }
        }
        self.links[number as usize].strength = strength;
    }

    /// The links of a row that count.
    pub fn of(&self, row: u32) -> impl Iterator<Item = (Link, f64)> {
        let numbers = self.by_end.get(&row).map(Vec::as_slice).unwrap_or_default();
        numbers.iter().filter_map(|&number| {
            let link = self.links[number as usize];
            link.strength.map(|strength| (link, strength))
        })
    }

    /// Whether two rows are joined.
    pub fn joins(&self, one: u32, other: u32) -> bool {
        [(one, other), (other, one)]
            .iter()
            .filter_map(|pair| self.by_pair.get(pair))
            .any(|&number| self.links[number as usize].strength.is_some())
    }

    /// Whether there are none at all.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

/// Pairs of rows that may be joined one day. Most of them never are, so those that went away leave nothing behind.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    across: HashMap<u32, BTreeSet<u32>, RandomState>,
}

impl Pairs {
    /// Says whether two rows are such a pair now.
    pub fn set(&mut self, a: u32, b: u32, is_one: bool) {
        for (row, other) in [(a, b), (b, a)] {
            if is_one {
                self.across.entry(row).or_default().insert(other);
            } else if let Some(others) = self.across.get_mut(&row) {
                others.remove(&other);
                if others.is_empty() {
                    self.across.remove(&row);
                }
            }
        }
    }

    /// The rows that make a pair with this one.
    pub fn of(&self, row: u32) -> impl Iterator<Item = u32> {
        self.across.get(&row).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_known_from_both_ends_until_it_is_gone() {
        let mut pairs = Pairs::default();
        pairs.set(1, 2, true);
        pairs.set(3, 1, true);
        assert_eq!(pairs.of(1).collect::<Vec<_>>(), [2, 3]);
        pairs.set(1, 2, false);
        pairs.set(3, 1, false);
        assert_eq!(pairs.of(1).count() + pairs.of(2).count() + pairs.of(3).count(), 0);
        assert!(pairs.across.is_empty());
    }

    #[test]
    fn what_never_counted_takes_no_place() {
        let mut links = Links::default();
        links.set(1, 2, None);
        assert!(links.is_empty());
        links.set(1, 2, Some(0.5));
        links.set(1, 2, None);
        assert!(!links.joins(1, 2));
    }
}
