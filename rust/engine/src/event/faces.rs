//! Which face does a record belong to? Its id says so.

use memchr::memchr;

/// The face that says what is searched.
pub const SEARCH: &str = "search";
/// The face that says which embeddings there are.
pub const VECTORS: &str = "vectors";

/// The faces and the id prefixes that only they may write.
const FACES: [(&str, &[&str]); 6] = [
    (
        "blocks",
        &["block", "bedge", "contradiction", "frame", "session", "config"],
    ),
    ("episodes", &["episode", "fact", "rule"]),
    ("graph", &["profile", "node", "gedge", "path", "plan", "event", "audit"]),
    ("pages", &["page", "entry"]),
    (SEARCH, &["search"]),
    (VECTORS, &["vector"]),
];

/// The longest prefix, so that plain ids are told apart at a glance.
const LONGEST_PREFIX_BYTES: usize = 13;

/// The face that owns this id; `None` for plain records.
pub fn face_of(id: &[u8]) -> Option<&'static str> {
    let end = memchr(b':', &id[..id.len().min(LONGEST_PREFIX_BYTES + 1)])?;
    let prefix = &id[..end];
    FACES
        .iter()
        .find(|(_, prefixes)| prefixes.iter().any(|known| known.as_bytes() == prefix))
        .map(|(face, _)| *face)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_its_face() {
        assert_eq!(face_of(b"contradiction:1"), Some("blocks"));
        assert_eq!(face_of(b"fact:1"), Some("episodes"));
        assert_eq!(face_of(b"entry:x:y"), Some("pages"));
        assert_eq!(face_of(b"vector:default"), Some(VECTORS));
    }

    #[test]
    fn other_ids_are_plain() {
        assert_eq!(face_of(b"FACT-001"), None);
        assert_eq!(face_of(b"blocks:1"), None);
        assert_eq!(face_of(b":"), None);
        assert_eq!(face_of(b"a-long-name-with-a:colon"), None);
    }
}
