//! Reads a record about embeddings.
//!
//! A space of a million rows has a thousand groups of a hundred kilobytes. Records in a state are canonical, and ours always
//! have the same keys, so a group is read by stepping over what must be there. Whatever is otherwise is read as any JSON.

use std::borrow::Cow;

use super::format::{Bound, CHOICE_ID, check_dim, check_name, gone_row, group_id, group_space, space_id};
use chronolog::digest::Hex;
use chronolog::json::{self, Cursor, Value};
use chronomemory_state::state::spelled;

/// A digest between quotes, and what stands behind it.
const DIGEST_BYTES: usize = 64 + 3;

/// Rows and the records they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup<'a> {
    /// The name of the space.
    pub space: String,
    /// The generation that the rows lie in.
    pub generation: u64,
    /// The first row.
    pub row: u32,
    /// The records, as their ids stand between quotes.
    pub ids: Vec<Cow<'a, [u8]>>,
    /// SHA-256 of each row's bytes.
    pub digests: Vec<[u8; 32]>,
    /// Rows that were taken back.
    pub gone: Vec<u32>,
}

impl RowGroup<'_> {
    /// The rows that were not taken back.
    pub fn living(&self) -> impl Iterator<Item = u32> + '_ {
        let rows = self.row..self.row + self.ids.len() as u32;
        rows.filter(|row| !self.gone.contains(row))
    }
}

/// What one record of this face says.
#[derive(Debug)]
pub enum VectorRecord<'a> {
    /// A space.
    Space(Bound),
    /// A group.
    Group(RowGroup<'a>),
    /// The space to ask when none is named.
    Choice(String),
}

/// What a record of this face says; `None` if it says nothing that counts.
pub fn read<'a>(id: &[u8], record: &'a [u8]) -> Option<VectorRecord<'a>> {
    let group = match group_space(id).and_then(|space| step_over(space, record)) {
        Some(group) => group,
        None => match read_any(id, record)? {
            VectorRecord::Group(group) => group,
            other => return Some(other),
        },
    };
    let fits = group.ids.len() == group.digests.len() && group.row.checked_add(group.ids.len() as u32).is_some();
    (fits && id == group_id(&group.space, group.row).as_bytes()).then_some(VectorRecord::Group(group))
}

fn read_any<'a>(id: &[u8], record: &[u8]) -> Option<VectorRecord<'a>> {
    let record = json::parse(record).ok()?;
    let data = record.get("data")?;
    let text = |key: &str| data.get(key).and_then(Value::as_str);
    let number = |key: &str| data.get(key).and_then(Value::as_u64);
    if id == CHOICE_ID.as_bytes() {
        return Some(VectorRecord::Choice(text("space")?.to_owned()));
    }
    let space = text("space").filter(|name| check_name(name).is_ok())?.to_owned();
    if id == space_id(&space).as_bytes() {
        let dim = usize::try_from(number("dim")?).ok()?;
        check_dim(dim).ok()?;
        return Some(VectorRecord::Space(Bound {
            name: space,
            model: text("model")?.to_owned(),
            dim,
            generation: number("generation")?,
            tokens: number("tokens")
                .and_then(|tokens| usize::try_from(tokens).ok())
                .unwrap_or(0),
        }));
    }
    let ids = data.get("ids").and_then(Value::as_array)?;
    let digests = data.get("sha256").and_then(Value::as_array)?;
    let gone = data.get("gone").and_then(Value::as_object).unwrap_or_default();
    let generation = number("generation")?;
    Some(VectorRecord::Group(RowGroup {
        space,
        generation,
        row: u32::try_from(number("row")?).ok()?,
        ids: ids
            .iter()
            .map(|id| id.as_str().map(|id| Cow::Owned(spelled(id))))
            .collect::<Option<_>>()?,
        digests: digests
            .iter()
            .map(|digest| Hex::read_raw(digest.as_str()?.as_bytes()))
            .collect::<Option<_>>()?,
        gone: gone.iter().filter_map(|(key, _)| gone_row(key, generation)).collect(),
    }))
}

/// A group as we write it, with nothing taken back.
fn step_over<'a>(space: &str, record: &'a [u8]) -> Option<RowGroup<'a>> {
    let mut cursor = Cursor::new(record);
    cursor.pass(b"{\"confidence\":1.0,\"data\":{\"dim\":")?;
    cursor.digits()?;
    cursor.pass(b",\"generation\":")?;
    let generation = cursor.digits()?;
    cursor.pass(b",\"ids\":[")?;
    let ids = strings(&mut cursor)?;
    cursor.pass(b",\"row\":")?;
    let row = u32::try_from(cursor.digits()?).ok()?;
    cursor.pass(b",\"sha256\":[")?;
    let digests = digests(&mut cursor, ids.len())?;
    cursor.pass(b",\"space\":\"")?;
    cursor.pass(space.as_bytes())?;
    cursor.pass(b"\"}")?;
    Some(RowGroup {
        space: space.to_owned(),
        generation,
        row,
        ids,
        digests,
        gone: Vec::new(),
    })
}

/// The strings of a list whose bracket was passed, and the bracket at its end.
fn strings<'a>(cursor: &mut Cursor<'a>) -> Option<Vec<Cow<'a, [u8]>>> {
    let mut found = Vec::new();
    while cursor.has_more(b']')? {
        found.push(Cow::Borrowed(cursor.string()?.inner));
    }
    Some(found)
}

/// So many digests of a list whose bracket was passed, and the bracket at its end. They all take the same room.
fn digests(cursor: &mut Cursor<'_>, count: usize) -> Option<Vec<[u8; 32]>> {
    let text = cursor.take(count.checked_mul(DIGEST_BYTES)?.max(1))?;
    let (last, text) = text.split_last()?;
    let mut digests = Vec::with_capacity(count);
    for each in text.chunks(DIGEST_BYTES) {
        let [b'"', digits @ .., b'"'] = each.strip_suffix(b",").unwrap_or(each) else {
            return None;
        };
        digests.push(Hex::read_raw(digits)?);
    }
    (*last == b']').then_some(digests)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::vectors::records::format::{write_gone, write_group};
    use chronolog::event::draft::Draft;

    #[test]
    fn both_ways_read_the_same() {
        let bound = Bound {
            name: "a.b".to_owned(),
            model: "m".to_owned(),
            dim: 3,
            generation: 7,
            tokens: 0,
        };
        let digest = chronolog::digest::sha256(b"a row");
        for ids in [vec![], vec!["R1"], vec!["quote\" back\\slash", "", "ä\u{2028}", "\\"]] {
            let spelled: Vec<Vec<u8>> = ids.iter().map(|id| spelled(id)).collect();
            let rows: Vec<(&[u8], &Hex)> = spelled.iter().map(|id| (id.as_slice(), &digest)).collect();
            let mut draft = Draft::default();
            write_group(&mut draft, &bound, 40, &rows, 0).expect("a group");
            let record = draft.record(&draft.changes()[0]);
            let quick = step_over("a.b", record).expect("our own form");
            assert_eq!((quick.row, quick.generation), (40, 7));
            assert_eq!(quick.ids, spelled);
            match read_any(b"vector:a.b:40", record) {
                Some(VectorRecord::Group(slow)) => assert_eq!(slow, quick),
                other => panic!("{other:?}"),
            }
            assert!(read(b"vector:a.b:41", record).is_none());
        }
        let mut draft = Draft::default();
        write_gone(&mut draft, &bound, 40, &[41, 9]).expect("a patch");
        assert!(step_over("a.b", draft.record(&draft.changes()[0])).is_none());
    }
}
