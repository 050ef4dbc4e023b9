//! How much do the neighbours of a hit speak for it?
//!
//! An answer often stands beside the words of its question: the line before asked, the line after laughs. A candidate is
//! lifted by the best score among the records it is linked with, and by the best in its groups.

use std::collections::HashMap;

/// How much of a linked record's score is added.
pub const LINK_LIFT: f64 = 0.3;
/// How much of the best score in a group is added to all of its members.
pub const GROUP_LIFT: f64 = 0.2;

/// What a candidate owes to its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lift {
    /// What the best linked candidate adds, and which one that is.
    pub linked: f64,
    /// See `linked`.
    pub by_link: Option<usize>,
    /// What the best candidate of its groups adds, and which one that is.
    pub grouped: f64,
    /// See `grouped`.
    pub by_group: Option<usize>,
}

impl Lift {
    /// All that is added.
    pub fn sum(&self) -> f64 {
        self.linked + self.grouped
    }
}

/// The lifts of candidates with these scores. `links` are pairs of candidates, `groups` say which candidate is in which group;
/// a candidate may be in several.
pub fn lifted(scores: &[f64], links: &[(usize, usize)], groups: &[(usize, u32)]) -> Vec<Lift> {
    // Whoever belongs to no group is one of its own: groups should not outrun those that have none.
    let alone = |(at, score): (usize, &f64)| Lift {
        grouped: GROUP_LIFT * score,
        by_group: Some(at),
        ..Lift::default()
    };
    let mut lifts: Vec<Lift> = scores.iter().enumerate().map(alone).collect();
    let mut link = |to: usize, from: usize| {
        let lift = LINK_LIFT * scores[from];
        if to != from && lift > lifts[to].linked {
            (lifts[to].linked, lifts[to].by_link) = (lift, Some(from));
        }
    };
    for &(one, other) in links {
        link(one, other);
        link(other, one);
    }
    let mut best: HashMap<u32, usize> = HashMap::new();
    for &(candidate, group) in groups {
        let leader = best.entry(group).or_insert(candidate);
        if scores[candidate] > scores[*leader] {
            *leader = candidate;
        }
    }
    for &(candidate, group) in groups {
        let Some(&leader) = best.get(&group) else { continue };
        let lift = GROUP_LIFT * scores[leader];
        if lift > lifts[candidate].grouped {
            (lifts[candidate].grouped, lifts[candidate].by_group) = (lift, Some(leader));
        }
    }
    lifts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_neighbour_counts_once() {
        let lifts = lifted(&[1.0, 0.5, 0.0], &[(0, 2), (1, 2), (2, 2)], &[]);
        assert_eq!(lifts[2].by_link, Some(0));
        assert!((lifts[2].linked - LINK_LIFT).abs() < 1e-12);
        assert_eq!(lifts[0].by_link, None);
    }

    #[test]
    fn a_group_is_lifted_by_its_best() {
        let lifts = lifted(&[1.0, 0.5, 0.7], &[], &[(0, 7), (1, 7), (2, 8)]);
        assert_eq!(lifts[1].by_group, Some(0));
        assert!((lifts[0].grouped - GROUP_LIFT).abs() < 1e-12);
        assert!((lifts[2].sum() - GROUP_LIFT * 0.7).abs() < 1e-12);
    }
}
