//! How is a whole state written down and read back?
//!
//! Bases and `snapshot.json` have one shape: a header and the records in insertion order, one a line. Files of other tools,
//! spelled in any way, are read too.

use std::io;
use std::path::Path;

use memchr::memchr;

use crate::digest::{Hasher, Hex};
use crate::disk::{Disk, DiskFile, read_upto};
use crate::json::{self, Value};
use crate::state::Frozen;

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
        text.extend_from_slice(b",\"records\":[");
        text
    }

    fn of(value: &Value) -> Option<Self> {
        Some(Self {
            seq: value.get("seq")?.as_u64()?,
            last_hash: value.get("last_hash")?.as_str()?.to_owned(),
            ts: value.get("ts").and_then(Value::as_str).unwrap_or_default().to_owned(),
        })
    }
}

/// Writes a state into a new file at `path` and syncs it; the name is the caller's to make durable.
///
/// # Errors
/// What the disk says.
pub fn write(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    state: &Frozen,
    progress: &mut dyn FnMut(u64, u64),
) -> io::Result<Hex> {
    let file = disk.create(path)?;
    let mut hasher = Hasher::default();
    let mut buffer = header.spell();
    let mut offset = 0;
    let mut flush = |buffer: &mut Vec<u8>, hasher: &mut Hasher| {
        hasher.update(buffer);
        file.write_at(buffer, offset)?;
        offset += buffer.len() as u64;
        buffer.clear();
        io::Result::Ok(())
    };
    let records = state.records();
    let total = records.len() as u64;
    for (index, record) in records.enumerate() {
        buffer.extend_from_slice(if index == 0 { b"\n" } else { b",\n" });
        buffer.extend_from_slice(record);
        if buffer.len() >= BUFFER_BYTES {
            flush(&mut buffer, &mut hasher)?;
            progress(index as u64, total);
        }
    }
    buffer.extend_from_slice(b"\n]}\n");
    flush(&mut buffer, &mut hasher)?;
    file.sync()?;
    progress(total, total);
    Ok(hasher.finish())
}

/// What was found in a file.
#[derive(Debug)]
pub struct Contents {
    /// The file's digest.
    pub sha256: Hex,
    /// Its header, or why it is not a state.
    pub header: Result<Header, String>,
}

/// Reads a state, handing each canonical record to `take`, which answers whether it is one.
///
/// # Errors
/// What the disk says.
pub fn read(file: &dyn DiskFile, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Contents> {
    let mut hasher = Hasher::default();
    let mut lines = LineReader::new(file);
    let first = lines.next(&mut hasher)?.map(<[u8]>::to_vec);
    let own_header = first.as_deref().and_then(own_header);
    let Some(header) = own_header else {
        return read_foreign(file, take);
    };
    let mut verdict = Err("it has no end".to_owned());
    let mut number = 1;
    while let Some(line) = lines.next(&mut hasher)? {
        number += 1;
        if line == b"]}" {
            verdict = Ok(header.clone());
        } else {
            let record = line.strip_suffix(b",").unwrap_or(line);
            if !record.is_empty() && !take(record) {
                verdict = Err(format!("line {number} is not a record"));
                break;
            }
        }
    }
    while lines.next(&mut hasher)?.is_some() {}
    Ok(Contents {
        sha256: hasher.finish(),
        header: verdict,
    })
}

/// Reads no further than the header, if the file begins with one as we write it.
///
/// # Errors
/// What the disk says.
pub fn peek(file: &dyn DiskFile) -> io::Result<Option<Header>> {
    let mut start = Vec::new();
    read_upto(file, &mut start, 0, 4096)?;
    Ok(memchr(b'\n', &start).and_then(|end| own_header(&start[..end])))
}

fn own_header(line: &[u8]) -> Option<Header> {
    line.strip_suffix(b"[")?;
    let closed = [line, b"]}"].concat();
    Header::of(&json::parse(&closed).ok()?)
}

fn read_foreign(file: &dyn DiskFile, take: &mut dyn FnMut(&[u8]) -> bool) -> io::Result<Contents> {
    let length = usize::try_from(file.length()?).map_err(io::Error::other)?;
    let mut bytes = Vec::new();
    read_upto(file, &mut bytes, 0, length)?;
    let mut hasher = Hasher::default();
    hasher.update(&bytes);
    let header = read_value(&bytes, take);
    Ok(Contents {
        sha256: hasher.finish(),
        header,
    })
}

fn read_value(bytes: &[u8], take: &mut dyn FnMut(&[u8]) -> bool) -> Result<Header, String> {
    let value = json::parse(bytes).map_err(|fault| fault.to_string())?;
    let header = Header::of(&value).ok_or("seq or last_hash is missing")?;
    let records = value
        .get("records")
        .and_then(Value::as_array)
        .ok_or("there is no list of records")?;
    let mut text = Vec::new();
    for record in records {
        text.clear();
        json::write_value(record, &mut text);
        // Nobody can ask for a record without an id; other tools' files are taken as far as they go.
        take(&text);
    }
    Ok(header)
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
