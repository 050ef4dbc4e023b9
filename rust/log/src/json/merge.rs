//! Applies an RFC 7396 merge patch to a value.

use super::Value;

/// The RFC 7396 merge patch: an object names the members that change, `null` removes one, anything else replaces.
#[must_use]
pub fn merge(target: Value, patch: &Value) -> Value {
    let Value::Object(changes) = patch else {
        return patch.clone();
    };
    let kept = match target {
        Value::Object(pairs) => pairs,
        // A patch that names members makes an object out of whatever stood here.
        _ => Vec::new(),
    };
    let mut merged = Vec::with_capacity(kept.len() + changes.len());
    let mut kept = kept.into_iter().peekable();
    // Both lists are sorted, so one walk along the two keeps the result sorted.
    for (key, change) in changes {
        while let Some(before) = kept.next_if(|pair| pair.0 < *key) {
            merged.push(before);
        }
        let old = kept.next_if(|pair| pair.0 == *key).map_or(Value::Null, |pair| pair.1);
        if !change.is_null() {
            merged.push((key.clone(), merge(old, change)));
        }
    }
    merged.extend(kept);
    Value::Object(merged)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, write_value};
    use super::*;

    fn merged(target: &str, patch: &str) -> String {
        let mut out = Vec::new();
        match (parse(target.as_bytes()), parse(patch.as_bytes())) {
            (Ok(target), Ok(patch)) => write_value(&merge(target, &patch), &mut out),
            faults => out.extend(format!("{faults:?}").bytes()),
        }
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn the_examples_of_the_rfc() {
        for (target, patch, expected) in [
            (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
            (r#"{"a":"b"}"#, r#"{"a":null}"#, r#"{}"#),
            (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
            (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
            (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
            (
                r#"{"a":{"b":"c"}}"#,
                r#"{"a":{"b":"d","c":null}}"#,
                r#"{"a":{"b":"d"}}"#,
            ),
            (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
            (r#"["a","b"]"#, r#"["c","d"]"#, r#"["c","d"]"#),
            (r#"{"a":"b"}"#, r#"["c"]"#, r#"["c"]"#),
            (r#"{"a":"foo"}"#, "null", "null"),
            (r#"{"a":"foo"}"#, r#""bar""#, r#""bar""#),
            (r#"{"e":null}"#, r#"{"a":1}"#, r#"{"a":1,"e":null}"#),
            ("[1,2]", r#"{"a":"b","c":null}"#, r#"{"a":"b"}"#),
            ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        ] {
            assert_eq!(merged(target, patch), expected, "{target} + {patch}");
        }
    }

    #[test]
    fn the_walk_keeps_members_on_all_sides() {
        assert_eq!(
            merged(r#"{"a":1,"c":3,"e":5}"#, r#"{"b":2,"c":null,"f":6}"#),
            r#"{"a":1,"b":2,"e":5,"f":6}"#
        );
    }
}
