//! Walks over a network: what is near, the routes from one end to another, and what hangs together.

use std::collections::HashMap;

use super::net::{Direction, Net};
use chronolog::error::{Error, Result};

/// What was reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reached {
    /// The slots of the ends, each with the number of steps to it: the nearest first, in the order in which they were met.
    pub ends: Vec<(u32, u32)>,
    /// The slots of what joins two of them.
    pub joints: Vec<u32>,
}

/// The ends within so many steps of some, these included; and what joins them, if it is asked for.
pub fn reach(net: &Net<'_>, starts: &[u32], hops: u32, with_joints: bool) -> Reached {
    let steps = distances(net, starts, hops, net.direction());
    let mut joints = Vec::new();
    if with_joints {
        for &(end, _) in &steps.1 {
            let leading = net.steps_from(end, Direction::Out);
            joints.extend(
                leading
                    .iter()
                    .filter(|(_, far)| steps.0.contains_key(far))
                    .map(|(joint, _)| *joint),
            );
        }
    }
    Reached { ends: steps.1, joints }
}

/// How many steps it is to each end that is near enough: to look up, and in the order in which they were met.
fn distances(net: &Net<'_>, starts: &[u32], hops: u32, direction: Direction) -> (HashMap<u32, u32>, Vec<(u32, u32)>) {
    let mut known = HashMap::new();
    let mut met: Vec<(u32, u32)> = Vec::new();
    for &start in starts {
        if known.insert(start, 0).is_none() {
            met.push((start, 0));
        }
    }
    let mut at = 0;
    while let Some(&(end, steps)) = met.get(at) {
        at += 1;
        if steps == hops {
            continue;
        }
        for (_, far) in net.steps_from(end, direction) {
            known.entry(far).or_insert_with(|| {
                met.push((far, steps + 1));
                steps + 1
            });
        }
    }
    (known, met)
}

/// A way: the slots of what joins one end to the next.
pub type SlotRoute = Vec<u32>;

/// So many steps are tried at most: the ways of a dense network are more than anybody can wait for.
const MOST_STEPS: u64 = 1_000_000;
/// So long a way is at most: each step of it waits for those behind it.
const MOST_HOPS: u32 = 256;

/// The shortest ways from one end to another, none of which meets an end twice; of the same length in the order of their names.
///
/// # Errors
/// `Limit` if too many had to be tried, `Argument` if they may be longer than anybody follows.
pub fn routes(net: &Net<'_>, source: u32, target: u32, hops: u32, limit: usize) -> Result<Vec<SlotRoute>> {
    if hops > MOST_HOPS {
        return Err(Error::must("hops", format!("be at most {MOST_HOPS}"), hops));
    }
    // How far it is to the target: whoever cannot arrive in time is not followed.
    let (ahead, _) = distances(net, &[target], hops, net.direction().back());
    let Some(shortest) = steps_ahead(net, source, target, &ahead) else {
        return Ok(Vec::new());
    };
    let mut search = RouteSearch {
        net,
        target,
        ahead,
        limit,
        tried: 0,
        ends: vec![source],
        route: Vec::new(),
        found: Vec::new(),
    };
    for length in shortest..=hops {
        if search.found.len() < limit {
            search.go_on(source, length)?;
        }
    }
    Ok(search.found)
}

/// How many steps it takes at least. Nobody enters the end where a way begins: it may be one that no way leads into.
fn steps_ahead(net: &Net<'_>, source: u32, target: u32, ahead: &HashMap<u32, u32>) -> Option<u32> {
    if source == target {
        return Some(0);
    }
    let next = net.steps_from(source, net.direction()).into_iter();
    next.filter_map(|(_, far)| ahead.get(&far)).min().map(|steps| steps + 1)
}

struct RouteSearch<'a> {
    net: &'a Net<'a>,
    target: u32,
    ahead: HashMap<u32, u32>,
    limit: usize,
    tried: u64,
    ends: Vec<u32>,
    route: SlotRoute,
    found: Vec<SlotRoute>,
}

impl RouteSearch<'_> {
    /// Follows every way from an end that has exactly so many steps left.
    fn go_on(&mut self, end: u32, left: u32) -> Result<()> {
        if end == self.target {
            if left == 0 {
                self.found.push(self.route.clone());
            }
            return Ok(());
        }
        for (joint, far) in self.net.steps_from(end, self.net.direction()) {
            self.tried += 1;
            if self.tried > MOST_STEPS {
                return Err(Error::limit(format!(
                    "there are too many ways: more than {MOST_STEPS} steps were tried; ask for fewer hops"
                )));
            }
            let arrives = self.ahead.get(&far).is_some_and(|&steps| steps < left);
            if !arrives || self.ends.contains(&far) {
                continue;
            }
            self.ends.push(far);
            self.route.push(joint);
            let outcome = self.go_on(far, left - 1);
            self.ends.pop();
            self.route.pop();
            outcome?;
            if self.found.len() == self.limit {
                break;
            }
        }
        Ok(())
    }
}

/// The ends in groups: two are in one if a way leads from one to the other, whichever way its steps go. In no order.
pub fn islands(net: &Net<'_>) -> Vec<Vec<u32>> {
    let ends: Vec<u32> = net.all_ends().collect();
    let places: HashMap<u32, usize> = ends.iter().copied().zip(0..).collect();
    let mut parents: Vec<usize> = (0..ends.len()).collect();
    for (source, target) in net.all_joined() {
        if let (Some(&source), Some(&target)) = (places.get(&source), places.get(&target)) {
            let (one, other) = (root(&mut parents, source), root(&mut parents, target));
            parents[one.max(other)] = one.min(other);
        }
    }
    let mut groups: HashMap<usize, Vec<u32>> = HashMap::new();
    for (place, &end) in ends.iter().enumerate() {
        groups.entry(root(&mut parents, place)).or_default().push(end);
    }
    groups.into_values().collect()
}

/// Who stands for a group; the way there becomes shorter.
fn root(parents: &mut [usize], mut place: usize) -> usize {
    while parents[place] != place {
        parents[place] = parents[parents[place]];
        place = parents[place];
    }
    place
}
