//! Finds all ends within a number of steps.

use std::collections::HashMap;

use super::net::{Direction, Net};

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
pub(super) fn distances(
    net: &Net<'_>,
    starts: &[u32],
    hops: u32,
    direction: Direction,
) -> (HashMap<u32, u32>, Vec<(u32, u32)>) {
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
