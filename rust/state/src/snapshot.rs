//! Reads a whole state back from a base or from `snapshot.json`, whoever wrote it.
//!
//! Bases and `snapshot.json` have one shape: a header and the records in insertion order, one a line; a base has the moments
//! of its records too. Files of other tools, spelled in any way, are read as well.

mod header;
mod lines;
mod moments;
mod writer;

use std::io;

use chronolog::digest::{Hasher, Hex};
use chronolog::disk::{DiskFile, read_upto};
use chronolog::event::salt;
use chronolog::json::{self, RecordSpans, Value};
use chronolog::memory::{self, Refused};

pub(crate) use lines::LineReader;

pub use header::Header;
pub use header::{OPEN_MOMENTS, OPEN_RECORDS, TO_LATER_MOMENTS, TO_RECORDS};
pub use moments::{Doubt, Moments, Stamp};
pub use writer::{BaseWriter, write};

/// What a file of another tool may need while it is parsed, for each of its bytes.
const PARSED_BYTES: usize = 8;

/// A larger file is not parsed unless it is of our own form, which is read line by line.
const MAX_FOREIGN_BYTES: usize = 256 << 20;

/// What was found in a file.
#[derive(Debug)]
pub struct Contents {
    /// The file's digest.
    pub sha256: Hex,
    /// Its header, or why it is not a state.
    pub header: Result<Header, String>,
}

/// Who takes the records of a file.
pub trait RecordSink {
    /// Asks for the memory that a record of so many bytes needs, before it is taken.
    ///
    /// # Errors
    /// `Refused` if there is not so much: nothing more comes then.
    fn make_room(&mut self, _: usize) -> Result<(), Refused> {
        memory::check()
    }
    /// Whether the next record is known, byte for byte: then it counts as taken, and nobody looks where its fields lie.
    fn knows(&mut self, _record: &[u8]) -> bool {
        false
    }
    /// One record in canonical JSON, where its fields lie, and its moments if they are known by now.
    fn take(&mut self, record: &[u8], fields: RecordSpans, moments: Option<Moments>);
    /// The moments of a record that was taken without, by its id as it stands between quotes.
    fn date(&mut self, _id: &[u8], _moments: Moments) {}
    /// All of that was wrong; the records come again from the first.
    fn start_over(&mut self) {}
}

/// Looks at a file without keeping its records.
pub struct NoRecordSink;

impl RecordSink for NoRecordSink {
    fn take(&mut self, _: &[u8], _: RecordSpans, _: Option<Moments>) {}
}

/// Reads a state. A record without an id is passed over: nobody can ask for it.
pub fn read(file: &dyn DiskFile, taker: &mut dyn RecordSink) -> io::Result<Contents> {
    let mut hasher = Some(Hasher::default());
    if let Some(header) = read_own(file, taker, &mut hasher)? {
        return Ok(Contents {
            sha256: hasher.unwrap_or_default().finish(),
            header: Ok(header),
        });
    }
    taker.start_over();
    read_foreign(file, taker)
}

/// The same without the digest, which is most of the work; `false` if the file is not of our own form to its end.
pub fn read_undigested(file: &dyn DiskFile, taker: &mut dyn RecordSink) -> io::Result<bool> {
    Ok(read_own(file, taker, &mut None)?.is_some())
}

/// Where one is in a list of our form: between two items there is a comma, and nowhere else.
#[derive(Clone, Copy, Debug)]
struct CommaList {
    /// Nothing stands in it yet, or a comma was the last.
    open: bool,
    /// A comma was the last.
    awaited: bool,
}

impl CommaList {
    const BEGUN: Self = Self {
        open: true,
        awaited: false,
    };

    /// The item of a line, without its comma; `None` if there may be none here.
    fn item<'a>(&mut self, line: &'a [u8]) -> Option<&'a [u8]> {
        let may_come = self.open;
        self.awaited = line.ends_with(b",");
        self.open = self.awaited;
        may_come.then(|| line.strip_suffix(b",").unwrap_or(line))
    }
}

/// What comes next in the list of moments at the beginning of a base.
enum NextMoments {
    Moments(Moments),
    End,
    Foreign,
}

/// The moments at the beginning of a base. They are read beside the records and not kept: there are as many.
struct Front<'a> {
    lines: LineReader<'a>,
    list: CommaList,
    ended: bool,
    /// The ids of the records whose moments come later.
    undated: Vec<Vec<u8>>,
}

impl Front<'_> {
    fn next(&mut self) -> io::Result<NextMoments> {
        if self.ended {
            return Ok(NextMoments::End);
        }
        let Some(line) = self.lines.next(None)? else {
            return Ok(NextMoments::Foreign);
        };
        if line == TO_RECORDS {
            self.ended = true;
            return Ok(if self.list.awaited {
                NextMoments::Foreign
            } else {
                NextMoments::End
            });
        }
        let moments = self.list.item(line).and_then(Moments::read);
        Ok(moments.map_or(NextMoments::Foreign, NextMoments::Moments))
    }
}

/// Reads a file of our own form, line by line; `None` if it is not of that form to its end.
fn read_own(
    file: &dyn DiskFile,
    taker: &mut dyn RecordSink,
    hasher: &mut Option<Hasher>,
) -> io::Result<Option<Header>> {
    let mut lines = LineReader::from(file, 0);
    let Some(first) = lines.next(hasher.as_mut())? else {
        return Ok(None);
    };
    let header = if first == OPEN_MOMENTS {
        read_dated(file, &mut lines, hasher, taker)?
    } else if first == OPEN_RECORDS {
        let end = read_records(&mut lines, hasher, taker, None, |line| line.starts_with(b"],"))?;
        end.and_then(|last| Header::of_last(&last))
    } else if let Some(header) = Header::of_first(first) {
        read_records(&mut lines, hasher, taker, None, |line| line == b"]}")?.map(|_| header)
    } else {
        None
    };
    // Nothing stands behind it.
    if lines.next(hasher.as_mut())?.is_some() || lines.too_long {
        return Ok(None);
    }
    Ok(header)
}

/// Reads records up to the line that ends them, and gives that line.
fn read_records(
    lines: &mut LineReader<'_>,
    hasher: &mut Option<Hasher>,
    taker: &mut dyn RecordSink,
    mut front: Option<&mut Front<'_>>,
    is_end: impl Fn(&[u8]) -> bool,
) -> io::Result<Option<Vec<u8>>> {
    let mut list = CommaList::BEGUN;
    while let Some(line) = lines.next(hasher.as_mut())? {
        if is_end(line) {
            return Ok((!list.awaited).then(|| line.to_vec()));
        }
        let Some(record) = list.item(line) else {
            return Ok(None);
        };
        let moments = match front.as_mut().map(|front| front.next()).transpose()? {
            Some(NextMoments::Moments(_)) if taker.knows(record) => continue,
            Some(NextMoments::Moments(moments)) => Some(moments),
            Some(NextMoments::Foreign) => return Ok(None),
            Some(NextMoments::End) | None => None,
        };
        let Some(fields) = json::scan_record(record) else {
            return Ok(None);
        };
        if let (Some(front), None) = (&mut front, moments) {
            let id = fields.id.map(|span| span.of(record)).unwrap_or_default();
            front.undated.push(id.to_vec());
        }
        taker.make_room(record.len())?;
        taker.take(&salt::without(record), fields, moments);
    }
    Ok(None)
}

/// Reads a base that has moments, behind its first line.
fn read_dated(
    file: &dyn DiskFile,
    lines: &mut LineReader<'_>,
    hasher: &mut Option<Hasher>,
    taker: &mut dyn RecordSink,
) -> io::Result<Option<Header>> {
    let mut front = Front {
        lines: LineReader::from(file, OPEN_MOMENTS.len() as u64 + 1),
        list: CommaList::BEGUN,
        ended: false,
        undated: Vec::new(),
    };
    while lines.next(hasher.as_mut())?.is_some_and(|line| line != TO_RECORDS) {}
    let end = read_records(lines, hasher, taker, Some(&mut front), |line| line == TO_LATER_MOMENTS)?;
    // There must not be more moments than records.
    let (Some(_), NextMoments::End) = (end, front.next()?) else {
        return Ok(None);
    };
    let (mut list, mut undated) = (CommaList::BEGUN, front.undated.into_iter());
    while let Some(line) = lines.next(hasher.as_mut())? {
        if line.starts_with(b"],") {
            let is_whole = !list.awaited && undated.next().is_none();
            return Ok(Header::of_last(line).filter(|_| is_whole));
        }
        let moments = list.item(line).and_then(Moments::read);
        let (Some(moments), Some(id)) = (moments, undated.next()) else {
            return Ok(None);
        };
        taker.date(&id, moments);
    }
    Ok(None)
}

fn read_foreign(file: &dyn DiskFile, taker: &mut dyn RecordSink) -> io::Result<Contents> {
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    if length > MAX_FOREIGN_BYTES {
        let reason = "it is not of this library's form, and of another at most 256 MiB are read";
        return Ok(Contents {
            sha256: chronolog::archive::file_digest(file)?,
            header: Err(reason.to_owned()),
        });
    }
    let mut bytes = Vec::new();
    read_upto(file, &mut bytes, 0, length)?;
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    memory::could_have(length.saturating_mul(PARSED_BYTES))?;
    let header = read_value(&bytes, taker)?;
    Ok(Contents {
        sha256: hasher.finish(),
        header,
    })
}

fn read_value(bytes: &[u8], taker: &mut dyn RecordSink) -> io::Result<Result<Header, String>> {
    let value = match json::parse_to_depth(bytes, json::MAX_DEPTH + 1) {
        Ok(value) => value,
        Err(fault) => return Ok(Err(fault.to_string())),
    };
    let found = header_and_records(&value);
    let found = found.and_then(|(header, records)| Ok((header, records, moments_of(&value, records.len())?)));
    let (header, records, moments) = match found {
        Ok(found) => found,
        Err(reason) => return Ok(Err(reason.to_owned())),
    };
    let mut text = Vec::new();
    for (at, record) in records.iter().enumerate() {
        text.clear();
        json::write_value(record, &mut text);
        if let Some(fields) = json::scan_record(&text) {
            taker.make_room(text.len())?;
            taker.take(&salt::without(&text), fields, moments.get(at).copied());
        }
    }
    Ok(Ok(header))
}

fn header_and_records(value: &Value) -> Result<(Header, &[Value]), &'static str> {
    let header = Header::of(value).ok_or("seq or last_hash is missing")?;
    let records = value.get("records").and_then(Value::as_array);
    let records = records.ok_or("there is no list of records")?;
    if records.iter().any(|record| record.as_object().is_none()) {
        return Err("one of the records is not an object");
    }
    Ok((header, records))
}

/// The moments of so many records, in their order; none at all if the state is without.
fn moments_of(value: &Value, records: usize) -> Result<Vec<Moments>, &'static str> {
    let lists = [value.get("moments"), value.get("later_moments")];
    if lists.iter().all(Option::is_none) {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for list in lists.into_iter().flatten() {
        let rows = list.as_array().ok_or("its moments are no list")?;
        for row in rows {
            let moments = Moments::read(&row.to_bytes());
            found.push(moments.ok_or("one of its moments is not four numbers in order")?);
        }
    }
    if found.len() != records {
        return Err("it has not as many moments as records");
    }
    Ok(found)
}
