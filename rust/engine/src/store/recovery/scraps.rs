//! Finds the texts and ids that are left in a line that cannot be read any more.

use chronolog::json::{self, Value};
use chronomemory_state::state::unspelled;

/// A group of embeddings names no more rows than this.
const MOST_IDS: usize = 1024;

/// Whatever stands between two quotes: texts, and what a lost quote has made of them.
pub(super) fn texts(line: &[u8]) -> impl Iterator<Item = String> {
    let quotes: Vec<usize> = memchr::memchr_iter(b'"', line)
        .filter(|at| !is_escaped(line, *at))
        .collect();
    let between = |pair: &[usize]| unspelled(&line[pair[0] + 1..pair[1]]);
    quotes.windows(2).map(between).collect::<Vec<_>>().into_iter()
}

/// What stands where an event names its record.
pub(super) fn ids_of_event(line: &[u8]) -> Vec<String> {
    let depths = Depths::of(line);
    let mut found = strings_at(line, b"\"record_id\"", |place| depths.may_be(place, 1));
    if found.is_empty() {
        // The last: in a line of ours it comes behind the record, and all that is said there.
        found.extend(strings_at(line, b"\"record_id\"", |_| true).pop());
    }
    found.extend(strings_at(line, b"\"id\"", |place| depths.may_be(place, 2)));
    found
}

/// Where a key stands, and where its value begins. In a text a quote has a backslash before it, so no text looks like a key.
pub(super) fn values_of(line: &[u8], key: &'static [u8]) -> impl Iterator<Item = (usize, usize)> {
    memchr::memmem::find_iter(line, key).filter_map(move |place| {
        let colon = behind_spaces(line, place + key.len());
        let value = behind_spaces(line, colon + 1);
        (line.get(colon) == Some(&b':') && value < line.len()).then_some((place, value))
    })
}

/// The strings that stand behind a key, where it is wanted.
pub(super) fn strings_at(line: &[u8], key: &'static [u8], is_wanted: impl Fn(usize) -> bool) -> Vec<String> {
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
pub(super) fn strings_from(line: &[u8], mut at: usize) -> Vec<String> {
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

/// The object that begins at a place, if it ends.
pub(super) fn object_at(line: &[u8], at: usize) -> Option<&[u8]> {
    json::end_of_object(line, at).map(|end| &line[at..end])
}

/// How many containers are open at each key, counted from the beginning and from the end: before the damage the one is
/// right, behind it the other.
pub(super) struct Depths {
    /// Where quotes begin keys or texts, with the depth from the beginning.
    forward: Vec<(usize, i32)>,
    /// The same from the end, in the same order.
    backward: Vec<(usize, i32)>,
    /// Whatever is opened is closed: neither beginning nor end is lost, as it seems.
    pub is_balanced: bool,
}

impl Depths {
    /// Counts them.
    pub fn of(line: &[u8]) -> Self {
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
            is_balanced: depth == 0,
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
    pub fn may_be(&self, place: usize, depth: i32) -> bool {
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
