//! Files of a segment beside its rows: what is computed from the rows when it is first used.
//!
//! A family file belongs to one segment and is removed with it. Its meta states the rules by which it was made, the segment, and what it
//! was made for. It is checked as the rows are: a failed page sets the mark of the state.

use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};

use chronolog::disk::{DiskFile, Mapping, MemoryFile};
use chronolog::memory::{self, Refused};

use super::build::Head;
use super::container::{Container, ContainerWriter};
use super::read::Sealed;

/// One kind of family files.
#[derive(Debug)]
pub struct Family {
    /// The extension of its files, one of [`chronolog::layout::SEGMENT_FAMILIES`].
    pub name: &'static str,
    /// The version of the rules by which they are made. A file of another version is replaced.
    pub rules: u32,
    /// So much memory is needed to make one, for each row of the segment.
    pub bytes_per_row: usize,
    /// Writes the sections for the segment with this number. The bytes describe what the file is for, as the family likes.
    pub build: fn(&Sealed, usize, &[u8], &mut ContainerWriter) -> io::Result<()>,
}

/// Gets what the file is for that is there, if there is one; returns what another one is to be made for, or nothing if that one will do.
pub type ChoosePurpose<'a> = dyn Fn(Option<&[u8]>) -> Option<Vec<u8>> + 'a;

/// Where family files are kept.
pub trait FamilyFolder: Send + Sync {
    /// The file of a segment, if there is one.
    fn open(&self, head: &Head, family: &Family) -> Option<Mapping>;
    /// Lets a file be written and gives it its name; false if it cannot be kept.
    ///
    /// # Errors
    /// `Io` if the disk refuses, and the errors of `write`.
    fn write(
        &self,
        head: &Head,
        family: &Family,
        write: &dyn Fn(Arc<dyn DiskFile>) -> io::Result<()>,
    ) -> io::Result<bool>;
}

/// A family file that was opened.
#[derive(Debug)]
pub struct FamilyFile {
    file: Container,
    purpose: Vec<u8>,
}

/// The family files of a segment that were opened.
#[derive(Debug, Default)]
pub(super) struct OpenFamilies(Mutex<Vec<(&'static str, Arc<FamilyFile>)>>);

impl FamilyFile {
    fn open(bytes: Mapping, failed: &Arc<AtomicBool>, head: &Head, family: &Family) -> Option<Self> {
        let file = Container::open(bytes, failed)?;
        let purpose = file.meta().strip_prefix(&prefix(head, family)[..])?.to_vec();
        Some(Self { file, purpose })
    }

    /// The sections.
    pub fn file(&self) -> &Container {
        &self.file
    }

    /// What the file was made for.
    pub fn purpose(&self) -> &[u8] {
        &self.purpose
    }
}

/// What the meta of a file begins with.
fn prefix(head: &Head, family: &Family) -> Vec<u8> {
    let mut meta = family.rules.to_le_bytes().to_vec();
    meta.extend_from_slice(&head.origin);
    meta.extend_from_slice(&head.head);
    meta.extend([head.from, head.to].iter().flat_map(|event| event.to_le_bytes()));
    meta
}

/// The origin of the log that a file of any family is of.
pub fn origin_in(bytes: Mapping) -> Option<[u8; 32]> {
    let file = Container::open(bytes, &Arc::default())?;
    file.meta().get(4..36)?.try_into().ok()
}

impl Sealed {
    /// The file of a family beside the segment with this number. Where none can be kept it is made in memory. `None` if a
    /// check failed: the mark is set then.
    ///
    /// # Errors
    /// `Refused` if there is no memory to make one.
    pub fn family(
        &self,
        number: usize,
        family: &Family,
        choose: &ChoosePurpose<'_>,
    ) -> Result<Option<Arc<FamilyFile>>, Refused> {
        let Some(segment) = self.segments().get(number) else {
            return Ok(None);
        };
        let mut open = segment.families.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = open.iter().position(|(name, _)| *name == family.name);
        let cached = place.map(|place| Arc::clone(&open[place].1));
        if let Some(cached) = &cached
            && choose(Some(cached.purpose())).is_none()
        {
            return Ok(Some(Arc::clone(cached)));
        }
        // Another process may have made one for more.
        let known = self.open_family(segment.head(), family).map(Arc::new).or(cached);
        let purpose = choose(known.as_ref().map(|known| known.purpose()));
        let file = match (purpose, known) {
            (None, Some(known)) => known,
            (None, None) => return Ok(None),
            (Some(purpose), _) => {
                memory::could_have(segment.len() * family.bytes_per_row)?;
                match self.make_family(number, family, &purpose) {
                    Some(made) => Arc::new(made),
                    None => {
                        segment.fail();
                        return Ok(None);
                    }
                }
            }
        };
        match place {
            Some(place) => open[place].1 = Arc::clone(&file),
            None => open.push((family.name, Arc::clone(&file))),
        }
        Ok(Some(file))
    }

    fn open_family(&self, head: &Head, family: &Family) -> Option<FamilyFile> {
        let bytes = self.folder()?.open(head, family)?;
        FamilyFile::open(bytes, self.mark(), head, family)
    }

    fn make_family(&self, number: usize, family: &Family, purpose: &[u8]) -> Option<FamilyFile> {
        let head = self.segments()[number].head();
        let write = |file| self.write_family(file, number, family, purpose);
        let kept = self.folder().map(|folder| folder.write(head, family, &write));
        if let Some(Ok(true)) = kept
            && let Some(file) = self.open_family(head, family).filter(|file| file.purpose == purpose)
        {
            return Some(file);
        }
        if self.has_failed() {
            return None;
        }
        let file = Arc::new(MemoryFile::default());
        write(file.clone()).ok()?;
        FamilyFile::open(file.map(u64::MAX).ok()?, self.mark(), head, family)
    }

    /// Writes the file of a family for the segment with this number to an empty file.
    ///
    /// # Errors
    /// `Io` if the disk refuses; `InvalidData` if a check failed.
    pub fn write_family(
        &self,
        file: Arc<dyn DiskFile>,
        number: usize,
        family: &Family,
        purpose: &[u8],
    ) -> io::Result<()> {
        let mut out = ContainerWriter::new(file);
        (family.build)(self, number, purpose, &mut out)?;
        if self.has_failed() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a segment is damaged"));
        }
        let meta = [&prefix(self.segments()[number].head(), family), purpose].concat();
        out.finish(&meta)?.sync()
    }

    /// Whether a family file would be used and is not what the rows give.
    ///
    /// # Errors
    /// `InvalidData` if a check of the rows failed.
    pub fn is_altered(&self, number: usize, family: &Family, file: &dyn DiskFile) -> io::Result<bool> {
        let (head, map) = (self.segments()[number].head(), || file.map(u64::MAX));
        let opened = FamilyFile::open(map()?, &Arc::default(), head, family);
        let Some(opened) = opened.filter(|opened| opened.file.check_all()) else {
            return Ok(false);
        };
        let made = Arc::new(MemoryFile::default());
        self.write_family(made.clone(), number, family, &opened.purpose)?;
        Ok(made.contents() != map()?.bytes())
    }

    /// What the family file of a segment was made for, if there is one.
    pub fn purpose_of(&self, number: usize, family: &Family) -> Option<Vec<u8>> {
        let file = self.family(number, family, &|_| None).ok()??;
        Some(file.purpose().to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use chronolog::disk::Bytes;

    use super::*;
    use crate::segment::{EventRow, NO_EVENT, Segment, SegmentDraft, Sources, write};

    static BUILT: AtomicUsize = AtomicUsize::new(0);
    const TEST: Family = Family {
        name: "blocks",
        rules: 3,
        bytes_per_row: 1,
        build: |_, _, purpose, out| {
            BUILT.fetch_add(1, Ordering::Relaxed);
            out.section(7, &purpose.repeat(9_000))
        },
    };

    #[derive(Default)]
    struct Kept(Mutex<BTreeMap<u32, Vec<u8>>>);

    impl FamilyFolder for Kept {
        fn open(&self, head: &Head, _: &Family) -> Option<Mapping> {
            let files = self.0.lock().expect("the lock");
            Bytes(files.get(&head.to)?.clone()).map(u64::MAX).ok()
        }

        fn write(
            &self,
            head: &Head,
            _: &Family,
            write: &dyn Fn(Arc<dyn DiskFile>) -> io::Result<()>,
        ) -> io::Result<bool> {
            let file = Arc::new(MemoryFile::default());
            write(file.clone())?;
            self.0.lock().expect("the lock").insert(head.to, file.contents());
            Ok(true)
        }
    }

    fn sealed(head: u8, folder: Option<&Arc<Kept>>) -> Sealed {
        let draft = SegmentDraft {
            head: Head {
                to: 1,
                head: [head; 32],
                ..Head::default()
            },
            events: vec![EventRow {
                offset: 0,
                slot: NO_EVENT,
                earlier: NO_EVENT,
            }],
            ..SegmentDraft::default()
        };
        let file = Arc::new(MemoryFile::default());
        write(file.clone(), &draft, &Vec::new()).expect("written");
        let failed = Arc::default();
        let segment = Segment::open(file.map(u64::MAX).expect("memory"), &failed).expect("a segment");
        let sources = Sources::new(Arc::new(Bytes(Vec::new())), None);
        if let Some(folder) = folder {
            sources.keep_families(Arc::<Kept>::clone(folder));
        }
        Sealed::of(vec![Arc::new(segment)], sources, failed)
    }

    fn file_for(sealed: &Sealed, purpose: &[u8]) -> Option<Arc<FamilyFile>> {
        let choose = |known: Option<&[u8]>| (known != Some(purpose)).then(|| purpose.to_vec());
        sealed.family(0, &TEST, &choose).expect("memory")
    }

    #[test]
    fn a_family_file_is_made_once_for_each_purpose_and_segment() {
        let folder = Arc::<Kept>::default();
        let built = || BUILT.swap(0, Ordering::Relaxed);
        let first = sealed(1, Some(&folder));
        assert_eq!(first.purpose_of(0, &TEST), None);
        let file = file_for(&first, b"a").expect("a file");
        let section = file.file().section(7);
        assert_eq!((file.purpose(), section.len(), built()), (&b"a"[..], 9_000, 1));
        assert!(file_for(&first, b"a").is_some() && file_for(&sealed(1, Some(&folder)), b"a").is_some());
        assert_eq!(built(), 0, "it is kept");
        assert_eq!(file_for(&first, b"b").expect("a file").purpose(), b"b");
        assert!(file_for(&sealed(2, Some(&folder)), b"b").is_some());
        assert_eq!(built(), 2, "another purpose, then another segment");
        assert!(file_for(&sealed(1, None), b"a").is_some());
        assert_eq!(built(), 1, "where nothing is kept it is made in memory");

        let other = sealed(2, Some(&folder));
        folder
            .0
            .lock()
            .expect("the lock")
            .values_mut()
            .for_each(|file| file[100] ^= 1);
        let file = file_for(&other, b"b").expect("its footer is whole");
        assert!(file.file().bytes(file.file().section(7)).is_none() && other.has_failed());
    }
}
