//! Which records may a name mean that was damaged?
//!
//! A patch names its record once. If that name is of no record that there ever was, some of its bytes are not what they were,
//! and whichever record is called most alike may have been meant.

/// So many bytes may be altered in any name; in a longer one, half of them.
const FEW_BYTES: usize = 2;

/// Those of some names that are most alike to this one. As many bytes as may always be altered make no difference.
pub(super) fn alike<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Vec<String> {
    let most = FEW_BYTES.max(name.len() / 2);
    let mut near: Vec<(usize, &str)> = known
        .map(|other| (bytes_apart(name.as_bytes(), other.as_bytes()), other))
        .filter(|(apart, _)| *apart <= most)
        .collect();
    let least = near.iter().map(|(apart, _)| *apart).min().unwrap_or(0);
    near.retain(|(apart, _)| *apart <= least.max(FEW_BYTES));
    near.into_iter().map(|(_, other)| other.to_owned()).collect()
}

/// How many bytes two names differ in: where they stand, or, if one is longer, all between what they begin and end with.
fn bytes_apart(one: &[u8], other: &[u8]) -> usize {
    if one.len() == other.len() {
        return one.iter().zip(other).filter(|(a, b)| a != b).count();
    }
    let begin = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    let rest = one.len().min(other.len()) - begin;
    let end = one.iter().rev().zip(other.iter().rev()).take(rest);
    one.len().max(other.len()) - begin - end.take_while(|(a, b)| a == b).count()
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
        assert_eq!(meant("block:0123abcdef", &known), known[..1]);
        assert_eq!(meant("block:012345x6789abcdef", &known), known[..1]);
        assert!(meant("block:zzzzzzzzzzzzzzzz", &known).is_empty());
    }

    #[test]
    fn names_that_are_all_alike_may_all_be_meant() {
        let known = ["FACT-12", "FACT-92", "FACT-13", "FICTION"];
        assert_eq!(meant("FAZT-92", &known), ["FACT-12", "FACT-92"]);
        assert_eq!(meant("FACT-zz", &known), ["FACT-12", "FACT-92", "FACT-13"]);
        assert_eq!(meant("zea", &["tea", "sea", "coffee"]), ["tea", "sea"]);
    }
}
