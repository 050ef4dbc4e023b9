//! Reads and writes JSON in the one canonical spelling that hashes rely on.
//!
//! The spelling is that of Python's `json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))`:
//! keys in byte order at every level, no white space, characters raw unless JSON forbids it, integers of any size,
//! floats as `repr(float)`.
//!
//! [`parse`] reads any JSON text into a [`Value`] and refuses what readers differ on. [`scan_event`] and [`scan_record`] prove,
//! without allocating, that bytes are canonical, and find the fields. A [`Cursor`] reads what was proven.

mod cursor;
mod number;
mod parse;
mod scan;
mod special;
mod value;
mod write;

pub use cursor::{Cursor, Quoted, compare_key, elements, member, members};
pub use number::{write_f64, write_i64};
pub use parse::{JsonFault, parse, parse_to_depth};
pub use scan::{EventSpans, RecordSpans, Span, scan_event, scan_members, scan_record};
pub use special::end_of_string;
pub use value::{Value, merge};
pub use write::{
    escape_line_separators, escaped_length, has_line_separators, indented, raw_line_separators, write_string,
    write_value, write_value_spaced,
};

/// The deepest nesting a text may have, counted in open containers.
pub const MAX_DEPTH: usize = 200;

/// The longest integer a text may hold, in digits without the sign.
pub const MAX_INT_DIGITS: usize = 4_300;

/// The longest line of a log, in bytes without its line end.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
