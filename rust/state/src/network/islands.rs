//! Groups ends that hang together.

use std::collections::HashMap;

use super::net::Net;

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
