//! The log on disk: appending, locking, syncing, and following what others append.
//!
//! A `Log` knows neither records nor vectors: lines are encoded elsewhere, what must be on disk first is passed in as a
//! `Barrier`, and what others append is shown to a sink.

mod body;
pub mod files;
mod head_note;
mod lock;
mod open;
mod path_look;
mod site;
mod sync;

pub use files::Progress;
pub use sync::{Appended, Durability, LogStatus};

pub use body::Log;
pub use head_note::{note_known_head, standing_of};
pub use lock::{LOCK_FILE_TRIES, Lock, LockTerms, check_note};
pub use open::{OpenLog, Passed, gone};
pub use site::Site;
pub use sync::{Barrier, LogSync};
