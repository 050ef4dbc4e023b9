//! How is a whole state written down and read back?
//!
//! Bases and `snapshot.json` have one shape: a header and the records in insertion order, one a line. Files of other tools,
//! spelled in any way, are read too.

use std::io;
use std::path::Path;
use std::sync::Arc;

use memchr::memchr;

use crate::digest::{Hasher, Hex};
use crate::disk::{Disk, DiskFile, PACE_BYTES, read_upto};
use crate::json::{self, RecordSpans, Value};
use crate::memory::{self, Refused};

/// What leads over to the records.
const RECORDS: &[u8] = b",\"records\":[";
/// How a state begins whose header stands behind its records.
pub(crate) const OPEN_HEADER: &[u8] = b"{\"records\":[";
/// What a file of another tool may need while it is parsed, for each of its bytes.
const PARSED_BYTES: usize = 8;
/// How much is written or read at a time.
const BUFFER_BYTES: usize = 1024 * 1024;

/// What stands before the records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The last event that the state contains.
    pub seq: u64,
    /// That event's hash.
    pub last_hash: String,
    /// That event's moment.
    pub ts: String,
}

impl Header {
    fn spell(&self) -> Vec<u8> {
        let mut text = format!("{{\"seq\":{},\"last_hash\":", self.seq).into_bytes();
        json::write_string(&self.last_hash, &mut text);
        text.extend_from_slice(b",\"ts\":");
        json::write_string(&self.ts, &mut text);
        text.extend_from_slice(RECORDS);
        text
    }

    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            seq: u64::try_from(value.get("seq")?.as_i64()?).ok()?,
            last_hash: value.get("last_hash")?.as_str()?.to_owned(),
            ts: value.get("ts").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }
}

/// Writes a state into a new file at `path`; sync and name are the caller's to make durable.
///
/// # Errors
/// What the disk says.
pub fn write<'a>(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    records: impl ExactSizeIterator<Item = &'a [u8]>,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Written> {
    let mut writer = Writer::start(disk, path, header.spell())?;
    writer.add(records, progress)?;
    writer.finish(b"\n]}\n")
}

/// The same, and waits until the disk has it.
///
/// # Errors
/// What the disk says.
pub fn write_durably<'a>(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    records: impl ExactSizeIterator<Item = &'a [u8]>,
) -> io::Result<()> {
    let mut writer = Writer::start(disk, path, header.spell())?.paced();
    writer.add(records, &mut |_, _| {})?;
    writer.finish(b"\n]}\n")?.file.sync()
}

/// A state that is being written down. A record whose id came before replaces that one: so a state can be written while it
/// still changes, and what changed comes behind. What stands before the records in a snapshot then stands behind them.
pub struct Writer {
    file: Arc<dyn DiskFile>,
    hasher: Hasher,
    buffer: Vec<u8>,
    offset: u64,
    is_empty: bool,
    /// Up to here it is on disk, if it is to be.
    synced: Option<u64>,
}

impl Writer {
    /// Creates a base, of which is not known yet when it will be complete.
    ///
    /// # Errors
    /// What the disk says.
    pub fn base(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        Ok(Self::start(disk, path, OPEN_HEADER.to_vec())?.paced())
    }

    /// It is to be synced in the end, and so on the way.
    fn paced(self) -> Self {
        Self {
            synced: Some(0),
            ..self
        }
    }

    fn start(disk: &dyn Disk, path: &Path, buffer: Vec<u8>) -> io::Result<Self> {
        Ok(Self {
            file: disk.create(path)?,
            hasher: Hasher::default(),
            buffer,
            offset: 0,
            is_empty: true,
            synced: None,
        })
    }

    /// Writes records behind the others.
    ///
    /// # Errors
    /// What the disk says.
    pub fn add<'a>(
        &mut self,
        records: impl ExactSizeIterator<Item = &'a [u8]>,
        progress: &mut dyn FnMut(u64, u64),
    ) -> io::Result<()> {
        let total = records.len() as u64;
        for (index, record) in records.enumerate() {
            let before: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
            self.buffer.extend_from_slice(before);
            self.buffer.extend_from_slice(record);
            self.is_empty = false;
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
                progress(index as u64, total);
            }
        }
        progress(total, total);
        Ok(())
    }

    /// Makes durable what was added so far, so that less is left for the end.
    ///
    /// # Errors
    /// What the disk says.
    pub fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        self.file.sync()
    }

    /// Completes a base with what its state is; it is synced.
    ///
    /// # Errors
    /// What the disk says.
    pub fn finish_base(self, header: &Header) -> io::Result<Written> {
        let head = header.spell();
        let mut end = b"\n],".to_vec();
        end.extend_from_slice(head.strip_suffix(RECORDS).unwrap_or(&head).get(1..).unwrap_or_default());
        end.extend_from_slice(b"}\n");
        let written = self.finish(&end)?;
        written.file.sync()?;
        Ok(written)
    }

    fn finish(mut self, end: &[u8]) -> io::Result<Written> {
        self.buffer.extend_from_slice(end);
        self.flush()?;
        Ok(Written {
            file: self.file,
            sha256: self.hasher.finish(),
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.hasher.update(&self.buffer);
        self.file.write_at(&self.buffer, self.offset)?;
        self.offset += self.buffer.len() as u64;
        self.buffer.clear();
        if let Some(synced) = &mut self.synced
            && self.offset - *synced >= PACE_BYTES
        {
            self.file.sync()?;
            *synced = self.offset;
        }
        Ok(())
    }
}

/// A state that was written down.
pub struct Written {
    /// The file.
    pub file: Arc<dyn DiskFile>,
    /// Its digest.
    pub sha256: Hex,
}

/// What was found in a file.
#[derive(Debug)]
pub struct Contents {
    /// The file's digest.
    pub sha256: Hex,
    /// Its header, or why it is not a state.
    pub header: Result<Header, String>,
}

/// Who takes the records of a file.
pub trait Taker {
    /// Asks for the memory that a record of so many bytes needs, before it is taken.
    ///
    /// # Errors
    /// `Refused` if there is not so much: nothing more comes then.
    fn make_room(&mut self, _: usize) -> Result<(), Refused> {
        memory::check()
    }
    /// One record in canonical JSON, and where its fields lie.
    fn take(&mut self, record: &[u8], fields: RecordSpans);
    /// All of that was wrong; the records come again from the first.
    fn start_over(&mut self);
}

/// Looks at a file without keeping its records.
pub struct Nobody;

impl Taker for Nobody {
    fn take(&mut self, _: &[u8], _: RecordSpans) {}
    fn start_over(&mut self) {}
}

/// Reads a state. A record without an id is passed over: nobody can ask for it.
///
/// # Errors
/// What the disk says.
pub fn read(file: &dyn DiskFile, taker: &mut dyn Taker) -> io::Result<Contents> {
    if let Some(contents) = read_own(file, taker)? {
        return Ok(contents);
    }
    taker.start_over();
    read_foreign(file, taker)
}

/// Reads a file of our own form, line by line; `None` if it is not of that form to its end.
fn read_own(file: &dyn DiskFile, taker: &mut dyn Taker) -> io::Result<Option<Contents>> {
    let mut hasher = Hasher::default();
    let mut lines = LineReader::new(file);
    let Some(first) = lines.next(&mut hasher)? else {
        return Ok(None);
    };
    let comes_last = first == OPEN_HEADER;
    let mut header = if comes_last { None } else { own_header(first) };
    if header.is_none() && !comes_last {
        return Ok(None);
    }
    // Between two records there is a comma, and nowhere else.
    let (mut ended, mut open, mut awaited) = (false, true, false);
    while let Some(line) = lines.next(&mut hasher)? {
        let is_end = if comes_last {
            line.starts_with(b"],")
        } else {
            line == b"]}"
        };
        if ended || (is_end && awaited) || (!is_end && !open) {
            return Ok(None);
        }
        ended = is_end;
        if is_end && comes_last {
            header = last_header(line);
        } else if !is_end {
            awaited = line.ends_with(b",");
            open = awaited;
            let record = line.strip_suffix(b",").unwrap_or(line);
            let Some(fields) = json::scan_record(record) else {
                return Ok(None);
            };
            taker.make_room(record.len())?;
            taker.take(record, fields);
        }
    }
    Ok(header.filter(|_| ended).map(|header| Contents {
        sha256: hasher.finish(),
        header: Ok(header),
    }))
}

fn own_header(line: &[u8]) -> Option<Header> {
    line.strip_suffix(RECORDS)?;
    let closed = [line, b"]}"].concat();
    Header::of(&json::parse(&closed).ok()?)
}

pub(crate) fn last_header(line: &[u8]) -> Option<Header> {
    let opened = [b"{", line.strip_prefix(b"],")?].concat();
    let value = json::parse(&opened).ok()?;
    // The records stand before; others behind them would be a second list.
    if value.get("records").is_some() {
        return None;
    }
    Header::of(&value)
}

fn read_foreign(file: &dyn DiskFile, taker: &mut dyn Taker) -> io::Result<Contents> {
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
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

fn read_value(bytes: &[u8], taker: &mut dyn Taker) -> io::Result<Result<Header, String>> {
    let value = match json::parse_to_depth(bytes, json::MAX_DEPTH + 1) {
        Ok(value) => value,
        Err(fault) => return Ok(Err(fault.to_string())),
    };
    let (header, records) = match header_and_records(&value) {
        Ok(found) => found,
        Err(reason) => return Ok(Err(reason.to_owned())),
    };
    let mut text = Vec::new();
    for record in records {
        text.clear();
        json::write_value(record, &mut text);
        if let Some(fields) = json::scan_record(&text) {
            taker.make_room(text.len())?;
            taker.take(&text, fields);
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

/// Lines of a file, one after the other, hashed as they pass.
struct LineReader<'a> {
    file: &'a dyn DiskFile,
    buffer: Vec<u8>,
    start: usize,
    offset: u64,
}

impl<'a> LineReader<'a> {
    fn new(file: &'a dyn DiskFile) -> Self {
        Self {
            file,
            buffer: Vec::new(),
            start: 0,
            offset: 0,
        }
    }

    fn next(&mut self, hasher: &mut Hasher) -> io::Result<Option<&[u8]>> {
        let mut searched = self.start;
        loop {
            if let Some(newline) = memchr(b'\n', &self.buffer[searched..]) {
                let line = self.start..searched + newline;
                self.start = line.end + 1;
                return Ok(Some(&self.buffer[line]));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            let known = self.buffer.len();
            let got = read_upto(self.file, &mut self.buffer, self.offset, BUFFER_BYTES)?;
            hasher.update(&self.buffer[known..]);
            self.offset += got as u64;
            if got == 0 {
                let rest = !self.buffer.is_empty();
                self.start = self.buffer.len();
                return Ok(rest.then_some(&self.buffer[..]));
            }
        }
    }
}

/// The digest of a whole file.
///
/// # Errors
/// What the disk says.
pub fn digest(file: &dyn DiskFile) -> io::Result<Hex> {
    let mut hasher = Hasher::default();
    let mut buffer = Vec::with_capacity(BUFFER_BYTES);
    let mut offset = 0;
    loop {
        buffer.clear();
        let got = read_upto(file, &mut buffer, offset, BUFFER_BYTES)?;
        if got == 0 {
            return Ok(hasher.finish());
        }
        hasher.update(&buffer);
        offset += got as u64;
    }
}
