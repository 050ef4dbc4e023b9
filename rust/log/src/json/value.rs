//! A JSON value, the ways to look into it, and the RFC 7396 merge patch.

/// One JSON value. Integers and floats are different things, as they are in Python.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number written without point and exponent that fits into 64 bits with sign.
    Int(i64),
    /// INVARIANT: the canonical decimal text of an integer that does not fit; [`Value::decimal`] makes no other.
    Large(Box<str>),
    /// A number written with a point or an exponent. Finite in every value that came from [`parse`](super::parse).
    Float(f64),
    /// A string.
    Str(String),
    /// An array.
    Array(Vec<Value>),
    /// An object. INVARIANT: pairs are sorted by key and unique; [`Value::object`] sees to that.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// An object from pairs in any order; of two pairs with the same key the later one stays.
    pub fn object<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Value)>) -> Value {
        let mut sorted: Vec<(String, Value)> = pairs.into_iter().map(|(key, value)| (key.into(), value)).collect();
        // Both steps are stable, so "the later one" means what the caller wrote last.
        sorted.sort_by(|a, b| a.0.cmp(&b.0));
        sorted.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                std::mem::swap(&mut later.1, &mut kept.1);
            }
            same
        });
        Value::Object(sorted)
    }

    /// Its canonical form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        super::write_value(self, &mut bytes);
        bytes
    }

    /// The value under `key`, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        let pairs = self.as_object()?;
        let at = pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)).ok()?;
        Some(&pairs[at].1)
    }

    /// Puts `value` under `key`, in its sorted place. Does nothing unless this is an object.
    pub fn set(&mut self, key: &str, value: Value) {
        if let Value::Object(pairs) = self {
            match pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)) {
                Ok(at) => pairs[at].1 = value,
                Err(at) => pairs.insert(at, (key.to_owned(), value)),
            }
        }
    }

    /// Takes the value under `key` out of this object.
    pub fn remove(&mut self, key: &str) -> Option<Value> {
        let Value::Object(pairs) = self else {
            return None;
        };
        let at = pairs.binary_search_by(|pair| pair.0.as_str().cmp(key)).ok()?;
        Some(pairs.remove(at).1)
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Value::Null)
    }

    /// The integer that `text` spells: an optional `-` and at least one digit. Leading zeros are dropped, `-0` is 0.
    pub fn decimal(text: &str) -> Option<Value> {
        let digits = text.strip_prefix('-').unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let sign = &text[..text.len() - digits.len()];
        let large = || Value::Large([sign, digits.trim_start_matches('0')].concat().into_boxed_str());
        Some(text.parse().map_or_else(|_| large(), Value::Int))
    }

    /// The integer, if this is one and it fits.
    pub fn as_i64(&self) -> Option<i64> {
        match self {
            Value::Int(int) => Some(*int),
            _ => None,
        }
    }

    /// The integer, if this is one and it fits.
    pub fn as_u64(&self) -> Option<u64> {
        match self {
            Value::Int(int) => u64::try_from(*int).ok(),
            Value::Large(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// The number, integer or float, as the nearest finite float.
    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Float(float) => Some(*float),
            // Rounds to nearest, ties to even, as Python's `float(int)` does.
            Value::Int(int) => Some(*int as f64),
            Value::Large(text) => text.parse().ok().filter(|float: &f64| float.is_finite()),
            _ => None,
        }
    }
}

macro_rules! value_as {
    ($($doc:literal $name:ident $kind:ident $of:ty;)+) => {
        impl Value {
            $(#[doc = $doc]
            pub fn $name(&self) -> Option<&$of> {
                match self {
                    Value::$kind(value) => Some(value),
                    _ => None,
                }
            })+
        }
    };
}

value_as! {
    "The string, if this is one." as_str Str str;
    "The items, if this is an array." as_array Array [Value];
    "The sorted pairs, if this is an object." as_object Object [(String, Value)];
}

impl Value {
    /// The truth value, if this is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }
}

macro_rules! value_from {
    ($($from:ty => |$given:ident| $value:expr;)+) => {
        $(impl From<$from> for Value {
            fn from($given: $from) -> Value {
                $value
            }
        })+
    };
}

value_from! {
    &str => |text| Value::Str(text.to_owned());
    String => |text| Value::Str(text);
    i64 => |number| Value::Int(number);
    u64 => |number| i64::try_from(number).map_or_else(|_| Value::Large(number.to_string().into()), Value::Int);
    f64 => |number| Value::Float(number);
    bool => |truth| Value::Bool(truth);
}

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
    use super::super::parse;
    use super::*;

    #[test]
    fn the_pairs_of_an_object_are_sorted_and_unique() {
        let mut object = Value::object([("b", Value::from(1_i64)), ("a", Value::Null), ("b", Value::from(2_i64))]);
        assert_eq!(object.to_bytes(), br#"{"a":null,"b":2}"#);
        for (key, value) in [
            ("c", Value::from(true)),
            ("", Value::from("x")),
            ("b", Value::from(0.5)),
        ] {
            object.set(key, value);
        }
        assert_eq!(object.to_bytes(), br#"{"":"x","a":null,"b":0.5,"c":true}"#);
        assert_eq!(object.remove("b"), Some(Value::Float(0.5)));
        assert_eq!((object.remove("b"), object.get("b")), (None, None));
    }

    #[test]
    fn one_integer_has_one_form() {
        let huge = "9".repeat(400);
        for (text, written, as_i64, as_u64, as_f64) in [
            ("-0", "0", Some(0), Some(0), Some(0.0)),
            ("-007", "-7", Some(-7), None, Some(-7.0)),
            (
                "0018446744073709551615",
                "18446744073709551615",
                None,
                Some(u64::MAX),
                Some(18_446_744_073_709_551_616.0),
            ),
            (
                "-9223372036854775809",
                "-9223372036854775809",
                None,
                None,
                Some(-9_223_372_036_854_775_808.0),
            ),
            (&huge, &huge, None, None, None),
        ] {
            let int = Value::decimal(text).expect("an integer");
            assert_eq!(String::from_utf8_lossy(&int.to_bytes()), written);
            assert_eq!(
                (int.as_i64(), int.as_u64(), int.as_f64()),
                (as_i64, as_u64, as_f64),
                "{text}"
            );
        }
        assert_eq!(Value::decimal("0009223372036854775808"), Some(Value::from(1_u64 << 63)));
        for bad in ["", "-", "+1", "1.0", "1e3", " 1", "--1"] {
            assert_eq!(Value::decimal(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn patches_are_merged_as_in_the_examples_of_the_rfc() {
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
            // Members on all sides of those that change.
            (
                r#"{"a":1,"c":3,"e":5}"#,
                r#"{"b":2,"c":null,"f":6}"#,
                r#"{"a":1,"b":2,"e":5,"f":6}"#,
            ),
        ] {
            let [read, change] = [target, patch].map(|text| parse(text.as_bytes()).expect("JSON"));
            let merged = merge(read, &change).to_bytes();
            assert_eq!(String::from_utf8_lossy(&merged), expected, "{target} + {patch}");
        }
    }
}
