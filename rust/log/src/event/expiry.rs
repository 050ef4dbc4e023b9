//! Reads the moment at which a record expires: `data.expires_at`, in UTC, as RFC 3339 spells it.
//!
//! Writers refuse anything else but null. A record in which another tool wrote something else never expires.

use std::sync::LazyLock;

use memchr::memmem::Finder;

use super::stamp;
use crate::error::{Error, Result};
use crate::json::{self, Value, member};

static NAMED: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\"expires_at\""));

/// The value of `data.expires_at`; `data` ends before the id, whose place may be known.
fn value_of(record: &[u8], id: Option<usize>) -> Option<&[u8]> {
    // Most records have none: that must cost next to nothing.
    NAMED.find(id.and_then(|id| record.get(..id)).unwrap_or(record))?;
    member(member(record, "data")?, "expires_at")
}

/// The moment that a value names, in microseconds since 1970; `None` if it names none in UTC.
fn moment(value: &[u8]) -> Option<i64> {
    let Ok(Value::Str(text)) = json::parse(value) else {
        return None;
    };
    let is_utc = text.ends_with('Z') || text.ends_with("+00:00");
    stamp::read_short(&text).filter(|_| is_utc)
}

/// When a canonical record expires, in microseconds since 1970; `None` if never. The place of its id may be known.
#[inline]
pub fn expiry_of(record: &[u8], id: Option<usize>) -> Option<i64> {
    value_of(record, id).and_then(moment)
}

/// Whether a record or patch has an expiry. Errors: `Invalid` if it is neither null nor a moment in UTC.
pub fn check_expiry(record: &[u8], id: Option<usize>) -> Result<bool> {
    match value_of(record, id) {
        None => Ok(false),
        Some(value) if value == b"null" || moment(value).is_some() => Ok(true),
        Some(value) => Err(Error::invalid(
            "data.expires_at",
            format!(
                "must be a moment in UTC such as \"2026-12-31T23:59:59Z\", got {}",
                String::from_utf8_lossy(value).chars().take(80).collect::<String>()
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_in_utc_under_data_counts_and_nothing_else() {
        for (value, expiry) in [
            ("\"1970-01-01T00:00:01Z\"", Some(1_000_000)),
            ("\"1970-01-01T00:00:01.5+00:00\"", Some(1_500_000)),
            ("\"2016-12-31T23:59:60Z\"", Some(1_483_228_800_000_000)),
            ("null", None),
            ("1", None),
            ("[]", None),
            ("\"\"", None),
            ("\"2026-01-01\"", None),
            ("\"2026-01-01T00:00:00\"", None),
            ("\"2026-01-01T00:00:00+01:00\"", None),
            ("\"2026-06-31T00:00:00Z\"", None),
            ("\"2026-13-01T00:00:00Z\"", None),
        ] {
            let record = format!("{{\"data\":{{\"expires_at\":{value}}},\"id\":\"x\"}}");
            let id = record.find("\"x\"").map(|quote| quote + 1);
            for id in [id, None] {
                assert_eq!(expiry_of(record.as_bytes(), id), expiry, "{value}");
                let is_right = check_expiry(record.as_bytes(), id).is_ok();
                assert_eq!(is_right, expiry.is_some() || value == "null", "{value}");
            }
        }
        for record in [
            "{\"expires_at\":\"1970-01-01T00:00:01Z\",\"id\":\"x\"}",
            "{\"data\":{\"a\":{\"expires_at\":\"1970-01-01T00:00:01Z\"}},\"id\":\"x\"}",
            "{\"data\":[\"expires_at\"],\"id\":\"x\"}",
            "{\"data\":null,\"id\":\"expires_at\"}",
        ] {
            assert_eq!(expiry_of(record.as_bytes(), None), None, "{record}");
            assert!(check_expiry(record.as_bytes(), None).is_ok(), "{record}");
        }
    }
}
