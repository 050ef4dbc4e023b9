//! Reads and writes JSON in the one canonical spelling that hashes rely on.
//!
//! A hash chain is only as good as its spelling. Two programs that agree on a value but write `1.0` and `1` for it
//! get two hashes, and one of them will call the other's log damaged. So this room knows exactly one way to write a
//! value, the one that Python's `json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))` has
//! made the common tongue of these logs: keys in byte order at every level, no white space, characters raw unless
//! JSON forbids it, integers of any size as they are, floats as `repr(float)`.
//!
//! There are two ways in. [`parse`] reads any JSON text into a [`Value`] and is strict about everything on which
//! readers are known to differ: a key given twice, half a surrogate pair, a number that overflows. [`scan_event`]
//! and [`scan_record`] do not read at all: they prove, without allocating, that bytes already are what the writer
//! would have written, and note where the fields stand. A text that passes the scan needs no parser, because the
//! bytes and the value are then the same thing. A text that does not pass is not wrong, only not ours: it takes the
//! slow path. What was proven once is read by a [`Cursor`], which proves nothing and never makes a value.
//!
//! | file | the question it answers |
//! |---|---|
//! | `value` | what can a JSON text say? |
//! | `parse`, `parse_scalar` | what does this text say? |
//! | `write` | how is it written? |
//! | `number` | how is a float spelled? |
//! | `special` | where does a run of plain characters end? |
//! | `scan`, `scan_number` | is this text already what we would have written? |
//! | `scan_event` | is this line an event, or this text a record, as we would have written it? |
//! | `cursor` | what does a text say that is known to be what we would have written? |
//! | `indent` | how is a text set so that people can read it? |
//! | `merge` | what remains after a patch? |
//!
//! A file uses only files above it in the list of modules below.

mod indent;

mod number;

mod scan_number;

mod special;

mod scan;

mod scan_event;

mod value;

mod merge;

mod parse_scalar;

mod parse;

mod cursor;

mod write;

pub use cursor::{Cursor, Elements, ObjectMembers, Quoted, compare_key, elements, members};
pub use indent::indented;
pub use merge::merge;
pub use number::write_f64;
pub use parse::{JsonFault, parse, parse_to_depth};
pub use scan_event::{EventSpans, RecordSpans, Span, scan_event, scan_record};
pub use special::end_of_string;
pub use value::{Int, Value};
pub use write::{
    escape_line_separators, escaped_length, has_line_separators, raw_line_separators, write_i64, write_string,
    write_value, write_value_spaced,
};

/// The deepest nesting a text may have, counted in open containers.
pub const MAX_DEPTH: usize = 200;

/// The longest integer a text may hold, in digits without the sign.
pub const MAX_INT_DIGITS: usize = 4_300;

/// The longest line of a log, in bytes without its line end.
pub const MAX_LINE_BYTES: usize = 16 * 1024 * 1024;
