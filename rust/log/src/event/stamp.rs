//! Moments as microseconds since 1970, and their spelling in the log.

/// The length of `2026-05-18T12:00:00.000000Z`.
pub const STAMP_BYTES: usize = 27;

/// A day.
pub const DAY_MICROS: i64 = 86_400_000_000;
const SECOND_MICROS: i64 = 1_000_000;

/// Spells a moment in UTC with fixed-width microseconds, from the year 0 to 9999.
pub fn spell(micros: i64) -> String {
    String::from_utf8_lossy(&digits(micros)).into_owned()
}

/// The same as bytes.
pub fn digits(micros: i64) -> [u8; STAMP_BYTES] {
    let (days, time) = (micros.div_euclid(DAY_MICROS), micros.rem_euclid(DAY_MICROS));
    let (year, month, day) = civil(days);
    let (seconds, fraction) = (time / SECOND_MICROS, time % SECOND_MICROS);
    let mut text = *b"0000-00-00T00:00:00.000000Z";
    put(&mut text[..4], year.clamp(0, 9999));
    put(&mut text[5..7], month);
    put(&mut text[8..10], day);
    put(&mut text[11..13], seconds / 3600);
    put(&mut text[14..16], seconds / 60 % 60);
    put(&mut text[17..19], seconds % 60);
    put(&mut text[20..26], fraction);
    text
}

fn put(places: &mut [u8], mut number: i64) {
    for place in places.iter_mut().rev() {
        *place = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// Spells a moment as the name of a backup folder.
pub fn spell_name(micros: i64) -> String {
    spell(micros)
        .chars()
        .take(19)
        .filter(|c| !matches!(c, '-' | ':'))
        .collect()
}

/// Reads a moment as RFC 3339 allows it, zone and fraction optional; `None` if it is nothing of the kind.
pub fn read(text: &[u8]) -> Option<i64> {
    let digits = |from: usize, to: usize| -> Option<i64> {
        text.get(from..to)?
            .iter()
            .try_fold(0, |sum, b| b.is_ascii_digit().then(|| sum * 10 + i64::from(b - b'0')))
    };
    let sign = |at: usize, any_of: &[u8]| text.get(at).is_some_and(|b| any_of.contains(b));
    if !(sign(4, b"-") && sign(7, b"-") && sign(10, b"Tt ") && sign(13, b":") && sign(16, b":")) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut at = 19;
    let mut fraction = 0;
    if sign(at, b".,") {
        at += 1;
        let mut scale = 100_000;
        let first = at;
        while let Some(b) = text.get(at).filter(|b| b.is_ascii_digit()) {
            fraction += i64::from(b - b'0') * scale;
            scale /= 10;
            at += 1;
        }
        if at == first {
            return None;
        }
    }
    let zone = match text.get(at..)? {
        b"" | b"Z" | b"z" => 0,
        rest => {
            let direction = match rest.first()? {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            let minutes = match rest.len() {
                6 if rest[3] == b':' => digits(at + 4, at + 6)?,
                5 => digits(at + 3, at + 5)?,
                _ => return None,
            };
            direction * (digits(at + 1, at + 3)? * 60 + minutes)
        }
    };
    let days = days_from_civil(year, month, day);
    Some(days * DAY_MICROS + ((hour * 60 + minute - zone) * 60 + second) * 1_000_000 + fraction)
}

/// Year, month and day of a day since 1970, after Howard Hinnant's algorithms: eras of 400 years, years from March.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let (era, doe) = (z.div_euclid(146_097), z.rem_euclid(146_097));
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let month = if mp < 10 { mp + 3 } else { mp - 9 };
    (
        yoe + era * 400 + i64::from(month <= 2),
        month,
        doy - (153 * mp + 2) / 5 + 1,
    )
}

/// The number of days since 1970 of a day; one that its month does not have lies in the next.
pub fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let y = if month <= 2 { year - 1 } else { year };
    let (era, yoe) = (y.div_euclid(400), y.rem_euclid(400));
    let doy = (153 * (if month > 2 { month - 3 } else { month + 9 }) + 2) / 5 + day - 1;
    era * 146_097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719_468
}

/// Reads a moment as people write it, time or seconds optional. A day that its month does not have is refused.
pub fn read_short(text: &str) -> Option<i64> {
    let text = text.as_bytes();
    // Without an allocation: sorting by moments reads one of every record.
    let completed = |known: usize| {
        let mut whole = *b"0000-00-00T00:00:00Z";
        whole[..known].copy_from_slice(text.get(..known)?);
        read(&whole)
    };
    let day = completed(10)?;
    if digits(day)[..10] != text[..10] {
        return None;
    }
    match text.len() {
        10 => Some(day),
        16 => completed(16),
        _ => read(text),
    }
}

/// The same of a number: seconds since 1970.
pub fn read_seconds(number: &str) -> Option<i64> {
    let seconds = number.parse::<f64>().ok().filter(|seconds| seconds.is_finite())?;
    Some((seconds * 1e6) as i64)
}

/// Why a text is not exactly one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unclear {
    /// It is no moment.
    NoMoment,
    /// It has no time zone.
    NoZone,
}

/// Reads a moment with day, time of day and zone. Errors: what is wrong with it.
pub fn read_zoned(text: &str) -> Result<i64, Unclear> {
    let micros = read_short(text).ok_or(Unclear::NoMoment)?;
    let time = text.get(10..).unwrap_or_default();
    if time.ends_with(['Z', 'z']) || time.contains(['+', '-']) {
        Ok(micros)
    } else {
        Err(Unclear::NoZone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: i64 = 1_779_105_600_000_000;

    #[test]
    fn a_moment_survives_its_spelling() {
        for micros in [0, 1, 951_782_400_000_000, NOON + 123_456, 4_102_444_800_000_000] {
            assert_eq!(read(spell(micros).as_bytes()), Some(micros));
            assert_eq!(spell(micros).len(), STAMP_BYTES);
        }
        assert_eq!(spell(NOON + 123_456), "2026-05-18T12:00:00.123456Z");
        assert_eq!(spell_name(NOON + 123_456), "20260518T120000");
    }

    #[test]
    fn foreign_spellings_are_read() {
        let (none, vague) = (Err(Unclear::NoMoment), Err(Unclear::NoZone));
        // What the strict reader, the short one and the one that wants a zone make of each.
        for (text, strict, short, zoned) in [
            ("2026-05-18T12:00:00Z", Some(NOON), Some(NOON), Ok(NOON)),
            ("2026-05-18T14:00:00+02:00", Some(NOON), Some(NOON), Ok(NOON)),
            ("2026-05-18 14:00:00.0+02:00", Some(NOON), Some(NOON), Ok(NOON)),
            ("2026-05-18T07:00:00.0-0500", Some(NOON), Some(NOON), Ok(NOON)),
            ("2026-05-18 12:00:00", Some(NOON), Some(NOON), vague),
            (
                "2026-05-18T12:00:00.5",
                Some(NOON + 500_000),
                Some(NOON + 500_000),
                vague,
            ),
            ("2026-05-18T12:00", None, Some(NOON), vague),
            ("2026-05-18 12:00", None, Some(NOON), vague),
            ("2026-05-18", None, Some(NOON - DAY_MICROS / 2), vague),
            ("2026-05-18T12:00Z", None, None, none),
            ("2026-05-18T12:00:00+2", None, None, none),
            ("2026-05-18T12:00:00.Z", None, None, none),
            ("2026-05-18T12:00:00 UTC", None, None, none),
            ("2026-05-18T12:0é", None, None, none),
            ("2026-13-01T00:00:00Z", None, None, none),
            ("2026-02-30", None, None, none),
            ("2026-02-29T10:00", None, None, none),
            ("20200102", None, None, none),
            ("tomorrow..", None, None, none),
            ("", None, None, none),
        ] {
            assert_eq!(read(text.as_bytes()), strict, "{text}");
            assert_eq!((read_short(text), read_zoned(text)), (short, zoned), "{text}");
        }
        // A day that its month does not have is the first of the next to the strict reader.
        assert_eq!(read(b"2026-04-31T10:00:00Z"), read(b"2026-05-01T10:00:00Z"));
        assert_eq!(read_short("2026-04-31T10:00:00Z"), None);
    }
}
