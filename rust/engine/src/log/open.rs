//! What is known of a log that is open: its file, how far it was read, and what it starts from?

use std::io;
use std::sync::Arc;

use crate::disk::{DiskFile, Identity};
use crate::origin::Origin;
use crate::verify::Walk;

/// A log that is open.
pub(crate) struct OpenLog {
    /// Where it is read from, and written to once that is allowed.
    pub file: Arc<dyn DiskFile>,
    /// Which file that is.
    pub identity: Identity,
    /// How far it was read.
    pub walk: Walk,
    /// What it starts from.
    pub origin: Origin,
    /// The handle writes.
    pub(crate) writable: bool,
    /// Whether the hint about the last sync speaks of this log, so that a torn write is known for a tail.
    pub(crate) anchored: bool,
}

impl OpenLog {
    /// A log whose handle only reads.
    ///
    /// # Errors
    /// What the disk says.
    pub fn reading(file: Arc<dyn DiskFile>, walk: Walk, origin: Origin) -> io::Result<Self> {
        Ok(Self {
            identity: file.identity()?,
            file,
            walk,
            origin,
            writable: false,
            anchored: false,
        })
    }

    /// A log whose handle writes.
    ///
    /// # Errors
    /// What the disk says.
    pub fn writing(file: Arc<dyn DiskFile>, walk: Walk, origin: Origin) -> io::Result<Self> {
        Ok(Self {
            writable: true,
            ..Self::reading(file, walk, origin)?
        })
    }

    /// The same, if the hint about the last sync speaks of it.
    #[must_use]
    pub fn anchored(self, anchored: bool) -> Self {
        Self { anchored, ..self }
    }
}
