//! Writes the docstrings of the stub file to `OUT_DIR`, one file each, for `stub!`.
//!
//! So `python/mnemic/_core.pyi` is the one place of their texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

const STUB: &str = "../../python/mnemic/_core.pyi";
const QUOTES: &str = "\"\"\"";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={STUB}");
    let folder = PathBuf::from(env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?);
    // A text whose name has left the stub file would still compile here, and nowhere else.
    fs::remove_dir_all(&folder)?;
    fs::create_dir(&folder)?;
    for (name, text) in docstrings(&fs::read_to_string(Path::new(STUB))?) {
        fs::write(folder.join(format!("{name}.txt")), text)?;
    }
    Ok(())
}

/// The docstring of each class and function, by its name, that of a method after its class's.
fn docstrings(stub: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let (mut class, mut name) = (String::new(), String::new());
    let mut lines = stub.lines();
    while let Some(line) = lines.next() {
        let words = line.trim_start();
        if let Some(rest) = words.strip_prefix("class ") {
            class = identifier(rest);
            name.clone_from(&class);
        } else if let Some(rest) = words.strip_prefix("def ") {
            let is_method = line.starts_with(' ');
            name = if is_method { format!("{class}.") } else { String::new() } + &identifier(rest);
        } else if let Some(first) = words.strip_prefix(QUOTES) {
            let indent = line.len() - words.len();
            found.insert(std::mem::take(&mut name), docstring(first, indent, &mut lines));
        }
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|letter| letter.is_alphanumeric() || *letter == '_').collect()
}

/// A docstring up to its closing quotes, without the indentation of its lines.
fn docstring<'a>(first: &str, indent: usize, lines: &mut impl Iterator<Item = &'a str>) -> String {
    if let Some(text) = first.strip_suffix(QUOTES) {
        return text.to_owned();
    }
    let mut text = first.to_owned();
    for line in lines.take_while(|line| line.trim() != QUOTES) {
        text.push('\n');
        text.push_str(line.get(indent..).unwrap_or_default());
    }
    text
}
