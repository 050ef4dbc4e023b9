//! Finds the records that a damaged name may mean, by likeness.
//!
//! A patch names its record once, and so does an act. If that name is of no record that there ever was, some of its bytes are
//! not what they were, and whichever record is called most alike may have been meant. A name may have swallowed what stood
//! behind it, another name too: so its beginning and its end are looked at each on its own.

/// So many bytes may be altered in any name; in a longer one, half of them.
const FEW_BYTES: usize = 2;
/// Of two that are alike, one is no better for so many bytes.
const CLOSE_BYTES: usize = 1;

/// Those of some names that are most alike to this one.
pub(super) fn alike<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let known: Vec<(&str, [usize; 3])> = known
        .map(|other| (other, shared(name.as_bytes(), other.as_bytes())))
        .collect();
    let is_enough = |other: &str, bytes: usize| bytes > 0 && bytes >= (other.len().div_ceil(2)).min(least(other));
    let mut found: Vec<&str> = Vec::new();
    for way in 0..3 {
        let enough = known.iter().filter(|(other, bytes)| is_enough(other, bytes[way]));
        let best = enough.clone().map(|(_, bytes)| bytes[way]).max().unwrap_or(0);
        found.extend(
            enough
                .filter(|(_, bytes)| bytes[way] + CLOSE_BYTES >= best)
                .map(|(other, _)| other),
        );
    }
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(str::to_owned).collect()
}

/// How many bytes of a name must be left, if it is a short one.
fn least(name: &str) -> usize {
    name.len().saturating_sub(FEW_BYTES)
}

/// How many bytes two names have in the same places, if they are of one length; at their beginnings; at their ends.
fn shared(one: &[u8], other: &[u8]) -> [usize; 3] {
    let pairs = || one.iter().zip(other);
    let same = pairs().filter(|(a, b)| a == b).count();
    let end = one.iter().rev().zip(other.iter().rev());
    [
        if one.len() == other.len() { same } else { 0 },
        pairs().take_while(|(a, b)| a == b).count(),
        end.take_while(|(a, b)| a == b).count(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meant(name: &str, known: &[&str]) -> Vec<String> {
        alike(name, known.iter().copied())
    }

    #[test]
    fn a_name_with_altered_bytes_means_the_one_that_is_most_alike() {
        let known = ["block:0123456789abcdef", "block:fedcba9876543210", "tea"];
        assert_eq!(meant("block:zz23456789abcdef", &known), known[..1]);
        assert_eq!(meant("block:zz234zzz89abzdzf", &known), known[..1]);
        assert_eq!(meant("block:01234567abcdef", &known), known[..1]);
        assert_eq!(meant("block:012345x6789abcdef", &known), known[..1]);
        assert!(meant("block:zzzzzzzzzzzzzzzz", &known).is_empty());
    }

    #[test]
    fn a_name_that_swallowed_what_stood_behind_it_means_those_it_begins_and_ends_with() {
        let known = ["block:0123456789abcdef", "block:fedcba9876543210", "other"];
        assert_eq!(meant("block:0123456789abz0y00z,#seq#:12", &known), known[..1]);
        assert_eq!(meant("block:0123456789abcz1zwzcba9876543210", &known), known[..2]);
    }

    #[test]
    fn names_that_are_all_alike_may_all_be_meant() {
        let known = ["FACT-12", "FACT-92", "FACT-13", "FICTION"];
        assert_eq!(meant("FAZT-92", &known), ["FACT-12", "FACT-92"]);
        assert_eq!(meant("FACT-zz", &known), ["FACT-12", "FACT-13", "FACT-92"]);
        assert_eq!(meant("zea", &["tea", "sea", "coffee"]), ["sea", "tea"]);
    }
}
