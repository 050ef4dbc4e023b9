//! Writes and reads the records with which the log speaks of embeddings.
//!
//! Three kinds of records, all under ids that only this face may write: a *space* binds a name to a model and a dimension, a
//! *group* says which rows belong to which records and what their digests are, and one record says which space is asked
//! when none is named.

use std::borrow::Cow;

use chronolog::digest::Hex;
use chronolog::error::{Error, Result};
use chronolog::event::draft::Draft;
use chronolog::event::draft_value::defaults;
use chronolog::event::faces::VECTORS;
use chronolog::json::{self, Cursor, Value};
use chronolog::layout::{ROWS_SUFFIX, is_space_name};
use chronomemory_search::vector::rows::LARGEST_DIM;
use chronomemory_state::state::{State, spelled, unspelled};

/// How many rows one event names at most.
pub const GROUP_ROWS: usize = 1024;
/// How long its ids may be together, unless it is only one: patches are to fit in too.
const GROUP_ID_BYTES: usize = 4 * 1024 * 1024;
/// What begins every id of this face.
const PREFIX: &str = "vector:";
/// The id of the record that names the space to ask when none is named; no space has an empty name.
pub const CHOICE_ID: &str = "vector::default";
/// The space that is asked when nobody ever said which.
pub const FIRST_SPACE: &str = "default";
/// Confidence, dimension and generation of a group stand within so many bytes.
const BEGINNING_BYTES: usize = 128;

/// An embedding space, as the log binds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    pub name: String,
    /// The model that all its rows come from; empty if the record that said so is lost.
    pub model: String,
    pub dim: usize,
    /// Which file holds its rows; compaction may move them to the next.
    pub generation: u64,
    /// How many components the token vectors had whose codes its rows are; 0 if a row is a vector.
    pub tokens: usize,
}

impl Bound {
    #[must_use]
    pub fn stride(&self) -> u64 {
        4 * self.dim as u64
    }

    /// The same space with its rows in another file.
    #[must_use]
    pub fn at(&self, generation: u64) -> Self {
        Self {
            generation,
            ..self.clone()
        }
    }
}

/// Whether a space may have this name: it becomes the name of a file.
pub fn check_name(name: &str) -> Result<()> {
    if !is_space_name(name) {
        return Err(Error::must(
            "space",
            "be 1 to 64 of A-Z a-z 0-9 . _ - without a dot in front",
            format!("{name:?}"),
        ));
    }
    Ok(())
}

/// Whether vectors may have so many components.
pub fn check_dim(dim: usize) -> Result<()> {
    if (1..=LARGEST_DIM).contains(&dim) {
        return Ok(());
    }
    Err(Error::invalid(
        "vector",
        format!("must have 1 to {LARGEST_DIM} components, got {dim}"),
    ))
}

/// The name of the file that holds the rows of a space, within `vectors/`.
pub fn file_name(bound: &Bound) -> String {
    format!("{}.{}{ROWS_SUFFIX}", bound.name, bound.generation)
}

/// The id of the record that binds a space.
pub fn space_id(name: &str) -> String {
    format!("{PREFIX}{name}")
}

pub fn group_id(name: &str, row: u32) -> String {
    format!("{PREFIX}{name}:{row}")
}

/// The space whose record has this id; `None` if it is no space's.
pub fn space_name(id: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(id).ok()?.strip_prefix(PREFIX)?;
    check_name(name).is_ok().then_some(name)
}

/// The space of the group whose record has this id; `None` if it is no group's.
pub fn group_space(id: &[u8]) -> Option<&str> {
    // Most ids are others: these are told apart at a glance.
    let rest = id.strip_prefix(PREFIX.as_bytes())?;
    let (space, row) = std::str::from_utf8(rest).ok()?.rsplit_once(':')?;
    (!space.is_empty() && !row.is_empty() && row.bytes().all(|b| b.is_ascii_digit())).then_some(space)
}

/// The first row of the group whose record has this id.
pub fn group_row(id: &[u8]) -> Option<u32> {
    std::str::from_utf8(id).ok()?.rsplit_once(':')?.1.parse().ok()
}

/// The space and the generation of a group, without reading all of it: its record is canonical and begins with them.
pub fn file_of<'a>(id: &'a [u8], record: &[u8]) -> Option<(&'a str, u64)> {
    let space = group_space(id).filter(|space| check_name(space).is_ok())?;
    Some((space, generation_in(record)?))
}

/// The generation that a canonical record of a group or a space begins with.
pub fn generation_in(record: &[u8]) -> Option<u64> {
    number_in(record, b"\"generation\":")
}

/// The dimension that it begins with.
pub fn dim_in(record: &[u8]) -> Option<usize> {
    let dim = usize::try_from(number_in(record, b"\"dim\":")?).ok()?;
    check_dim(dim).is_ok().then_some(dim)
}

/// Whether the record of a group still names rows.
pub fn names_rows(record: &[u8]) -> bool {
    memchr::memmem::find(record, b"\"ids\":[").is_some()
}

fn number_in(record: &[u8], key: &[u8]) -> Option<u64> {
    let beginning = &record[..record.len().min(BEGINNING_BYTES)];
    let start = memchr::memmem::find(beginning, key)? + key.len();
    let digits = beginning[start..].iter().take_while(|b| b.is_ascii_digit()).count();
    std::str::from_utf8(&beginning[start..start + digits])
        .ok()?
        .parse()
        .ok()
}

/// Puts a space into a draft.
pub fn write_space(draft: &mut Draft, space: &Bound, depth: i64) -> Result<()> {
    let label = format!("Embeddings of {}", space.model);
    write_record(draft, &space_id(&space.name), "vector_space", &label, depth, |out| {
        out.extend_from_slice(
            format!("{{\"dim\":{},\"generation\":{},\"model\":", space.dim, space.generation).as_bytes(),
        );
        json::write_string(&space.model, out);
        out.extend_from_slice(format!(",\"space\":\"{}\"", space.name).as_bytes());
        if space.tokens > 0 {
            out.extend_from_slice(format!(",\"tokens\":{}", space.tokens).as_bytes());
        }
        out.push(b'}');
    })
}

/// Puts rows into a draft, in groups that fit into lines however long the ids are; gives the first row of each group. Ids
/// are given as they stand between quotes.
///
/// # Errors
/// `TooLarge` if an id is too long for any line.
pub fn write_groups(
    draft: &mut Draft,
    space: &Bound,
    mut row: u32,
    mut rows: &[(&[u8], &Hex)],
    depth: i64,
) -> Result<Vec<u32>> {
    let mut firsts = Vec::with_capacity(1);
    while !rows.is_empty() {
        let mut bytes = 0;
        let fits = |(id, _): &&(&[u8], &Hex)| {
            bytes += id.len();
            bytes <= GROUP_ID_BYTES
        };
        let count = rows.iter().take(GROUP_ROWS).take_while(fits).count().max(1);
        let (these, others) = rows.split_at(count);
        write_group(draft, space, row, these, depth)?;
        firsts.push(row);
        (row, rows) = (row + count as u32, others);
    }
    Ok(firsts)
}

/// Puts one group into a draft.
///
/// # Errors
/// `TooLarge` if the line would be too long.
pub fn write_group(draft: &mut Draft, space: &Bound, row: u32, rows: &[(&[u8], &Hex)], depth: i64) -> Result<()> {
    write_record(draft, &group_id(&space.name, row), "vector", "", depth, |out| {
        out.extend_from_slice(
            format!("{{\"dim\":{},\"generation\":{},\"ids\":[", space.dim, space.generation).as_bytes(),
        );
        for (at, (id, _)) in rows.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(id);
            out.push(b'"');
        }
        out.extend_from_slice(format!("],\"row\":{row},\"sha256\":[").as_bytes());
        for (at, (_, digest)) in rows.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(digest.bytes());
            out.push(b'"');
        }
        out.extend_from_slice(format!("],\"space\":\"{}\"}}", space.name).as_bytes());
    })
}

/// Says which space is asked when none is named.
pub fn write_choice(draft: &mut Draft, name: &str, depth: i64) -> Result<()> {
    let label = format!("Searches ask {name} when they name no space");
    write_record(draft, CHOICE_ID, "vector_default", &label, depth, |out| {
        out.extend_from_slice(format!("{{\"space\":\"{name}\"}}").as_bytes());
    })
}

/// Takes rows of one group back. The id of a group is used again in the next generation; so that a patch which comes after
/// a lost line cannot take back somebody else's row, it says which generation it means.
pub fn write_gone(draft: &mut Draft, space: &Bound, group: u32, rows: &[u32]) -> Result<()> {
    let mut keys: Vec<String> = rows.iter().map(|row| gone_key(space.generation, *row)).collect();
    // Keys are sorted as text.
    keys.sort();
    let gone = Value::object(keys.into_iter().map(|key| (key, Value::Bool(true))));
    patch(draft, &group_id(&space.name, group), &[("gone", gone)], None)
}

fn gone_key(generation: u64, row: u32) -> String {
    match generation {
        0 => row.to_string(),
        _ => format!("{generation}:{row}"),
    }
}

/// The row that a key of `gone` means in a group of some generation; `None` if it means none of its rows.
pub fn gone_row(key: &str, generation: u64) -> Option<u32> {
    match key.split_once(':') {
        None => key.parse().ok(),
        Some((of, row)) => (of.parse() == Ok(generation)).then(|| row.parse().ok()).flatten(),
    }
}

/// Says that a group names no rows any more.
pub fn write_empty(draft: &mut Draft, name: &str, group: u32) -> Result<()> {
    let nothing = [("gone", Value::Null), ("ids", Value::Null), ("sha256", Value::Null)];
    patch(draft, &group_id(name, group), &nothing, Some("tombstone"))
}

/// Says that a space is no more. Its generation stays: if the name is used again, that is with the next one.
pub fn write_dropped(draft: &mut Draft, name: &str) -> Result<()> {
    let nothing = [("dim", Value::Null), ("model", Value::Null)];
    patch(draft, &space_id(name), &nothing, Some("tombstone"))
}

fn patch(draft: &mut Draft, id: &str, data: &[(&str, Value)], status: Option<&str>) -> Result<()> {
    let data = Value::object(data.iter().map(|(key, value)| (*key, value.clone())));
    let mut fields = vec![("data", data)];
    fields.extend(status.map(|status| ("status", Value::Str(status.to_owned()))));
    let text = Value::object(fields).to_bytes();
    draft.patch(id, VECTORS, &text)
}

fn write_record(
    draft: &mut Draft,
    id: &str,
    kind: &str,
    label: &str,
    depth: i64,
    data: impl FnOnce(&mut Vec<u8>),
) -> Result<()> {
    let mut writer = draft.upsert();
    writer.confidence(1.0)?;
    data(writer.field());
    writer.field().extend_from_slice(b"[]");
    writer.field().extend_from_slice(b"[]");
    writer.id(id, Some(VECTORS))?;
    writer.is_hypothesis(false);
    writer.kind(kind);
    writer.text(label);
    writer.field().extend_from_slice(b"{}");
    json::write_i64(depth, writer.field());
    writer.text(defaults::SOURCE_TYPE);
    writer.status(defaults::STATUS)
}

/// An id as people write it.
pub fn shown(id: &[u8]) -> String {
    unspelled(id)
}

/// A digest between quotes, and what stands behind it.
const DIGEST_BYTES: usize = 64 + 3;

/// Rows and the records they belong to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowGroup<'a> {
    pub space: String,
    pub dim: u64,
    /// The generation that the rows lie in.
    pub generation: u64,
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
    Space(Bound),
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

/// Shows the group that begins at a row of a space; `None` if the state has no such group.
pub fn with_group<T>(state: &State, space: &str, row: u32, show: impl FnOnce(&RowGroup<'_>) -> T) -> Option<T> {
    let id = group_id(space, row);
    let record = state.slots.record(state.slots.of_id(&id)?);
    match read(id.as_bytes(), &record)? {
        VectorRecord::Group(group) => Some(show(&group)),
        _ => None,
    }
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
        dim: number("dim").unwrap_or(0),
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
    let dim = cursor.digits()?;
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
        dim,
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
