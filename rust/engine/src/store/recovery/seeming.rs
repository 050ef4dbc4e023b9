//! Tells what a line that cannot be read any more seems to speak of.
//!
//! Nothing here is proved. What a damaged line seems to say is reason enough to doubt, and to tell somebody, and not enough
//! to believe.

use std::collections::BTreeSet;

use chronolog::event::faces::{VECTORS, face_of, rules_of};

use super::lost_acts::{self, SeemingActs};
use super::scraps::{self, Depths, ids_of_event, strings_at, strings_from, values_of};

/// The id of a line that opens a batch.
const BEGIN_ID: &str = "__begin__";

/// The records that a line seems to speak of: the one that it is about, and those whose embeddings it names.
pub(in crate::store) fn ids(line: &[u8]) -> Vec<String> {
    let mut found = ids_of_event(line);
    if is_of_embeddings(line) {
        let lists = values_of(line, b"\"ids\"").filter(|(_, at)| line[*at] == b'[');
        found.extend(lists.flat_map(|(_, at)| strings_from(line, at + 1)));
    }
    if let Some(acts) = SeemingActs::of(line) {
        found.retain(|id| rules_of(id.as_bytes()).is_none());
        found.extend(acts.told);
    }
    let mut seen = BTreeSet::new();
    found.retain(|id| id != BEGIN_ID && seen.insert(id.clone()));
    found
}

/// Whether a line says which embeddings there are, as it seems.
pub(in crate::store) fn is_of_embeddings(line: &[u8]) -> bool {
    let ids = ids_of_event(line);
    let has = |key: &[u8]| memchr::memmem::find(line, key).is_some();
    let is_group = || has(b"\"ids\"") && (has(b"\"sha256\"") || has(b"\"generation\""));
    ids.is_empty() && is_group() || ids.iter().any(|id| face_of(id.as_bytes()) == Some(VECTORS))
}

/// Whether a line says of rows that they are there, as it seems, and not any more whose each of them is.
pub(in crate::store) fn hides_rows(line: &[u8]) -> bool {
    let listed = |key| {
        let lists = values_of(line, key).filter(|(_, at)| line[*at] == b'[');
        lists.flat_map(|(_, at)| strings_from(line, at + 1)).count()
    };
    let (ids, digests) = (listed(b"\"ids\""), listed(b"\"sha256\""));
    is_of_embeddings(line) && gone_rows(line).is_empty() && (ids == 0 || ids != digests)
}

/// Whether a line names what it is of twice, and alike, as ours do; once is enough in a patch, which does not say it again.
/// What lost its end may name nothing but records that its own speaks of.
pub(in crate::store) fn is_certain(line: &[u8]) -> bool {
    let depths = Depths::of(line);
    if !depths.is_balanced {
        return false;
    }
    let names = |key: &'static [u8], depth: i32| -> BTreeSet<String> {
        let found = strings_at(line, key, |place| depths.may_be(place, depth));
        found.into_iter().filter(|id| id != BEGIN_ID).collect()
    };
    let (named, written) = (names(b"\"record_id\"", 1), names(b"\"id\"", 2));
    let is_patch = || is_patch(line) && named.len() == 1 && written.is_empty();
    let is_begin = || named.is_empty() && written.is_empty() && batch(line).is_some();
    let is_act = || named.len() == 1 && written.is_empty() && SeemingActs::of(line).is_some_and(|acts| acts.is_certain);
    !named.is_empty() && named == written || is_patch() || is_begin() || is_act()
}

/// Whether a line seems to be a patch, and nothing else.
pub(in crate::store) fn is_patch(line: &[u8]) -> bool {
    strings_at(line, b"\"op\"", |_| true) == ["patch"]
}

/// How many events a line seems to have been, by what they are of.
pub(in crate::store) fn named(line: &[u8]) -> usize {
    let ids: BTreeSet<String> = ids_of_event(line).into_iter().collect();
    ids.len() + usize::from(batch(line).is_some() && !ids.contains(BEGIN_ID))
}

/// The records that a line seems to write, apart from what it says about embeddings.
pub(in crate::store) fn beliefs(line: &[u8]) -> Vec<String> {
    let mut found = ids_of_event(line);
    found.retain(|id| id != BEGIN_ID && face_of(id.as_bytes()) != Some(VECTORS) && rules_of(id.as_bytes()).is_none());
    found
}

/// What stands before the ids that a line names, if it seems to be an act.
pub(in crate::store) fn prefixes(line: &[u8]) -> Vec<&'static str> {
    lost_acts::prefixes(line)
}

/// Whether a line seems to be an act that may be about more than it still says.
pub(in crate::store) fn is_torn_act(line: &[u8]) -> bool {
    SeemingActs::of(line).is_some_and(|acts| acts.is_torn)
}

/// Whatever stands between two quotes: texts, and what a lost quote has made of them.
pub(in crate::store) fn texts(line: &[u8]) -> impl Iterator<Item = String> {
    scraps::texts(line)
}

/// The rows that a line seems to take back.
pub(in crate::store) fn gone_rows(line: &[u8]) -> Vec<u32> {
    let objects = values_of(line, b"\"gone\"").filter(|(_, at)| line[*at] == b'{');
    let keys = objects.flat_map(|(_, at)| strings_from(line, at + 1));
    let row = |key: String| key.rsplit(':').next().and_then(|row| row.parse().ok());
    keys.filter_map(row).collect()
}

/// How many events follow the line if it seems to open a batch.
pub(in crate::store) fn batch(line: &[u8]) -> Option<u32> {
    let begins = |key: &'static [u8], word: &str| strings_at(line, key, |_| true).iter().any(|found| found == word);
    if !begins(b"\"record_id\"", BEGIN_ID) && !begins(b"\"op\"", "begin") {
        return None;
    }
    let (_, at) = values_of(line, b"\"events\"").last()?;
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&line[at..at + digits]).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_however_they_are_spelled() {
        for (line, expected) in [
            (
                r#"?"op":"upsert","record":{"id":"tea"},"record_id":"tea","seq":1}"#,
                vec!["tea"],
            ),
            (r#"{"seq": 1, "record_id" : "tea", "record": {"?": "#, vec!["tea"]),
            (r#"{"record_id":"a\"b\\","seq"?"#, vec![r#"a"b\"#]),
            (r#"{"record_id": "gr\u00fcn", ?"#, vec!["grün"]),
            (r#"{"record_id":"","record":{?"#, vec![]),
            (
                r#"{"record_?d":"tea","record":{"id":"tea","data":{"id":"other"}},"seq"#,
                vec!["tea"],
            ),
            ("rubbish", vec![]),
        ] {
            assert_eq!(ids(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn what_a_record_says_of_others_is_not_what_the_line_is_of() {
        let record = r#""record": {"data": {"record_id": "other", "ids": ["x"]}, "id": "tea"}"#;
        let foreign = format!(r#"{{"seq": 1, "record_id": "tea", {record}, "hash": "??, "ts": ""}}"#);
        assert_eq!(ids(foreign.as_bytes()), ["tea"]);
        let damaged = format!(r#"{{?"seq": 1, "label": "a " b", {record}, "record_id": "tea"}}"#);
        assert_eq!(ids(damaged.as_bytes()), ["tea"]);
        let told = r#"{"record":{"label":"say \"record_id\":\"other\""},"record_id":"tea"?"#;
        assert_eq!(ids(told.as_bytes()), ["tea"]);
    }

    #[test]
    fn two_lines_in_one_speak_of_two() {
        let grown = r#"{"record_id":"one","seq":?1}?{"record_id":"two","seq":2}"#;
        assert_eq!(ids(grown.as_bytes()), ["one", "two"]);
    }

    #[test]
    fn embeddings_name_their_records() {
        let group = r#"?"record":{"data":{"dim":2,"ids":["a","b\"c"],"row":3,"sha256":["0"]},"id":"vector:default:3"},"record_id":"vector:default:3","seq":1}"#;
        assert_eq!(ids(group.as_bytes()), ["vector:default:3", "a", r#"b"c"#]);
        let cut = r#"{"op":"upsert","record":{"data":{"dim":2,"ids":["a","b"#;
        assert_eq!(ids(cut.as_bytes()), Vec::<String>::new());
        let cut = r#"{"op":"upsert","record":{"data":{"dim":2,"generation":0,"ids":["a","b"#;
        assert_eq!(ids(cut.as_bytes()), ["a"]);
        let headless = r#""ids":["a","b"],"row":3,"sha256":["0"],"space"#;
        assert_eq!(ids(headless.as_bytes()), ["a", "b"]);
        assert!(is_of_embeddings(headless.as_bytes()));
        let whole =
            r#"{"record":{"data":{"ids":["a","b"],"sha256":["0","1"]},"id":"vector:x:0"},"record_id":"vector:x:0"}"#;
        assert!(!hides_rows(whole.as_bytes()));
        for lost in [r#""ids":"#, r#""a","b""#, r#""sha256":["#] {
            assert!(hides_rows(whole.replacen(lost, "?", 1).as_bytes()), "{lost}");
        }
    }

    #[test]
    fn rows_that_go_are_read() {
        let gone = r#"{"op":"patch","record":{"data":{"gone":{"1:12":true,"7": true}}},"record_id":"vector:x:0"?"#;
        assert_eq!(gone_rows(gone.as_bytes()), [12, 7]);
        assert_eq!(gone_rows(br#"{"data":{"gone":null}}"#), Vec::<u32>::new());
    }

    #[test]
    fn an_act_names_the_records_that_it_is_of() {
        let record = r#"{"act":"shown/1","at":"t","ids":["a","b"],"session":"s"}"#;
        let line = format!(r#"{{?"op":"act","prev_hash":"","record":{record},"record_id":"act:blocks","seq":1}}"#);
        assert_eq!(ids(line.as_bytes()), ["block:a", "block:b", "bedge:a:b"]);
        assert!(is_certain(line.as_bytes()) && !is_of_embeddings(line.as_bytes()));
        // What is left of the list is told, and that it may not be all.
        let torn = line.replace(r#""b"],"#, r#""?,"#);
        let told = ids(torn.as_bytes());
        assert!(told.contains(&"block:a".to_owned()), "{told:?}");
        assert!(!is_certain(torn.as_bytes()));
        assert!(prefixes(torn.as_bytes()).contains(&"block"));
        assert!(prefixes(b"{}").is_empty());
        // Where the name is lost, what is left still says that it was one.
        assert!(prefixes(br#"?"record":{"act":"shown/1","at":"t","ids":["a","#).contains(&"block"));
        let both = format!(r#"{{"record":{{"id":"tea"}},"record_id":"tea"}}?{line}"#);
        assert_eq!(ids(both.as_bytes()), ["tea", "block:a", "block:b", "bedge:a:b"]);
        assert!(!is_certain(both.as_bytes()));
        let twice = format!("{line}?{}", line.replace(r#"["a","b"]"#, r#"["c"]"#));
        assert!(ids(twice.as_bytes()).contains(&"block:c".to_owned()));
    }

    #[test]
    fn what_lost_its_end_may_be_of_others_than_it_names() {
        let data = r#"{"id":"other","record_id":"other"}"#;
        let line = format!(r#"{{?"op":"upsert","record":{{"data":{data},"id":"tea"}},"record_id":"tea","seq":1}}"#);
        assert!(is_certain(line.as_bytes()) && ids(line.as_bytes()) == ["tea"]);
        let inside = line.find(data).expect("its data");
        for end in [inside + data.len() - 1, inside + data.len(), inside + data.len() + 7] {
            assert!(!is_certain(&line.as_bytes()[..end]), "{}", &line[..end]);
        }
    }

    #[test]
    fn a_batch_tells_how_long_it_is() {
        let begin = r#"{"op":"begin","record":{"events":3},"record_id":"__begin__",?"#;
        assert_eq!(batch(begin.as_bytes()), Some(3));
        assert!(ids(begin.as_bytes()).is_empty());
        assert_eq!(batch(br#"{"op":"upsert","record":{"events":3}}"#), None);
    }
}
