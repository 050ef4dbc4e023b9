//! Lifts the score of a hit by what surrounds it.
//!
//! A candidate is lifted by the best score one and two steps away, by the best others of its group, and if it happened
//! when the question says or was said by whom it names. A record that nothing surrounds keeps its score. Why these
//! numbers: docs/decisions/ranking.md, and for tokens docs/decisions/token-codes.md.

use std::cmp::Ordering;
use std::collections::HashMap;

/// How much is added of the best score one step away, and two.
const LINK_LIFT: f64 = 0.3;
const SECOND_LIFT: f64 = 0.2;
/// How much is added of what the best others of a group have on average, and how many of them count.
const GROUP_LIFT: f64 = 0.6;
const BEST_OTHERS: usize = 3;
/// Where tokens are asked: how much is added of the best score of a group, and of the best score of all, by how much of the question
/// the words of the group say.
const GROUP_BEST_LIFT: f64 = 0.4;
const GROUP_WORDS_LIFT: f64 = 0.2;
/// How much is added of the best score of all to what happened when the question says, and to what is said by whom it names.
const TIME_LIFT: f64 = 0.7;
const SPEAKER_LIFT: f64 = 0.15;

/// What surrounds candidates, which go by their places.
#[derive(Debug, Default)]
pub struct Ties {
    /// Pairs of candidates that are linked.
    pub links: Vec<(usize, usize)>,
    /// The group of each that is in one.
    pub groups: Vec<(usize, u32)>,
    /// How close each is to a time that the question names, 0 to 1; nobody else is.
    pub times: Vec<(usize, f64)>,
    /// Those that are said by the one whom the question names.
    pub speakers: Vec<usize>,
    /// The words of the question, if its tokens are asked too: then a group counts by its best and by these.
    pub words: Option<GroupWords>,
}

impl Ties {
    /// Whether nothing surrounds anybody.
    pub fn is_empty(&self) -> bool {
        let named = self.times.is_empty() && self.speakers.is_empty();
        named && self.links.is_empty() && self.groups.is_empty() && self.words.is_none()
    }
}

/// Which words of a question candidates have.
#[derive(Debug, Default)]
pub struct GroupWords {
    /// What each word is worth.
    weights: Vec<f64>,
    /// Candidates with the places of their words, in order.
    had: Vec<(usize, usize)>,
}

/// What a candidate owes to what surrounds it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lift {
    /// What the best linked candidate adds, and which one that is.
    pub linked: f64,
    /// See `linked`.
    pub by_link: Option<usize>,
    /// What the best candidate two steps away adds, and which one that is.
    pub second: f64,
    /// See `second`.
    pub by_second: Option<usize>,
    /// What the others of its group add, and which of them is the best.
    pub grouped: f64,
    /// See `grouped`.
    pub by_group: Option<usize>,
    /// What is added because it happened when the question says.
    pub timed: f64,
    /// What is added because the question names who says it.
    pub spoken: f64,
}

impl Lift {
    /// All that is added.
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

/// The better first; of equals the one that came first.
fn better(scores: &[f64], one: usize, other: usize) -> Ordering {
    scores[other].total_cmp(&scores[one]).then(one.cmp(&other))
}

fn by_links(scores: &[f64], links: &[(usize, usize)], lifts: &mut [Lift]) {
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
        // A way that leads back, or to somebody who is linked anyway, leads nowhere new.
        let is_new = |other: &&usize| **other != at && !near[at].contains(other);
        let beyond = near[at].iter().filter_map(|&next| near[next].iter().find(is_new));
        let second = beyond.copied().min_by(|&one, &other| better(scores, one, other));
        if let Some(second) = second.filter(|&second| scores[second] > 0.0) {
            (lift.second, lift.by_second) = (SECOND_LIFT * scores[second], Some(second));
        }
    }
}

fn by_groups(scores: &[f64], ties: &Ties, best: f64, lifts: &mut [Lift]) {
    let mut groups: HashMap<u32, Vec<usize>> = HashMap::new();
    for &(at, group) in &ties.groups {
        groups.entry(group).or_default().push(at);
    }
    for mut members in groups.into_values() {
        // A group that is all there is tells nothing apart.
        let share = 1.0 - members.len() as f64 / scores.len() as f64;
        if share <= 0.0 || members.len() < 2 {
            continue;
        }
        members.sort_unstable_by(|&one, &other| better(scores, one, other));
        if let Some(words) = &ties.words {
            let lift = GROUP_BEST_LIFT * scores[members[0]].max(0.0) + GROUP_WORDS_LIFT * best * words.part(&members);
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
    /// What the words of a question are worth, and the places of those that each candidate has, in their order.
    pub fn of(weights: Vec<f64>, had: impl Iterator<Item = Vec<usize>>) -> Self {
        let had = had
            .enumerate()
            .flat_map(|(at, words)| words.into_iter().map(move |word| (at, word)));
        Self {
            weights,
            had: had.collect(),
        }
    }

    /// How much of the question stands in one of these, 0 to 1, by what its words are worth.
    fn part(&self, members: &[usize]) -> f64 {
        let mut found = vec![false; self.weights.len()];
        for &member in members {
            let first = self.had.partition_point(|(at, _)| *at < member);
            let its = self.had[first..].iter().take_while(|(at, _)| *at == member);
            its.for_each(|(_, word)| found[*word] = true);
        }
        let (mut said, mut all) = (0.0, 0.0);
        for (weight, found) in self.weights.iter().zip(found) {
            all += weight;
            said += if found { *weight } else { 0.0 };
        }
        if all > 0.0 { said / all } else { 0.0 }
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
        // What is linked with nothing that was found is not lifted by it, but by what lies behind it.
        assert_eq!((lifts[0].by_link, lifts[0].by_second), (None, Some(1)));
        assert!(is(lifts[0].second, SECOND_LIFT / 2.0));
        assert_eq!((lifts[1].by_second, lifts[3].by_second), (Some(0), Some(0)));
    }

    #[test]
    fn three_that_know_each_other_lift_each_other_once() {
        let ties = Ties {
            links: vec![(0, 1), (1, 2), (2, 0)],
            ..Ties::default()
        };
        let lifts = lifted(&[1.0, 0.5, 0.25], &ties);
        assert!(lifts.iter().all(|lift| lift.by_second.is_none()));
        assert_eq!(lifts[0].by_link, Some(1));
    }

    #[test]
    fn the_others_of_a_group_speak_for_each() {
        let scores = [1.0, 0.6, 0.3, 0.2, 0.1, 0.9, 0.0, 0.0, 0.0, 0.0];
        let ties = Ties {
            groups: vec![(0, 7), (1, 7), (2, 7), (3, 7), (4, 7), (5, 8)],
            ..Ties::default()
        };
        let lifts = lifted(&scores, &ties);
        let share = GROUP_LIFT / 2.0 / 3.0;
        assert!(is(lifts[0].grouped, share * (0.6 + 0.3 + 0.2)) && lifts[0].by_group == Some(1));
        assert!(is(lifts[4].grouped, share * (1.0 + 0.6 + 0.3)) && lifts[4].by_group == Some(0));
        // Who is alone in a group, or in none, keeps what it has.
        assert_eq!((lifts[5], lifts[6]), (Lift::default(), Lift::default()));
        // A group that is all there is tells nothing apart.
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
    fn times_and_speakers_count_by_the_best_of_all() {
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
