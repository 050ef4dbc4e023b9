//! The records with which the log speaks of embeddings.
//!
//! Three kinds of records, all under ids that only this face may write: a *space* binds a name to a model and a dimension, a
//! *group* says which rows belong to which records and what their digests are, and one record says which space is asked
//! when none is named.

use chronolog::digest::Hex;
use chronolog::error::{Error, Result};
use chronolog::event::draft::{Draft, RawField};
use chronolog::event::draft_value::defaults;
use chronolog::event::faces::VECTORS;
use chronolog::json::{self, Value};
use chronolog::layout::{ROWS_SUFFIX, is_space_name};
use chronomemory_search::vector::rows::LARGEST_DIM;
use chronomemory_state::state::unspelled;

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
    /// Its name.
    pub name: String,
    /// The model that all its rows come from; empty if the record that said so is lost.
    pub model: String,
    /// How many components a row has.
    pub dim: usize,
    /// Which file holds its rows; compaction may move them to the next.
    pub generation: u64,
    /// How many components the token vectors had whose codes its rows are; 0 if a row is a vector.
    pub tokens: usize,
}

impl Bound {
    /// How many bytes a row takes.
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
///
/// # Errors
/// `Argument`.
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
///
/// # Errors
/// `Invalid`.
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

/// The id of the record of a group.
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
///
/// # Errors
/// `Invalid`.
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
///
/// # Errors
/// `Invalid`.
pub fn write_choice(draft: &mut Draft, name: &str, depth: i64) -> Result<()> {
    let label = format!("Searches ask {name} when they name no space");
    write_record(draft, CHOICE_ID, "vector_default", &label, depth, |out| {
        out.extend_from_slice(format!("{{\"space\":\"{name}\"}}").as_bytes());
    })
}

/// Takes rows of one group back. The id of a group is used again in the next generation; so that a patch which comes after
/// a lost line cannot take back somebody else's row, it says which generation it means.
///
/// # Errors
/// `Invalid`.
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
///
/// # Errors
/// `Invalid`.
pub fn write_empty(draft: &mut Draft, name: &str, group: u32) -> Result<()> {
    let nothing = [("gone", Value::Null), ("ids", Value::Null), ("sha256", Value::Null)];
    patch(draft, &group_id(name, group), &nothing, Some("tombstone"))
}

/// Says that a space is no more. Its generation stays: if the name is used again, that is with the next one.
///
/// # Errors
/// `Invalid`.
pub fn write_dropped(draft: &mut Draft, name: &str) -> Result<()> {
    let nothing = [("dim", Value::Null), ("model", Value::Null)];
    patch(draft, &space_id(name), &nothing, Some("tombstone"))
}

fn patch(draft: &mut Draft, id: &str, data: &[(&str, Value)], status: Option<&str>) -> Result<()> {
    let data = Value::object(data.iter().map(|(key, value)| (*key, value.clone())));
    let mut fields = vec![("data", data)];
    fields.extend(status.map(|status| ("status", Value::Str(status.to_owned()))));
    let mut text = Vec::new();
    json::write_value(&Value::object(fields), &mut text);
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
    data(writer.raw(RawField::Data));
    writer.raw(RawField::EpistemicBoundary).extend_from_slice(b"[]");
    writer.raw(RawField::Evidence).extend_from_slice(b"[]");
    writer.id(id, Some(VECTORS))?;
    writer.is_hypothesis(false);
    writer.kind(kind);
    writer.label(label);
    writer.raw(RawField::ModelAssumptions).extend_from_slice(b"{}");
    writer.recursion_depth(depth);
    writer.source_type(defaults::SOURCE_TYPE);
    writer.status(defaults::STATUS)
}

/// An id as people write it.
pub fn shown(id: &[u8]) -> String {
    unspelled(id)
}
