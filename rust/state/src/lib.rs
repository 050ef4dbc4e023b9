//! Current records: scopes, expiry, secondary indexes, networks of records and the filter language.

pub mod condition;
pub mod index;
pub mod network;
pub mod segment;
pub mod snapshot;
pub mod state;

/// The first number for which this does not hold, which holds for all before it.
pub(crate) fn first_in(numbers: std::ops::Range<u32>, is_before: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (numbers.start, numbers.end.max(numbers.start));
    while low < high {
        let middle = low.midpoint(high);
        match is_before(middle) {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}
