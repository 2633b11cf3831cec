//! A model ready to embed texts that are tokens already.

use std::path::Path;
use std::sync::Mutex;
use std::thread;

use crate::error::Error;
use crate::format::{Checksum, Model};
use crate::forward::Batch;
use crate::kernel::{Kernel, choose};
use crate::scratch::with_scratch;

/// Texts are run together until they have so many tokens: weights are then read once for all of
/// them, and their activations stay in the cache of a core.
const BATCH_TOKENS: usize = 128;

/// A BERT encoder with mean pooling. It may be used by several threads at once.
pub struct Encoder {
    model: Model,
    kernel: &'static dyn Kernel,
}

/// Some texts of a call and the place for their vectors.
struct Work<'a> {
    batch: Batch<'a>,
    vectors: &'a mut [f32],
}

impl Encoder {
    /// Map a file of weights and choose the kernel, which `MNEMIC_KERNEL` may name.
    ///
    /// # Errors
    /// If the file cannot be read or is not one of weights, or this CPU lacks the kernel.
    pub fn open(path: &Path, checksum: Checksum) -> Result<Self, Error> {
        let kernel = choose(std::env::var("MNEMIC_KERNEL").ok().as_deref())?;
        Ok(Self { model: Model::open(path, checksum)?, kernel })
    }

    /// Length of a vector.
    pub fn dimensions(&self) -> usize {
        self.model.sizes.hidden
    }

    /// The most tokens of a text.
    pub fn max_tokens(&self) -> usize {
        self.model.sizes.positions
    }

    /// Name of the instructions that are used.
    pub fn kernel(&self) -> &'static str {
        self.kernel.name()
    }

    /// Embed texts, each given as its tokens: one row of unit length each, whatever texts are
    /// beside it.
    ///
    /// `is_over` is asked before each layer. The texts are spread over at most so many threads,
    /// the calling one among them.
    ///
    /// # Errors
    /// If a text has no tokens, too many or unknown ones, `vectors` has another size, or `is_over`
    /// said so; some vectors may have been written then.
    pub fn embed(
        &self,
        texts: &[&[u32]],
        vectors: &mut [f32],
        threads: usize,
        is_over: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), Error> {
        self.check(texts, vectors.len())?;
        let works = self.works(texts, vectors);
        let helpers = threads.min(works.len()).saturating_sub(1);
        let works = Mutex::new(works.into_iter());
        if helpers == 0 {
            return self.run_all(&works, is_over);
        }
        thread::scope(|scope| {
            let run = || self.run_all(&works, is_over);
            let others: Vec<_> = (0..helpers).map(|_| scope.spawn(run)).collect();
            let own = run();
            let joined = |other: thread::ScopedJoinHandle<'_, _>| {
                other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            others.into_iter().map(joined).fold(own, Result::and)
        })
    }

    fn check(&self, texts: &[&[u32]], found: usize) -> Result<(), Error> {
        let wanted = texts.len() * self.dimensions();
        if found != wanted {
            return Err(Error::PlaceMismatch { found, wanted });
        }
        texts.iter().enumerate().try_for_each(|(text, tokens)| self.check_text(text, tokens))
    }

    fn check_text(&self, text: usize, tokens: &[u32]) -> Result<(), Error> {
        let words = self.model.sizes.words;
        if tokens.is_empty() {
            return Err(Error::NoTokens { text });
        }
        if tokens.len() > self.max_tokens() {
            return Err(Error::TooManyTokens { text, found: tokens.len(), max: self.max_tokens() });
        }
        match tokens.iter().find(|token| **token as usize >= words) {
            Some(found) => Err(Error::UnknownToken { text, found: *found, words }),
            None => Ok(()),
        }
    }

    /// Cut a call into batches.
    fn works<'a>(&self, mut texts: &'a [&'a [u32]], mut vectors: &'a mut [f32]) -> Vec<Work<'a>> {
        let mut works = Vec::new();
        while let Some(first) = texts.first() {
            let mut batch = Batch { texts: &texts[..1], tokens: first.len() };
            for (at, text) in texts.iter().enumerate().skip(1) {
                if batch.tokens + text.len() > BATCH_TOKENS {
                    break;
                }
                batch = Batch { texts: &texts[..=at], tokens: batch.tokens + text.len() };
            }
            texts = &texts[batch.texts.len()..];
            let (place, rest) = vectors.split_at_mut(batch.texts.len() * self.dimensions());
            works.push(Work { batch, vectors: place });
            vectors = rest;
        }
        works
    }

    fn run_all<'a>(
        &self,
        works: &Mutex<impl Iterator<Item = Work<'a>>>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        loop {
            let next = works.lock().unwrap_or_else(std::sync::PoisonError::into_inner).next();
            let Some(Work { batch, vectors }) = next else { return Ok(()) };
            self.run(batch, vectors, is_over)?;
        }
    }

    fn run(
        &self,
        batch: Batch<'_>,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        let longest = batch.texts.iter().map(|text| text.len()).max().unwrap_or(0);
        with_scratch(|scratch| {
            scratch.fit(self.model.sizes, batch.tokens, longest);
            self.kernel.run(&self.model, batch, scratch, vectors, is_over)
        })
    }
}
