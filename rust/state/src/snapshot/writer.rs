//! Writes a whole state down, as a base or as `snapshot.json`.

use std::io;
use std::path::Path;
use std::sync::Arc;

use chronolog::digest::{Hasher, Hex};
use chronolog::disk::{Disk, DiskFile, PACE_BYTES};

use super::header::{Header, OPEN_MOMENTS, TO_LATER_MOMENTS, TO_RECORDS};
use super::moments::Moments;

const BUFFER_BYTES: usize = 1024 * 1024;

/// Writes a state into a new file at `path`, and waits until the disk has it if it is to be durable.
pub fn write<B: AsRef<[u8]>>(
    disk: &dyn Disk,
    path: &Path,
    header: &Header,
    records: impl ExactSizeIterator<Item = B>,
    is_durable: bool,
) -> io::Result<()> {
    let mut writer = Writer::start(disk, path, header.spell(), None)?;
    writer.synced = is_durable.then_some(0);
    writer.add_all(records, &mut |_, _, _| {}, &mut |_, _| {})?;
    let (file, _) = writer.finish(b"\n]}\n")?;
    if is_durable { file.sync() } else { Ok(()) }
}

/// A base that is being written down. A record whose id came before replaces that one: so a state can be written while it
/// still changes, and what changed comes behind. What stands before the records in a snapshot then stands behind them.
///
/// The moments of the records that come first stand before them, those of all others behind: nobody waits for more than
/// was changed meanwhile.
pub struct BaseWriter {
    writer: Writer,
    has_begun: bool,
    /// Of the records that came later.
    later: Vec<Moments>,
}

impl BaseWriter {
    /// Creates a base, of which is not known yet when it will be complete.
    pub fn create(disk: &dyn Disk, path: &Path) -> io::Result<Self> {
        let writer = Writer::start(disk, path, OPEN_MOMENTS.to_vec(), Some(Hasher::default()))?;
        Ok(Self {
            writer: Writer {
                synced: Some(0),
                ..writer
            },
            has_begun: false,
            later: Vec::new(),
        })
    }

    /// Writes records behind the others. `written` is called with the place of each among them, its offset in the file, and its bytes.
    pub fn add<B: AsRef<[u8]>>(
        &mut self,
        moments: impl ExactSizeIterator<Item = Moments>,
        records: impl ExactSizeIterator<Item = B>,
        written: &mut dyn FnMut(usize, u64, &[u8]),
        progress: &mut dyn FnMut(u64, u64),
    ) -> io::Result<()> {
        if self.has_begun {
            self.later
                .try_reserve(moments.len())
                .map_err(|_| io::ErrorKind::OutOfMemory)?;
            self.later.extend(moments);
        } else {
            self.begin(moments)?;
        }
        self.writer.add_all(records, written, progress)
    }

    fn begin(&mut self, moments: impl Iterator<Item = Moments>) -> io::Result<()> {
        self.has_begun = true;
        self.writer.add_moments(moments)?;
        self.writer.next_list(TO_RECORDS);
        Ok(())
    }

    /// Makes durable what was added so far, so that less is left for the end.
    pub fn sync(&mut self) -> io::Result<()> {
        self.writer.flush()?;
        self.writer.file.sync()
    }

    /// Completes it with what its state is, and with what keeps its digest from being guessed, and syncs it; gives its digest.
    pub fn finish(mut self, header: &Header, salt: Option<&str>) -> io::Result<Hex> {
        if !self.has_begun {
            self.begin(std::iter::empty())?;
        }
        self.writer.next_list(TO_LATER_MOMENTS);
        self.writer.add_moments(self.later.into_iter())?;
        let (file, hasher) = self.writer.finish(&header.spell_behind(salt))?;
        file.sync()?;
        Ok(hasher.unwrap_or_default().finish())
    }
}

/// Lists that are being written, one item a line.
struct Writer {
    file: Arc<dyn DiskFile>,
    /// A base is called by its digest; a snapshot needs none, and to hash it took longer than to write it.
    hasher: Option<Hasher>,
    buffer: Vec<u8>,
    offset: u64,
    /// Nothing stands in the list yet.
    is_empty: bool,
    /// Up to here it is on disk, if it is to be synced in the end, and so on the way.
    synced: Option<u64>,
}

impl Writer {
    fn start(disk: &dyn Disk, path: &Path, buffer: Vec<u8>, hasher: Option<Hasher>) -> io::Result<Self> {
        Ok(Self {
            file: disk.create(path)?,
            hasher,
            buffer,
            offset: 0,
            is_empty: true,
            synced: None,
        })
    }

    fn add_all<B: AsRef<[u8]>>(
        &mut self,
        records: impl ExactSizeIterator<Item = B>,
        written: &mut dyn FnMut(usize, u64, &[u8]),
        progress: &mut dyn FnMut(u64, u64),
    ) -> io::Result<()> {
        let total = records.len() as u64;
        for (index, record) in records.enumerate() {
            self.next_line();
            let record = record.as_ref();
            written(index, self.offset + self.buffer.len() as u64, record);
            self.buffer.extend_from_slice(record);
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
                progress(index as u64, total);
            }
        }
        progress(total, total);
        Ok(())
    }

    fn add_moments(&mut self, moments: impl Iterator<Item = Moments>) -> io::Result<()> {
        for one in moments {
            self.next_line();
            one.spell(&mut self.buffer);
            if self.buffer.len() >= BUFFER_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    fn next_line(&mut self) {
        let before: &[u8] = if self.is_empty { b"\n" } else { b",\n" };
        self.buffer.extend_from_slice(before);
        self.is_empty = false;
    }

    fn next_list(&mut self, opening: &[u8]) {
        self.buffer.push(b'\n');
        self.buffer.extend_from_slice(opening);
        self.is_empty = true;
    }

    fn finish(mut self, end: &[u8]) -> io::Result<(Arc<dyn DiskFile>, Option<Hasher>)> {
        self.buffer.extend_from_slice(end);
        self.flush()?;
        Ok((self.file, self.hasher))
    }

    fn flush(&mut self) -> io::Result<()> {
        if let Some(hasher) = &mut self.hasher {
            hasher.update(&self.buffer);
        }
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
