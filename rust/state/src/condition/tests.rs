//! Tests what each operator of a condition means.

use super::*;

fn holds(condition: &str, record: &str) -> bool {
    let condition = Condition::parse(condition.as_bytes()).expect("a where");
    condition.holds(record.as_bytes(), &Facts::default())
}

/// A where of one field, `data.x`, asked of a record that has this value there, or no such field.
fn of_x(operators: &str, value: Option<&str>) -> bool {
    let record = match value {
        Some(value) => format!(r#"{{"data":{{"x":{value}}},"id":"R"}}"#),
        None => r#"{"data":{},"id":"R"}"#.to_owned(),
    };
    holds(&format!(r#"{{"data.x":{operators}}}"#), &record)
}

fn refused(condition: &str) -> String {
    Condition::parse(condition.as_bytes())
        .expect_err("no where")
        .to_string()
}

#[track_caller]
fn check(operators: &str, yes: &[&str], no: &[&str]) {
    for value in yes {
        assert!(of_x(operators, Some(value)), "{operators} of {value}");
    }
    for value in no {
        assert!(!of_x(operators, Some(value)), "{operators} of {value}");
    }
}

#[test]
fn equality_is_of_values_and_not_of_spellings() {
    check("1", &["1", "1.0"], &["true", "\"1\"", "null", "[1]", "1.5", "2"]);
    check(r#"{"eq":null}"#, &["null"], &["0", "\"\"", "false", "[]"]);
    check(
        "9007199254740993",
        &["9007199254740993"],
        &["9007199254740992", "9007199254740994"],
    );
    check(
        "1e22",
        &["1e+22", "10000000000000000000000"],
        &["10000000000000000000001"],
    );
    check("-0.0", &["0", "0.0", "-0.0"], &["1"]);
    check(
        r#"{"eq":[1,{"a":2.0}]}"#,
        &[r#"[1.0,{"a":2}]"#],
        &[r#"[{"a":2},1]"#, "[1]"],
    );
    check(
        r#"{"eq":{"a":[1],"b":null}}"#,
        &[r#"{"a":[1.0],"b":null}"#],
        &[r#"{"a":[1]}"#],
    );
    check(r#"{"ne":1}"#, &["2", "true", "\"1\"", "null"], &["1", "1.0"]);
    check(r#""a\nb""#, &[r#""a\nb""#], &[r#""a\\nb""#, "\"A\""]);
    assert!(of_x(r#"{"ne":1}"#, None) && !of_x("1", None) && !of_x(r#"{"eq":null}"#, None));
}

#[test]
fn lists_of_operands() {
    check(
        r#"{"in":[1,"a",null,[2]]}"#,
        &["1.0", "\"a\"", "null", "[2.0]"],
        &["2", "\"b\"", "[1]", "true"],
    );
    check(r#"{"in":[]}"#, &[], &["1", "null"]);
    check(
        r#"{"in":[1,2,3,4,5,"a",true]}"#,
        &["5.0", "\"a\"", "true"],
        &["6", "false", "[1]"],
    );
    check(
        r#"{"any":[1,"a"]}"#,
        &["[1.0]", r#"[2,"a"]"#],
        &["[]", "[2]", "1", "\"a\"", r#"{"a":1}"#],
    );
    check(r#"{"any":[]}"#, &[], &["[]", "[1]"]);
    check(r#"{"all":[1,"a"]}"#, &[r#"["a",1.0,2]"#], &["[1]", "[]", "1"]);
    check(r#"{"all":[]}"#, &["[]", "[1]"], &["1", "{}", "null"]);
    check(r#"{"all":[1,2,3,4,5]}"#, &["[5,4,3,2.0,1]"], &["[1,2,3,4]"]);
    check(
        r#"{"under":["a",1]}"#,
        &[r#"["a",1.0]"#, r#"["a",1,2]"#],
        &[r#"["a"]"#, r#"[1,"a"]"#, "\"a\""],
    );
    check(r#"{"under":[]}"#, &["[]", "[1]"], &["null", "{}"]);
}

#[test]
fn order_is_of_numbers_and_texts() {
    check(
        r#"{"gt":1}"#,
        &["1.5", "10", "1e+300"],
        &["1", "1.0", "0", "\"2\"", "true", "null", "[2]"],
    );
    check(r#"{"gte":1.0}"#, &["1", "2"], &["0.999"]);
    check(
        r#"{"lt":-1}"#,
        &["-2", "-1e+300", "-10000000000000000000000001"],
        &["-1", "0", "\"\""],
    );
    check(
        r#"{"lte":"b"}"#,
        &["\"b\"", "\"a\"", "\"\"", "\"B\""],
        &["\"ba\"", "1", "null"],
    );
    check(r#"{"gt":"z"}"#, &["\"é\"", "\"😀\"", "\"za\""], &["\"z\"", "\"Z\""]);
    check(r#"{"gt":1,"lt":3}"#, &["2"], &["1", "3"]);
}

#[test]
fn texts_and_types() {
    check(
        r#"{"starts":"ab"}"#,
        &["\"ab\"", "\"abc\""],
        &["\"a\"", "\"Ab\"", "1", "[\"ab\"]"],
    );
    check(r#"{"starts":""}"#, &["\"\"", "\"x\""], &["1", "null"]);
    check(r#"{"starts":"a\n"}"#, &[r#""a\nb""#], &[r#""a\\n""#]);
    check(
        r#"{"like":"a%_\\%"}"#,
        &["\"ab%\"", "\"axx%\""],
        &["\"a%\"", "\"ab\"", "1"],
    );
    check(r#"{"type":"number"}"#, &["1", "-1.5"], &["\"1\"", "true", "null"]);
    check(
        r#"{"type":["null","array","object"]}"#,
        &["null", "[]", "{}"],
        &["false", "\"\"", "0"],
    );
    check(
        r#"{"type":["string","bool"]}"#,
        &["\"\"", "false", "true"],
        &["null", "1"],
    );
    check(r#"{"exists":true}"#, &["null", "1", "[]"], &[]);
    check(r#"{"exists":false}"#, &[], &["null", "1", "[]"]);
    assert!(of_x(r#"{"exists":false}"#, None) && !of_x(r#"{"exists":true}"#, None));
}

#[test]
fn nothing_is_true_of_what_is_missing() {
    for operators in [
        r#"{"eq":1}"#,
        r#"{"in":[null]}"#,
        r#"{"gt":0}"#,
        r#"{"lte":"z"}"#,
        r#"{"starts":""}"#,
        r#"{"like":"%"}"#,
        r#"{"any":[1]}"#,
        r#"{"all":[]}"#,
        r#"{"under":[]}"#,
        r#"{"type":["null","string"]}"#,
    ] {
        assert!(!of_x(operators, None), "{operators}");
        let record = r#"{"data":{}}"#;
        assert!(
            holds(&format!(r#"{{"not":{{"data.x":{operators}}}}}"#), record),
            "{operators}"
        );
    }
}

#[test]
fn wheres_are_joined() {
    let record = r#"{"data":{"a":1,"b":2},"kind":"note"}"#;
    for yes in [
        "{}",
        r#"{"and":[]}"#,
        r#"{"kind":"note","data.a":1}"#,
        r#"{"or":[{"kind":"fact"},{"data.b":2}]}"#,
        r#"{"not":{"or":[]}}"#,
        r#"{"path":["data","a"],"gte":1,"lt":2}"#,
        r#"{"not":{"and":[{"data.a":1},{"data.b":3}]}}"#,
    ] {
        assert!(holds(yes, record), "{yes}");
    }
    for no in [
        r#"{"or":[]}"#,
        r#"{"not":{}}"#,
        r#"{"kind":"note","data.a":2}"#,
        r#"{"and":[{},{"or":[]}]}"#,
    ] {
        assert!(!holds(no, record), "{no}");
    }
}

#[test]
fn moments_are_compared_by_the_instant() {
    check(
        r#"{"gt":{"moment":"2026-05-18T11:00:00+02:00"}}"#,
        &["\"2026-05-18T09:00:00.000001Z\"", "\"2026-05-19\"", "1779181200"],
        &["\"2026-05-18T09:00:00Z\"", "\"soon\"", "null", "[\"2026-05-19\"]"],
    );
    check(
        r#"{"moment":"2026-05-18T00:00:00Z"}"#,
        &["\"2026-05-18\"", "\"2026-05-18T02:00:00+02:00\"", "1779062400"],
        &["\"2026-05-17\""],
    );
    check(
        r#"{"ne":{"moment":"2026-05-18T00:00:00Z"}}"#,
        &["\"soon\"", "null"],
        &["\"2026-05-18\""],
    );
    check(
        r#"{"any":[{"moment":"2026-05-18T00:00:00Z"}]}"#,
        &["[1,\"2026-05-18\"]"],
        &["\"2026-05-18\""],
    );
}

#[test]
fn moments_beside_a_record_come_from_beside_it() {
    let facts = Facts {
        created_us: Some(1_779_105_600_000_000),
        updated_us: None,
        happened_us: Some(0),
    };
    let asked = |condition: &str| {
        let condition = Condition::parse(condition.as_bytes()).expect("a where");
        condition.holds(br#"{"created_at":"1999-01-01"}"#, &facts)
    };
    assert!(asked(r#"{"created_at":"2026-05-18T12:00:00Z"}"#));
    assert!(asked(r#"{"created_at":{"in":["2026-05-18T14:00:00+02:00"]}}"#));
    assert!(asked(
        r#"{"created_at":{"gte":{"moment":"2026-05-18T12:00:00Z"}},"happened_at":{"lt":"1970-01-02T00:00:00Z"}}"#
    ));
    assert!(asked(r#"{"updated_at":{"exists":false},"created_at":{"exists":true}}"#));
    assert!(asked(r#"{"updated_at":{"ne":"2026-05-18T12:00:00Z"}}"#));
    assert!(!asked(r#"{"updated_at":{"gt":"1970-01-01T00:00:00Z"}}"#));
    assert!(!asked(r#"{"created_at.x":{"exists":true}}"#));
    let condition = Condition::parse(br#"{"not":{"or":[{"created_at":{"exists":true}}]}}"#).expect("a where");
    assert!(condition.asks_for(MomentField::Created) && !condition.asks_for(MomentField::Happened));
}

#[test]
fn short_forms_are_conditions() {
    let facts = Facts {
        happened_us: Some(5),
        ..Facts::default()
    };
    let record = br#"{"data":{"tags":["a","b"]}}"#;
    let tags = |tags: &[&str]| Condition::tagged(&tags.iter().map(|&tag| tag.to_owned()).collect::<Vec<_>>());
    let is_so = |condition: Condition| condition.holds(record, &facts);
    assert!(is_so(tags(&["a"])) && is_so(tags(&["b", "a"])) && !is_so(tags(&["c"])));
    assert!(is_so(Condition::since(5)) && is_so(Condition::until(5)));
    assert!(!is_so(Condition::since(6)) && !is_so(Condition::until(4)));
    let both = Condition::joined([tags(&["a"]), Condition::since(6)]);
    assert_eq!(both.tests(), 2);
    assert!(!is_so(both) && is_so(Condition::joined([])));
}

#[test]
fn a_class_is_ruled_out_by_what_is_asked_of_texts() {
    let may = |condition: &str| {
        let condition = Condition::parse(condition.as_bytes()).expect("a where");
        condition.may_hold_for(b"note", b"active")
    };
    assert!(may(r#"{"kind":"note"}"#) && may(r#"{"kind":{"in":["note","x"]},"status":{"starts":"a"}}"#));
    assert!(!may(r#"{"kind":"fact"}"#) && !may(r#"{"and":[{"status":{"gt":"b"}}]}"#));
    // A record whose kind is no text is of the usual class.
    assert!(may(r#"{"kind":5}"#) && may(r#"{"kind":{"in":["x",5]}}"#) && may(r#"{"kind":{"ne":"note"}}"#));
    assert!(may(r#"{"or":[{"kind":"fact"}]}"#) && may(r#"{"not":{"kind":"note"}}"#));
}

#[test]
fn what_says_nothing_is_refused_with_its_place() {
    for (condition, words) in [
        (
            r#"{"and":[{},{"data.age":{"gt":true}}]}"#,
            r#"where.and[1]."data.age".gt: true has no order; use eq, ne or in"#,
        ),
        (
            r#"{"data.x":{"a":1}}"#,
            r#"where."data.x": unknown operator "a"; for an object write {"eq": {…}}"#,
        ),
        (
            r#"{"dat.x":1}"#,
            r#"where."dat.x": no such field; fields of your own begin with data."#,
        ),
        ("[]", "where: an object expected, got an empty list"),
        (
            r#"{"created_at":{"gt":"2026-05-18T09:00:00"}}"#,
            r#"where."created_at".gt: "2026-05-18T09:00:00" has no time zone; write Z or an offset behind it"#,
        ),
    ] {
        assert_eq!(refused(condition), words);
    }
}

#[test]
fn a_where_has_limits() {
    let nested = |levels: usize| format!("{}{{}}{}", r#"{"not":"#.repeat(levels), "}".repeat(levels));
    assert!(Condition::parse(nested(31).as_bytes()).is_ok());
    assert!(refused(&nested(32)).ends_with(": more than 32 levels deep"));
    let tests = |number: usize| format!(r#"{{"or":[{}]}}"#, vec![r#"{"data.x":1}"#; number].join(","));
    assert_eq!(
        Condition::parse(tests(1_024).as_bytes()).map(|all| all.tests()).ok(),
        Some(1_024)
    );
    assert_eq!(refused(&tests(1_025)), "where: more than 1,024 tests");
    let operands = |number: usize| format!(r#"{{"data.x":{{"in":[{}]}}}}"#, vec!["1"; number].join(","));
    assert!(Condition::parse(operands(10_000).as_bytes()).is_ok());
    assert_eq!(
        refused(&operands(10_001)),
        "where.\"data.x\".in: 10,001 operands; at most 10,000"
    );
    let long = format!(r#"{{"data.x":"{}"}}"#, "a".repeat(1 << 20));
    assert_eq!(refused(&long), "where: 1,048,589 bytes of JSON; at most 1 MiB");
    let deep = format!(r#"{{"data.x":{{"eq":{}{}}}}}"#, "[".repeat(33), "]".repeat(33));
    assert_eq!(refused(&deep), "where.\"data.x\".eq: more than 32 levels deep");
}
