//! Lifts the score of a candidate by its context.
//!
//! A candidate gains from the best score one and two links away, from the best others of its group, and if the query names
//! its time or its speaker. A record without context keeps its score. Reasons for the numbers: docs/decisions/ranking.md, and
//! for tokens docs/decisions/token-codes.md.

use std::cmp::Ordering;

/// Shares of the best score one link away, and two, that are added.
const LINK_LIFT: f64 = 0.3;
const SECOND_LIFT: f64 = 0.2;
/// The share of the mean of the best others of a group that is added, and how many of them count.
const GROUP_LIFT: f64 = 0.6;
const BEST_OTHERS: usize = 3;
/// With tokens: the share of the best score of a group, and of the best score of all times the share of the query's words that
/// the group contains.
const GROUP_BEST_LIFT: f64 = 0.4;
const GROUP_WORDS_LIFT: f64 = 0.2;
/// Shares of the best score of all that are added for a time and for a speaker that the query names.
const TIME_LIFT: f64 = 0.7;
const SPEAKER_LIFT: f64 = 0.15;

/// The context of candidates, which are given by their places.
#[derive(Debug, Default)]
pub struct Ties {
    /// Pairs of candidates that are linked.
    pub links: Vec<(usize, usize)>,
    /// The group of each that is in one.
    pub groups: Vec<(usize, u32)>,
    /// The closeness, 0 to 1, of candidates to a time that the query names.
    pub times: Vec<(usize, f64)>,
    /// Candidates whose speaker the query names.
    pub speakers: Vec<usize>,
    /// The words of the query, if tokens are used: a group then counts by its best score and by these.
    pub words: Option<GroupWords>,
}

impl Ties {
    /// Whether no candidate has any context.
    pub fn is_empty(&self) -> bool {
        let named = self.times.is_empty() && self.speakers.is_empty();
        named && self.links.is_empty() && self.groups.is_empty() && self.words.is_none()
    }
}

/// The words of the query that candidates contain.
#[derive(Debug, Default)]
pub struct GroupWords {
    /// The weight of each word.
    weights: Vec<f64>,
    /// Sorted pairs of a candidate and a word that it contains.
    found: Vec<(usize, usize)>,
}

/// What a candidate gains from its context.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lift {
    /// The gain from the best linked candidate.
    pub linked: f64,
    /// That candidate.
    pub by_link: Option<usize>,
    /// The gain from the best candidate two links away.
    pub second: f64,
    /// That candidate.
    pub by_second: Option<usize>,
    /// The gain from the others of its group.
    pub grouped: f64,
    /// The best of them.
    pub by_group: Option<usize>,
    /// The gain because the query names its time.
    pub timed: f64,
    /// The gain because the query names its speaker.
    pub spoken: f64,
}

impl Lift {
    /// The sum of all gains.
    pub fn sum(&self) -> f64 {
        self.linked + self.second + self.grouped + self.timed + self.spoken
    }
}

/// The lifts of candidates with these scores.
pub fn lifted(scores: &[f64], ties: &Ties) -> Vec<Lift> {
    let mut lifts = vec![Lift::default(); scores.len()];
    by_links(scores, &ties.links, &mut lifts);
    let best = scores.iter().copied().fold(0.0, f64::max);
    by_groups(scores, ties, best, &mut lifts);
    for &(at, closeness) in &ties.times {
        lifts[at].timed = TIME_LIFT * closeness * best;
    }
    for &at in &ties.speakers {
        lifts[at].spoken = SPEAKER_LIFT * best;
    }
    lifts
}

/// Orders by score, the greatest first; ties by place.
fn better(scores: &[f64], one: usize, other: usize) -> Ordering {
    scores[other].total_cmp(&scores[one]).then(one.cmp(&other))
}

fn by_links(scores: &[f64], links: &[(usize, usize)], lifts: &mut [Lift]) {
    if links.is_empty() {
        return;
    }
    let mut near: Vec<Vec<usize>> = vec![Vec::new(); scores.len()];
    for &(one, other) in links {
        if one != other {
            near[one].push(other);
            near[other].push(one);
        }
    }
    for others in &mut near {
        others.sort_unstable_by(|&one, &other| better(scores, one, other));
        others.dedup();
    }
    for (at, lift) in lifts.iter_mut().enumerate() {
        if let Some(&best) = near[at].first().filter(|&&best| scores[best] > 0.0) {
            (lift.linked, lift.by_link) = (LINK_LIFT * scores[best], Some(best));
        }
        // Two links away, and neither the candidate itself nor directly linked.
        let is_new = |other: &&usize| **other != at && !near[at].contains(other);
        let beyond = near[at].iter().filter_map(|&next| near[next].iter().find(is_new));
        let second = beyond.copied().min_by(|&one, &other| better(scores, one, other));
        if let Some(second) = second.filter(|&second| scores[second] > 0.0) {
            (lift.second, lift.by_second) = (SECOND_LIFT * scores[second], Some(second));
        }
    }
}

fn by_groups(scores: &[f64], ties: &Ties, best: f64, lifts: &mut [Lift]) {
    let mut placed = ties.groups.clone();
    placed.sort_unstable_by_key(|&(_, group)| group);
    for group in placed.chunk_by(|one, other| one.1 == other.1) {
        // A larger group distinguishes less; one that contains all candidates nothing.
        let share = 1.0 - group.len() as f64 / scores.len() as f64;
        if share <= 0.0 || group.len() < 2 {
            continue;
        }
        let mut members: Vec<usize> = group.iter().map(|&(at, _)| at).collect();
        members.sort_unstable_by(|&one, &other| better(scores, one, other));
        if let Some(words) = &ties.words {
            let lift = GROUP_BEST_LIFT * scores[members[0]].max(0.0) + GROUP_WORDS_LIFT * best * words.share(&members);
            for &at in members.iter().filter(|_| lift > 0.0) {
                lifts[at].grouped = share * lift;
                lifts[at].by_group = members.iter().copied().find(|&other| other != at);
            }
            continue;
        }
        for &at in &members {
            let others = members.iter().copied().filter(|&other| other != at).take(BEST_OTHERS);
            let sum: f64 = others.clone().map(|other| scores[other].max(0.0)).sum();
            if sum > 0.0 {
                lifts[at].grouped = GROUP_LIFT * share * sum / BEST_OTHERS as f64;
                lifts[at].by_group = others.take(1).next();
            }
        }
    }
}

impl GroupWords {
    /// The weights of the words, and the sorted places of the words that each candidate contains.
    pub fn of(weights: Vec<f64>, found: impl Iterator<Item = Vec<usize>>) -> Self {
        let found = found
            .enumerate()
            .flat_map(|(at, words)| words.into_iter().map(move |word| (at, word)));
        Self {
            weights,
            found: found.collect(),
        }
    }

    /// The weighted share, 0 to 1, of the query's words that one of these candidates contains.
    fn share(&self, members: &[usize]) -> f64 {
        let mut found = vec![false; self.weights.len()];
        for &member in members {
            let first = self.found.partition_point(|(at, _)| *at < member);
            let its = self.found[first..].iter().take_while(|(at, _)| *at == member);
            its.for_each(|(_, word)| found[*word] = true);
        }
        let (mut contained, mut all) = (0.0, 0.0);
        for (weight, found) in self.weights.iter().zip(found) {
            all += weight;
            contained += if found { *weight } else { 0.0 };
        }
        if all > 0.0 { contained / all } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is(one: f64, other: f64) -> bool {
        (one - other).abs() < 1e-12
    }

    #[test]
    fn the_best_one_and_two_steps_away_count() {
        let ties = Ties {
            links: vec![(0, 2), (1, 2), (2, 2), (2, 3), (0, 2)],
            ..Ties::default()
        };
        let lifts = lifted(&[1.0, 0.5, 0.0, 0.25], &ties);
        assert_eq!((lifts[2].by_link, lifts[2].by_second), (Some(0), None));
        assert!(is(lifts[2].linked, LINK_LIFT));
        // A linked candidate without a score lifts nothing, but candidates beyond it do.
        assert_eq!((lifts[0].by_link, lifts[0].by_second), (None, Some(1)));
        assert!(is(lifts[0].second, SECOND_LIFT / 2.0));
        assert_eq!((lifts[1].by_second, lifts[3].by_second), (Some(0), Some(0)));
    }

    #[test]
    fn three_linked_candidates_lift_each_other_once() {
        let ties = Ties {
            links: vec![(0, 1), (1, 2), (2, 0)],
            ..Ties::default()
        };
        let lifts = lifted(&[1.0, 0.5, 0.25], &ties);
        assert!(lifts.iter().all(|lift| lift.by_second.is_none()));
        assert_eq!(lifts[0].by_link, Some(1));
    }

    #[test]
    fn the_best_others_of_a_group_lift_each_member() {
        let scores = [1.0, 0.6, 0.3, 0.2, 0.1, 0.9, 0.0, 0.0, 0.0, 0.0];
        let ties = Ties {
            groups: vec![(0, 7), (1, 7), (2, 7), (3, 7), (4, 7), (5, 8)],
            ..Ties::default()
        };
        let lifts = lifted(&scores, &ties);
        let share = GROUP_LIFT / 2.0 / 3.0;
        assert!(is(lifts[0].grouped, share * (0.6 + 0.3 + 0.2)) && lifts[0].by_group == Some(1));
        assert!(is(lifts[4].grouped, share * (1.0 + 0.6 + 0.3)) && lifts[4].by_group == Some(0));
        // A candidate alone in its group, or without one, keeps its score.
        assert_eq!((lifts[5], lifts[6]), (Lift::default(), Lift::default()));
        // A group that contains all candidates lifts none.
        let all = Ties {
            groups: vec![(0, 1), (1, 1)],
            ..Ties::default()
        };
        assert_eq!(lifted(&scores[..2], &all), [Lift::default(); 2]);
    }

    #[test]
    fn with_tokens_a_group_counts_by_its_best_and_its_words() {
        let ties = Ties {
            groups: vec![(0, 7), (1, 7), (2, 8)],
            words: Some(GroupWords::of(
                vec![3.0, 1.0],
                [vec![0], vec![0], vec![1], vec![]].into_iter(),
            )),
            ..Ties::default()
        };
        let lifts = lifted(&[0.5, 0.25, 1.0, 0.0], &ties);
        let lift = (GROUP_BEST_LIFT * 0.5 + GROUP_WORDS_LIFT * 0.75) / 2.0;
        assert!(is(lifts[0].grouped, lift) && is(lifts[1].grouped, lift));
        assert_eq!((lifts[0].by_group, lifts[1].by_group), (Some(1), Some(0)));
        assert_eq!((lifts[2], lifts[3]), (Lift::default(), Lift::default()));
    }

    #[test]
    fn times_and_speakers_gain_from_the_best_score() {
        let ties = Ties {
            times: vec![(1, 0.5)],
            speakers: vec![0, 1],
            ..Ties::default()
        };
        let lifts = lifted(&[4.0, 0.0], &ties);
        assert!(is(lifts[1].sum(), 4.0 * (TIME_LIFT / 2.0 + SPEAKER_LIFT)));
        assert!(is(lifts[0].sum(), 4.0 * SPEAKER_LIFT));
        assert_eq!(
            lifted(
                &[0.0],
                &Ties {
                    times: vec![(0, 1.0)],
                    ..Ties::default()
                }
            )[0]
            .sum(),
            0.0
        );
    }
}
