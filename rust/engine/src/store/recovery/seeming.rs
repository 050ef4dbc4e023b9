//! Of what does a line speak that cannot be read any more?
//!
//! Nothing here is proved. What a damaged line seems to say is reason enough to doubt, and to tell somebody, and not enough
//! to believe.

use std::collections::BTreeSet;

use crate::event::Op;
use crate::event::act::Act;
use crate::event::faces::{VECTORS, acting_prefixes, face_of, prefixes_beside, rules_of};
use crate::event::parts::end_of_object;
use crate::json::{self, Value};
use crate::state::unspelled;

/// The id of a line that opens a batch.
const BEGIN_ID: &str = "__begin__";
/// A group of embeddings names no more rows than this.
const MOST_IDS: usize = 1024;

/// The records that a line seems to speak of: the one that it is about, and those whose embeddings it names.
pub(in crate::store) fn ids(line: &[u8]) -> Vec<String> {
    let mut found = ids_of_event(line);
    if is_of_embeddings(line) {
        let lists = values_of(line, b"\"ids\"").filter(|(_, at)| line[*at] == b'[');
        found.extend(lists.flat_map(|(_, at)| strings_from(line, at + 1)));
    }
    if let Some((told, _)) = acts_in(line) {
        found.retain(|id| rules_of(id.as_bytes()).is_none());
        found.extend(told);
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

/// Whether a line names what it is of twice, and alike, as ours do; once is enough in a patch, which does not say it again.
pub(in crate::store) fn is_certain(line: &[u8]) -> bool {
    let depths = Depths::of(line);
    let names = |key: &'static [u8], depth: i32| -> BTreeSet<String> {
        let found = strings_at(line, key, |place| depths.may_be(place, depth));
        found.into_iter().filter(|id| id != BEGIN_ID).collect()
    };
    let (named, written) = (names(b"\"record_id\"", 1), names(b"\"id\"", 2));
    let is_patch = || strings_at(line, b"\"op\"", |_| true) == ["patch"] && named.len() == 1 && written.is_empty();
    let is_begin = || named.is_empty() && written.is_empty() && batch(line).is_some();
    let is_act = || named.len() == 1 && written.is_empty() && acts_in(line).is_some_and(|(_, is_whole)| is_whole);
    !named.is_empty() && named == written || is_patch() || is_begin() || is_act()
}

/// What stands before the ids that a line names, if it seems to be an act.
pub(super) fn prefixes(line: &[u8]) -> Vec<&'static str> {
    let has =
        |key: &'static [u8], is_it: fn(&str) -> bool| strings_at(line, key, |_| true).iter().any(|word| is_it(word));
    let is_act = has(b"\"record_id\"", |id| rules_of(id.as_bytes()).is_some())
        || has(b"\"op\"", |op| Op::read(op.as_bytes()) == Op::Act)
        || has(b"\"act\"", |_| true);
    if is_act { acting_prefixes() } else { Vec::new() }
}

/// What the records are called that acts in a line are about, and whether all of it can be read that tells; `None` if it seems to
/// hold no act.
fn acts_in(line: &[u8]) -> Option<(Vec<String>, bool)> {
    let is_act = |id: &String| rules_of(id.as_bytes()).is_some();
    let ids: Vec<String> = ids_of_event(line).into_iter().filter(is_act).collect();
    let id = ids.first()?;
    let (mut told, mut whole) = (Vec::new(), 0);
    for record in values_of(line, b"\"record\"").filter_map(|(_, at)| Some(&line[at..end_of_object(line, at)?])) {
        let mentions = Act::read(id.as_bytes(), record)
            .map(|act| act.mentions())
            .unwrap_or_default();
        whole += usize::from(!mentions.is_empty());
        told.extend(mentions.into_iter().map(|mention| mention.id));
    }
    if whole < ids.len() {
        // What is left of a list may name some of them, under any prefix of the face.
        let lists = values_of(line, b"\"ids\"").filter(|(_, at)| line[*at] == b'[');
        let named = lists.flat_map(|(_, at)| strings_from(line, at + 1));
        let prefixes = prefixes_beside(id.as_bytes());
        told.extend(named.flat_map(|name| prefixes.iter().map(move |prefix| format!("{prefix}:{name}"))));
    }
    Some((told, whole == ids.len()))
}

/// How many events a line seems to have been, by what they are of.
pub(in crate::store) fn named(line: &[u8]) -> usize {
    let ids: BTreeSet<String> = ids_of_event(line).into_iter().collect();
    ids.len() + usize::from(batch(line).is_some() && !ids.contains(BEGIN_ID))
}

/// Whatever stands between two quotes: texts, and what a lost quote has made of them.
pub(in crate::store) fn texts(line: &[u8]) -> impl Iterator<Item = String> {
    let quotes: Vec<usize> = memchr::memchr_iter(b'"', line)
        .filter(|at| !is_escaped(line, *at))
        .collect();
    let between = |pair: &[usize]| unspelled(&line[pair[0] + 1..pair[1]]);
    quotes.windows(2).map(between).collect::<Vec<_>>().into_iter()
}

/// What stands where an event names its record.
fn ids_of_event(line: &[u8]) -> Vec<String> {
    let depths = Depths::of(line);
    let mut found = strings_at(line, b"\"record_id\"", |place| depths.may_be(place, 1));
    if found.is_empty() {
        // The last: in a line of ours it comes behind the record, and all that is said there.
        found.extend(strings_at(line, b"\"record_id\"", |_| true).pop());
    }
    found.extend(strings_at(line, b"\"id\"", |place| depths.may_be(place, 2)));
    found
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

/// Where a key stands, and where its value begins. In a text a quote has a backslash before it, so no text looks like a key.
fn values_of(line: &[u8], key: &'static [u8]) -> impl Iterator<Item = (usize, usize)> {
    memchr::memmem::find_iter(line, key).filter_map(move |place| {
        let colon = behind_spaces(line, place + key.len());
        let value = behind_spaces(line, colon + 1);
        (line.get(colon) == Some(&b':') && value < line.len()).then_some((place, value))
    })
}

fn strings_at(line: &[u8], key: &'static [u8], is_wanted: impl Fn(usize) -> bool) -> Vec<String> {
    let wanted = values_of(line, key).filter(|(place, _)| is_wanted(*place));
    wanted.filter_map(|(_, at)| Some(string_at(line, at)?.0)).collect()
}

/// The string at a place, and where it ends.
fn string_at(line: &[u8], at: usize) -> Option<(String, usize)> {
    let end = json::end_of_string(line, at).filter(|_| line.get(at) == Some(&b'"'))?;
    match json::parse(line.get(at..end)?) {
        Ok(Value::Str(text)) if !text.is_empty() => Some((text, end)),
        _ => None,
    }
}

/// The strings of a list, or the keys of an object with short values, as far as they can be read.
fn strings_from(line: &[u8], mut at: usize) -> Vec<String> {
    let mut found = Vec::new();
    loop {
        at = behind_spaces(line, at);
        let Some((text, end)) = string_at(line, at).filter(|_| found.len() < MOST_IDS) else {
            return found;
        };
        found.push(text);
        let is_end = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b'"');
        let next = line[end..].iter().position(is_end).map(|length| end + length);
        match next {
            Some(comma) if line[comma] == b',' => at = comma + 1,
            _ => return found,
        }
    }
}

fn behind_spaces(line: &[u8], from: usize) -> usize {
    let rest = line.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

/// How many containers are open at each key, counted from the beginning and from the end: before the damage the one is
/// right, behind it the other.
struct Depths {
    /// Where quotes begin keys or texts, with the depth from the beginning.
    forward: Vec<(usize, i32)>,
    /// The same from the end, in the same order.
    backward: Vec<(usize, i32)>,
}

impl Depths {
    fn of(line: &[u8]) -> Self {
        let (mut forward, mut depth, mut at) = (Vec::new(), 0, 0);
        while at < line.len() {
            match line[at] {
                b'"' => {
                    forward.push((at, depth));
                    at = json::end_of_string(line, at).unwrap_or(line.len());
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            at += 1;
        }
        Self {
            forward,
            backward: Self::from_end(line),
        }
    }

    fn from_end(line: &[u8]) -> Vec<(usize, i32)> {
        let (mut backward, mut depth, mut is_inside) = (Vec::new(), 0, false);
        for at in (0..line.len()).rev() {
            match line[at] {
                b'"' if !is_escaped(line, at) => {
                    if is_inside {
                        backward.push((at, depth));
                    }
                    is_inside = !is_inside;
                }
                b'}' | b']' if !is_inside => depth += 1,
                b'{' | b'[' if !is_inside => depth -= 1,
                _ => {}
            }
        }
        backward.reverse();
        backward
    }

    /// Whether a key may stand at this depth.
    fn may_be(&self, place: usize, depth: i32) -> bool {
        let is_there = |depths: &[(usize, i32)]| {
            let found = depths.binary_search_by_key(&place, |(at, _)| *at);
            found.is_ok_and(|index| depths[index].1 == depth)
        };
        is_there(&self.forward) || is_there(&self.backward)
    }
}

fn is_escaped(line: &[u8], at: usize) -> bool {
    line[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
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
    fn a_batch_tells_how_long_it_is() {
        let begin = r#"{"op":"begin","record":{"events":3},"record_id":"__begin__",?"#;
        assert_eq!(batch(begin.as_bytes()), Some(3));
        assert!(ids(begin.as_bytes()).is_empty());
        assert_eq!(batch(br#"{"op":"upsert","record":{"events":3}}"#), None);
    }
}
