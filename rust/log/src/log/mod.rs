//! The log on disk: appending, locking, syncing, and following what others append.
//!
//! A `Log` is the file at its path as one of those has it who read and write it. It appends lines that were spelled
//! elsewhere, holds the writer lock and its lease, syncs, says how far the disk has followed, and refuses to write after the
//! disk broke a promise. It knows neither records nor vectors: what must be on disk before it is handed in as a `Barrier`,
//! and what was appended by others is shown to a sink. When to catch up, what to adopt and when to write a snapshot are
//! questions of those above.
//!
//! A file uses only files above it in this list.

pub mod files;

mod archives_seen;

mod site;

mod open;

mod loss;

mod lock;

mod sync;

mod head_note;

mod body;

mod findings;

mod append;

pub use files::Progress;
pub use sync::{Appended, Durability, Pulse};

pub use body::{Log, Terms};
pub use head_note::{note_known_head, standing_of};
pub use lock::{LOCK_FILE_TRIES, LockTerms, check_note};
pub use open::{OpenLog, Passed};
pub use site::Site;
pub use sync::{Barrier, LogSync};
