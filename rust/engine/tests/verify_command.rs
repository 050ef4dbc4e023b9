//! `chronolog verify` reaches the verdict of the corpus on every log and every folder in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use chronomemory::{Value, parse_json};

fn corpus() -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    Path::new(&package).join("../../tests/corpus")
}

/// The cases of a file of verdicts: their names, and whether the log is valid.
fn cases(file: &str) -> Vec<(String, bool)> {
    let Ok(Value::Object(cases)) = parse_json(&fs::read(corpus().join(file)).expect("the verdicts can be read")) else {
        panic!("{file} is no object");
    };
    let is_valid = |case: &Value| match case {
        Value::Object(fields) => fields
            .iter()
            .any(|(name, value)| name == "valid" && *value == Value::Bool(true)),
        _ => panic!("a case is no object"),
    };
    cases
        .iter()
        .map(|(name, case)| (name.clone(), is_valid(case)))
        .collect()
}

fn chronolog(arguments: &[&str]) -> Output {
    let command = env!("CARGO_BIN_EXE_chronolog");
    Command::new(command)
        .args(arguments)
        .output()
        .expect("the command can be started")
}

fn verdict(path: &Path) -> Option<i32> {
    chronolog(&["verify", path.to_str().expect("the path is text")])
        .status
        .code()
}

#[test]
fn logs_of_the_corpus_get_their_verdicts() {
    let project = std::env::temp_dir().join(format!("chronolog-verify-{}", std::process::id()));
    let folder = project.join(".chronomemory");
    let mut wrong = Vec::new();
    for (name, is_valid) in cases("verdicts.json") {
        fs::create_dir_all(&folder).expect("the folder can be made");
        let logs = corpus().join("logs");
        fs::copy(logs.join(format!("{name}.wal")), folder.join("events.wal")).expect("the log can be copied");
        let synced = logs.join(format!("{name}.synced"));
        if synced.exists() {
            fs::copy(synced, folder.join("synced")).expect("its mark can be copied");
        }
        if verdict(&project) != Some(i32::from(!is_valid)) {
            wrong.push(name);
        }
        fs::remove_dir_all(&project).expect("the folder can be removed");
    }
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn folders_of_the_corpus_get_their_verdicts() {
    let folders = cases("folder_verdicts.json");
    assert!(folders.len() > 200);
    let wrong: Vec<String> = folders
        .into_iter()
        .filter(|(name, is_valid)| verdict(&corpus().join("folders").join(name)) != Some(i32::from(!is_valid)))
        .map(|(name, _)| name)
        .collect();
    assert_eq!(wrong, Vec::<String>::new());
}

#[test]
fn wrong_use_is_explained() {
    for arguments in [&["verify"][..], &["repair", "."], &["verify", "/no/such/folder"]] {
        let output = chronolog(arguments);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains("chronolog"));
    }
}
