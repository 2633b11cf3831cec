//! Texts that recur, as numbers.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::RwLock;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The code of a text that is not there.
pub(crate) const NO_TEXT: u32 = 0;

/// Numbers for texts, from 1 on. A text keeps its number for good, so all snapshots share one of
/// these; the lock is held for a look-up and no longer.
#[derive(Default)]
pub(crate) struct Interner(RwLock<Known>);

#[derive(Default)]
struct Known {
    codes: HashMap<Arc<str>, u32>,
    texts: Vec<Arc<str>>,
}

impl Serialize for Interner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.read().texts.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Interner {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let texts = Vec::<&str>::deserialize(deserializer)?;
        let texts: Vec<Arc<str>> = texts.into_iter().map(Arc::from).collect();
        let codes: HashMap<Arc<str>, u32> = texts.iter().cloned().zip(1..).collect();
        if codes.len() < texts.len() {
            return Err(D::Error::custom("a text with two codes"));
        }
        Ok(Self(RwLock::new(Known { codes, texts })))
    }
}

impl Interner {
    /// The code of a text, which has one from now on.
    pub(crate) fn code(&self, text: &str) -> u32 {
        if let Some(code) = self.find(text) {
            return code;
        }
        let mut known = self.0.write();
        if let Some(code) = known.codes.get(text) {
            return *code; // another thread came first
        }
        let text: Arc<str> = text.into();
        known.texts.push(Arc::clone(&text));
        let code = known.texts.len() as u32;
        known.codes.insert(text, code);
        code
    }

    /// The code of a text, where it has one.
    pub(crate) fn find(&self, text: &str) -> Option<u32> {
        self.0.read().codes.get(text).copied()
    }

    /// The text of a code, if there is one.
    pub(crate) fn text(&self, code: u32) -> Option<Arc<str>> {
        let at = code.checked_sub(1)? as usize;
        self.0.read().texts.get(at).cloned()
    }

    /// Number of texts.
    pub(crate) fn len(&self) -> usize {
        self.0.read().texts.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        let known = self.0.read();
        let texts: usize = known.texts.iter().map(|text| text.len()).sum();
        let a_text = size_of::<Arc<str>>();
        let an_entry = a_text + size_of::<u32>() + 1;
        texts + known.texts.capacity() * a_text + known.codes.capacity() * an_entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_keeps_its_code_and_every_code_its_text() {
        let interner = Interner::default();
        let codes: Vec<u32> = ["a", "b", "", "a", "ß"].map(|text| interner.code(text)).into();
        assert_eq!(codes, [1, 2, 3, 1, 4]);
        assert_eq!(interner.find("ß"), Some(4));
        assert_eq!(interner.find("ss"), None);
        assert_eq!(interner.text(3).as_deref(), Some(""));
        assert_eq!(interner.text(NO_TEXT), None);
        assert_eq!(interner.text(5), None);
        assert_eq!(interner.len(), 4);
        assert!(interner.bytes() > 0);
    }

    #[test]
    fn threads_agree_on_codes() {
        let interner = Interner::default();
        let name = |number: usize| format!("text {}", number % 100);
        std::thread::scope(|scope| {
            for start in 0..4 {
                let interner = &interner;
                scope.spawn(move || {
                    for turn in 0..500 {
                        interner.code(&name(start * 31 + turn));
                    }
                });
            }
        });
        assert_eq!(interner.len(), 100);
        for number in 0..100 {
            let code = interner.find(&name(number)).expect("every thread gave it one");
            assert_eq!(interner.text(code).as_deref(), Some(name(number).as_str()));
        }
    }
}
