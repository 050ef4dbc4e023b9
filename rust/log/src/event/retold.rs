//! Spells a line of ours again from what other lines tell of it.
//!
//! Beside its record and its moment a line says little that is not said elsewhere too. The line behind names its hash, the line
//! before has the hash that it names, the record has its id, the lines on both sides tell its seq, and operations are few. So a
//! line whose record and moment are whole can be spelled again, and its hash tells whether this is what was there.

use memchr::memmem;

use super::faces::acting_ids;
use super::trial::Neighbours;
use super::{HASH_PREFIX_BYTES, Op};
use crate::digest::Hex;
use crate::json::{self, Value};

const RECORD: &[u8] = b"\"record\":";
const TAIL: &[u8] = b",\"record_id\":\"";
/// How a moment is spelled; a zero stands for any digit.
const MOMENT: &[u8] = b"0000-00-00T00:00:00.000000Z";
/// What lines of ours do to records.
const OPS: [Op; 4] = [Op::Upsert, Op::Patch, Op::Delete, Op::Act];

/// The line, with its newline, that this was before some of it was lost; `seq` is the one that its place gives it.
pub fn retell(line: &[u8], neighbours: Neighbours, seq: Option<u64>) -> Option<Vec<u8>> {
    let own_hash = || {
        line.get(HASH_PREFIX_BYTES - 66..HASH_PREFIX_BYTES - 2)
            .and_then(Hex::read)
    };
    let wanted = neighbours.after.or_else(own_hash)?;
    let before = neighbours.before?;
    // Nothing that stands before the record has a brace but the line.
    let key = memmem::find(line, RECORD).map(|at| at + RECORD.len());
    let start = key.or_else(|| Some(1 + memchr::memchr(b'{', line.get(1..)?)?))?;
    let end = json::end_of_object(line, start).filter(|_| line[start] == b'{')?;
    let (record, tail) = (&line[start..end], &line[end..]);
    let tails = tails(record, tail, seq);
    let prev = before.as_ref().map_or(&b""[..], |head| head.bytes());
    let proof = Neighbours {
        after: Some(wanted),
        ..neighbours
    };
    OPS.iter()
        .flat_map(|op| tails.iter().map(move |tail| (op, tail)))
        .find_map(|(op, tail)| {
            let parts: [&[u8]; 9] = [
                b"{\"hash\":\"",
                wanted.bytes(),
                b"\",\"op\":\"",
                op.word().as_bytes(),
                b"\",\"prev_hash\":\"",
                prev,
                b"\",\"record\":",
                record,
                tail,
            ];
            let mut candidate = parts.concat();
            // What is whole does not belong here, and nothing was lost of it.
            proof.fit(&candidate).filter(|_| candidate != line)?;
            candidate.push(b'\n');
            Some(candidate)
        })
}

/// What may have come behind the record.
fn tails(record: &[u8], tail: &[u8], seq: Option<u64>) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    if tail.starts_with(TAIL) && tail.ends_with(b"\"}") {
        found.push(tail.to_vec());
    }
    let Some(moment) = moment_in(tail) else {
        return found;
    };
    let number = |key: &[u8]| {
        let at = memmem::rfind(tail, key)? + key.len();
        let digits = tail[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        std::str::from_utf8(&tail[at..at + digits]).ok()?.parse::<u64>().ok()
    };
    let depth = number(b"\"recursion_depth\":").unwrap_or(0);
    let own_id = json::parse(record).ok().and_then(|record| match record.get("id") {
        Some(Value::Str(id)) => Some(id.clone()),
        _ => None,
    });
    for seq in seq.into_iter().chain(number(b"\"seq\":")) {
        for id in own_id.clone().into_iter().chain(acting_ids()) {
            let mut spelled = Vec::new();
            json::write_string(&id, &mut spelled);
            let mut text = b",\"record_id\":".to_vec();
            json::escape_line_separators(&spelled, &mut text);
            text.extend(format!(",\"recursion_depth\":{depth},\"seq\":{seq},\"ts\":\"").bytes());
            text.extend_from_slice(moment);
            text.extend_from_slice(b"\"}");
            found.push(text);
        }
    }
    found
}

/// The last moment that is spelled in a text as we do.
fn moment_in(text: &[u8]) -> Option<&[u8]> {
    let is_alike = |(byte, form): (&u8, &u8)| match form {
        b'0' => byte.is_ascii_digit(),
        _ => byte == form,
    };
    text.windows(MOMENT.len())
        .rev()
        .find(|window| window.iter().zip(MOMENT).all(is_alike))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::{sha256, sha256_after_brace};

    fn line(prev: &Hex, label: &str) -> (Vec<u8>, Hex) {
        let rest = format!(
            "\"op\":\"upsert\",\"prev_hash\":\"{}\",\"record\":{{\"id\":\"te{{a\",\"label\":\"{label}\"}},\
             \"record_id\":\"te{{a\",\"recursion_depth\":0,\"seq\":12,\"ts\":\"2026-01-01T09:00:00.000000Z\"}}",
            prev.text()
        );
        let hash = sha256_after_brace(rest.as_bytes());
        let mut line = [b"{\"hash\":\"", &hash.bytes()[..], b"\","].concat();
        json::escape_line_separators(rest.as_bytes(), &mut line);
        (line, hash)
    }

    #[test]
    fn whatever_is_lost_but_record_and_moment_is_spelled_again() {
        let head = sha256(b"before");
        for label in ["give 10 mg", "a\u{2028}b"] {
            let (whole, hash) = line(&head, label);
            let expected = [&whole[..], b"\n"].concat();
            let neighbours = Neighbours {
                before: Some(Some(head)),
                after: Some(hash),
            };
            let record = memmem::find(&whole, b"{\"id\"").expect("a record");
            let tail = memmem::find(&whole, TAIL).expect("a tail");
            let moment = whole.len() - 2 - MOMENT.len();
            for (from, to) in [
                (0, record),
                (1, 60),
                (80, 100),
                (90, 160),
                (tail, moment),
                (tail + 3, tail + 30),
            ] {
                let zeros = [&whole[..from], &vec![0; to - from], &whole[to..]].concat();
                assert_eq!(
                    retell(&zeros, neighbours, Some(12)).as_deref(),
                    Some(&expected[..]),
                    "{from} to {to}"
                );
                let gone = [&whole[..from], &whole[to..]].concat();
                if from > 0 {
                    assert_eq!(
                        retell(&gone, neighbours, Some(12)).as_deref(),
                        Some(&expected[..]),
                        "{from} to {to}"
                    );
                }
            }
            // What is told by nobody is not made up, and neither is what the chain does not want.
            let mut other = whole.clone();
            other[record + 8..record + 10].fill(b'?');
            assert_eq!(retell(&other, neighbours, Some(12)), None);
            let elsewhere = Neighbours {
                before: Some(Some(sha256(b"elsewhere"))),
                ..neighbours
            };
            assert_eq!(retell(&whole, elsewhere, Some(12)), None);
            assert_eq!(retell(&whole, neighbours, Some(12)), None, "nothing is lost");
        }
    }
}
