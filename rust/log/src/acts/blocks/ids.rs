//! The ids of the records that an act of blocks speaks of.

use std::borrow::Cow;

use crate::scope::Scope;

/// The kind of a block, and what stands before its id.
pub const BLOCK: &str = "block";
/// The kind of a link.
pub const EDGE: &str = "bedge";
/// The kind of a setting.
pub const CONFIG: &str = "config";
/// The record of the clock of active hours of what is shared.
pub const CLOCK: &str = "config:total_active_hours";

/// The record of the clock that runs for a scope.
pub fn clock(scope: &Scope) -> String {
    match scope.of_clock().digits().as_str() {
        "" => CLOCK.to_owned(),
        digits => format!("{CONFIG}:{digits}:total_active_hours"),
    }
}

/// The record of a block.
pub fn block(id: &str) -> String {
    format!("{BLOCK}:{id}")
}

/// The record of the link of two blocks, given in any order.
pub fn edge(one: &str, other: &str) -> String {
    let (first, second) = in_order(one, other);
    [EDGE, ":", &escaped(first), ":", &escaped(second)].concat()
}

fn escaped(id: &str) -> Cow<'_, str> {
    if id.contains(['%', ':']) {
        Cow::Owned(id.replace('%', "%25").replace(':', "%3A"))
    } else {
        Cow::Borrowed(id)
    }
}

/// Two ids, the smaller first.
pub fn in_order<'a>(one: &'a str, other: &'a str) -> (&'a str, &'a str) {
    if other < one { (other, one) } else { (one, other) }
}

/// Each pair of these, in order.
pub fn pairs<'a>(ids: &'a [&'a str]) -> impl Iterator<Item = (&'a str, &'a str)> {
    ids.iter()
        .enumerate()
        .flat_map(move |(at, one)| ids[at + 1..].iter().map(move |other| (*one, *other)))
}
