//! Links and contradictions between blocks.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use chronomemory_state::state::Sight;

/// A link of two rows. A removed link keeps its place, without strength.
#[derive(Clone, Copy, Debug)]
pub struct BlockLink {
    /// The row with the smaller id.
    pub a: u32,
    /// The other.
    pub b: u32,
    /// The number of its scope.
    scope: u32,
    /// What it adds to the degree of its ends; `None` if it does not count.
    pub strength: Option<f64>,
    /// Whether it was made only because both ends are similar.
    pub of_likeness: bool,
}

impl BlockLink {
    /// The other end.
    pub fn across(&self, row: u32) -> u32 {
        if self.a == row { self.b } else { self.a }
    }
}

/// Links, found from either end.
#[derive(Clone, Debug, Default)]
pub struct Links {
    links: Vec<BlockLink>,
    by_pair: HashMap<(u32, u32), u32, RandomState>,
    /// The links of each row as sorted pairs of scope and link, so that the cost for a viewer depends on visible links only.
    by_end: HashMap<u32, Vec<(u32, u32)>, RandomState>,
}

impl Links {
    /// Sets the scope and strength of the link of two rows.
    pub fn set(&mut self, a: u32, b: u32, scope: u32, strength: Option<f64>) {
        if strength.is_none() && !self.by_pair.contains_key(&(a, b)) {
            return;
        }
        let next = self.links.len() as u32;
        let number = *self.by_pair.entry((a, b)).or_insert(next);
        if number == next {
            self.links.push(BlockLink {
                a,
                b,
                scope,
                strength,
                of_likeness: false,
            });
            self.list(number, scope);
        }
        let link = &mut self.links[number as usize];
        link.strength = strength;
        let before = std::mem::replace(&mut link.scope, scope);
        if before != scope {
            // Another tool changed its scope.
            for end in [a, b] {
                let known = self.by_end.entry(end).or_default();
                known.retain(|entry| *entry != (before, number));
            }
            self.list(number, scope);
        }
    }

    /// Sets whether the link of two rows was made only because they are similar.
    pub fn set_likeness(&mut self, a: u32, b: u32, of_likeness: bool) {
        if let Some(&number) = self.by_pair.get(&(a, b)) {
            self.links[number as usize].of_likeness = of_likeness;
        }
    }

    fn list(&mut self, number: u32, scope: u32) {
        let BlockLink { a, b, .. } = self.links[number as usize];
        for end in [a, b] {
            let known = self.by_end.entry(end).or_default();
            let place = known.partition_point(|entry| *entry < (scope, number));
            known.insert(place, (scope, number));
        }
    }

    /// The visible links of a row that count, with their strengths.
    pub fn of<'a>(&'a self, row: u32, sight: &'a Sight) -> impl Iterator<Item = (BlockLink, f64)> + 'a {
        let known = self.by_end.get(&row).map(Vec::as_slice).unwrap_or_default();
        // Look up the visible scopes if they are fewer than the links, else go through the links.
        let scopes = sight.scopes().filter(|scopes| scopes.len() < known.len());
        let others = if scopes.is_some() { &[][..] } else { known };
        let visible = others
            .chunk_by(|one, other| one.0 == other.0)
            .filter(|run| sight.sees(run[0].0));
        let looked_up = scopes.into_iter().flatten().map(|scope| run_of(known, scope));
        looked_up.chain(visible).flatten().filter_map(|&(_, number)| {
            let link = self.links[number as usize];
            link.strength.map(|strength| (link, strength))
        })
    }

    /// Whether a visible link that counts joins two rows.
    pub fn joins(&self, one: u32, other: u32, sight: &Sight) -> bool {
        [(one, other), (other, one)]
            .iter()
            .filter_map(|pair| self.by_pair.get(pair))
            .map(|&number| self.links[number as usize])
            .any(|link| link.strength.is_some() && sight.sees(link.scope))
    }

    /// Whether there are no links.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }
}

fn run_of(known: &[(u32, u32)], scope: u32) -> &[(u32, u32)] {
    let start = known.partition_point(|entry| entry.0 < scope);
    let length = known[start..].partition_point(|entry| entry.0 == scope);
    &known[start..start + length]
}

/// Pairs of rows that may become linked. Most never are, so a removed pair leaves nothing behind.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    across: HashMap<u32, BTreeSet<u32>, RandomState>,
}

impl Pairs {
    /// Adds or removes a pair.
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

    /// The rows paired with this one.
    pub fn of(&self, row: u32) -> impl Iterator<Item = u32> {
        self.across.get(&row).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_is_found_from_both_ends_until_it_is_removed() {
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
    fn a_link_that_never_counted_is_not_stored() {
        let mut links = Links::default();
        links.set(1, 2, 0, None);
        assert!(links.is_empty());
        links.set(1, 2, 0, Some(0.5));
        links.set(1, 2, 0, None);
        assert!(!links.joins(1, 2, &Sight::ALL));
    }

    #[test]
    fn the_likeness_flag_of_a_link_can_be_changed() {
        let mut links = Links::default();
        let of_likeness = |links: &Links| links.of(2, &Sight::ALL).any(|(link, _)| link.of_likeness);
        links.set_likeness(1, 2, true);
        links.set(1, 2, 0, Some(0.5));
        assert!(!of_likeness(&links));
        links.set_likeness(1, 2, true);
        links.set(1, 2, 7, Some(0.6));
        assert!(of_likeness(&links));
        links.set_likeness(1, 2, false);
        assert!(!of_likeness(&links));
    }

    #[test]
    fn only_visible_links_are_found() {
        let mut links = Links::default();
        for (other, scope) in [(2, 7), (3, 0), (4, 7), (5, 9)] {
            links.set(1, other, scope, Some(0.5));
        }
        let seen = |links: &Links, scopes: &[u32]| {
            let sight = Sight::of(scopes.to_vec());
            links.of(1, &sight).map(|(link, _)| link.b).collect::<Vec<_>>()
        };
        assert_eq!(seen(&links, &[0, 7]), [3, 2, 4]);
        assert_eq!(seen(&links, &[0, 1, 2, 3, 4, 5, 6, 7]), [3, 2, 4]);
        assert_eq!(links.of(1, &Sight::ALL).count(), 4);
        assert!(links.joins(2, 1, &Sight::of(vec![7])) && !links.joins(1, 2, &Sight::of(vec![0])));
        links.set(1, 2, 0, Some(0.5));
        assert_eq!(seen(&links, &[0]), [2, 3]);
        assert_eq!(seen(&links, &[7]), [4]);
    }
}
