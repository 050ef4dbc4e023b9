//! Finds the routes from one end to another, the shortest first.

use std::collections::HashMap;

use super::net::Net;
use super::reach::distances;
use chronolog::error::{Error, Result};

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
