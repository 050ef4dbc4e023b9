//! Columns of numbers and names, in memory or in a mapped file.
//!
//! A mapped file is checked as it is read. What fails its check reads as zero or as nothing and marks the file as failed: callers
//! look at the mark before they use what they read. Numbers in files are little-endian, as on every machine that this runs on.

use std::ops::Range;
use std::sync::Arc;

use bytemuck::Pod;

use super::container::{Container, SectionId};
use crate::first_in;

#[cfg(target_endian = "big")]
compile_error!("columns are mapped as they are in files: in little-endian order");

/// Numbers of one width.
#[derive(Debug)]
pub enum Column<T> {
    /// In memory.
    Owned(Vec<T>),
    /// In a file.
    Mapped {
        /// The file.
        file: Arc<Container>,
        /// The bytes of the numbers in it.
        range: Range<usize>,
    },
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Self::Owned(Vec::new())
    }
}

impl<T: Pod> Column<T> {
    /// A section of a file; `None` if it does not hold whole numbers.
    pub fn of(file: &Arc<Container>, section: SectionId) -> Option<Self> {
        let range = file.section(section);
        range.len().is_multiple_of(size_of::<T>()).then(|| Self::Mapped {
            file: Arc::clone(file),
            range,
        })
    }

    /// How many there are.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Owned(numbers) => numbers.len(),
            Self::Mapped { range, .. } => range.len() / size_of::<T>(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    #[inline]
    pub fn get(&self, at: usize) -> T {
        match self {
            Self::Owned(numbers) => numbers.get(at).copied().unwrap_or_else(T::zeroed),
            Self::Mapped { file, range } => {
                if at >= range.len() / size_of::<T>() {
                    file.fail();
                    return T::zeroed();
                }
                let start = range.start + at * size_of::<T>();
                let bytes = file.bytes(start..start + size_of::<T>());
                bytes.map_or_else(T::zeroed, bytemuck::pod_read_unaligned)
            }
        }
    }

    /// Some of them; nothing if they cannot be read.
    #[inline]
    pub fn slice(&self, wanted: Range<usize>) -> &[T] {
        match self {
            Self::Owned(numbers) => numbers.get(wanted).unwrap_or_default(),
            Self::Mapped { file, range } => {
                if wanted.start > wanted.end || wanted.end > range.len() / size_of::<T>() {
                    file.fail();
                    return &[];
                }
                let bytes = range.start + wanted.start * size_of::<T>()..range.start + wanted.end * size_of::<T>();
                let bytes = file.bytes(bytes).unwrap_or_default();
                // INVARIANT: sections begin at multiples of 64.
                bytemuck::try_cast_slice(bytes).unwrap_or_default()
            }
        }
    }

    /// All of them; nothing if they cannot be read.
    pub fn all(&self) -> &[T] {
        self.slice(0..self.len())
    }

    /// Adds one. INVARIANT: a mapped column never grows.
    pub fn push(&mut self, number: T) {
        if let Self::Owned(numbers) = self {
            numbers.push(number);
        }
    }

    /// Adds some.
    pub fn extend(&mut self, more: &[T]) {
        if let Self::Owned(numbers) = self {
            numbers.extend_from_slice(more);
        }
    }

    /// How much memory they take, in files too.
    pub fn bytes(&self) -> usize {
        self.len() * size_of::<T>()
    }
}

/// Names end to end.
#[derive(Debug, Default)]
pub struct JoinedNames {
    /// The bytes of all.
    pub bytes: Column<u8>,
    /// Where those of each end.
    pub ends: Column<u32>,
}

impl JoinedNames {
    /// Two sections of a file: the bytes, and where each name ends.
    pub fn of(file: &Arc<Container>, [bytes, ends]: [SectionId; 2]) -> Option<Self> {
        Some(Self {
            bytes: Column::of(file, bytes)?,
            ends: Column::of(file, ends)?,
        })
    }

    /// Adds one.
    pub fn push(&mut self, name: &[u8]) {
        self.bytes.extend(name);
        self.ends.push(self.bytes.len() as u32);
    }

    /// How much memory they take.
    pub fn bytes(&self) -> usize {
        self.bytes.bytes() + self.ends.bytes()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, at: usize) -> &[u8] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends.get(before) as usize);
        self.bytes.slice(start..self.ends.get(at) as usize)
    }

    /// Where a name is, if they are sorted.
    pub fn find(&self, name: &[u8]) -> Option<usize> {
        let at = self.first_from(name);
        (at < self.len() && self.get(at) == name).then_some(at)
    }

    /// Where the first name is that is not below this one, if they are sorted.
    pub fn first_from(&self, name: &[u8]) -> usize {
        first_in(0..self.len() as u32, |at| self.get(at as usize) < name) as usize
    }
}
