//! Reads which record a line of the log was about that is damaged: only the id that its bytes still show is used.

use memchr::memmem;

use chronolog::json;

/// The id of a line that opens a batch: it is about no record.
pub(super) const BEGIN_ID: &[u8] = b"__begin__";

/// The id that a damaged line shows, as it stands between quotes: a line of ours names its record twice, a patch once.
pub(super) fn shown_id(line: &[u8]) -> Option<&[u8]> {
    let has = |key: &[u8], value: &[u8]| {
        [&b""[..], b" "]
            .iter()
            .any(|gap| memmem::find(line, &[key, gap, value].concat()).is_some())
    };
    let start = memmem::rfind(line, b"\"record_id\":")? + 12;
    let start = start + line[start..].iter().take_while(|byte| **byte == b' ').count();
    let quoted = &line[start..json::end_of_string(line, start)?];
    let id = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    (id == BEGIN_ID || has(b"\"id\":", quoted) || has(b"\"op\":", b"\"patch\"")).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_line_shows_its_id_only_where_it_is_certain() {
        for (line, shown) in [
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (r#"{"record": {"id": "tea"}, "record_id": "tea", ?"#, Some("tea")),
            (
                r#"?"op":"patch","record":{"label":"x"},"record_id":"tea","seq":1}"#,
                Some("tea"),
            ),
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tex","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"act","record":{"ids":["a"]},"record_id":"act:blocks","seq":1}"#,
                None,
            ),
            (
                r#"?"op":"begin","record":{"events":?},"record_id":"__begin__","seq":1}"#,
                Some("__begin__"),
            ),
            (r#"?"op":"upsert","record":{"id":"tea"},"record_id":"te"#, None),
            ("", None),
        ] {
            assert_eq!(shown_id(line.as_bytes()), shown.map(str::as_bytes), "{line}");
        }
    }
}
