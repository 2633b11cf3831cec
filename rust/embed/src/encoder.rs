//! A model ready to embed texts that are tokens already.

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::thread;

use crate::error::Error;
use crate::format::{Checksum, Model};
use crate::forward::Batch;
use crate::kernel::{Kernel, choose};
use crate::scratch::{Scratch, with_scratch};

/// Texts are run together until they have so many tokens: weights then come from memory once for
/// all of them, and their activations stay in the cache of a core.
const BATCH_TOKENS: usize = 128;

/// Of threads.
const NAME: &str = "mnemic-embed";

/// Of a thread: its deepest call takes a few thousand bytes.
const STACK_BYTES: usize = 1 << 20;

/// Address space that glibc takes for the first allocation of a thread, most of it for a moment.
/// Where there is less, that of its thread-local variables may fail, which ends the process.
const ARENA_BYTES: usize = 128 << 20;

/// A BERT encoder with mean pooling. It may be used by several threads at once.
pub struct Encoder {
    model: Model,
    kernel: &'static dyn Kernel,
}

/// Cuts a call into batches, each with the place for its vectors.
struct Batches<'a> {
    texts: &'a [&'a [u32]],
    vectors: &'a mut [f32],
    dimensions: usize,
}

impl<'a> Iterator for Batches<'a> {
    type Item = (Batch<'a>, &'a mut [f32]);

    fn next(&mut self) -> Option<Self::Item> {
        let mut tokens = self.texts.first()?.len();
        let mut count = 1;
        for text in &self.texts[1..] {
            if tokens + text.len() > BATCH_TOKENS {
                break;
            }
            tokens += text.len();
            count += 1;
        }
        let (texts, rest) = self.texts.split_at(count);
        let vectors = std::mem::take(&mut self.vectors);
        let (place, places) = vectors.split_at_mut(count * self.dimensions);
        (self.texts, self.vectors) = (rest, places);
        Some((Batch { texts, tokens }, place))
    }
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

    /// Bytes of address space that a call takes at most; a failed allocation ends the process.
    pub fn memory(&self, texts: &[&[u32]], threads: usize) -> usize {
        let tokens = tokens_of(texts);
        let batch = tokens.min(longest_of(texts).max(BATCH_TOKENS));
        let scratch = Scratch::bytes(self.model.sizes, batch);
        scratch + helpers(tokens, threads).saturating_mul(ARENA_BYTES + STACK_BYTES + scratch)
    }

    /// Embed texts, each given as its tokens: one row of unit length each, whatever texts are
    /// beside it.
    ///
    /// `is_over` is asked before each layer; it must not embed texts itself. The texts are spread
    /// over at most so many threads, the calling one among them; fewer where no more can be had.
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
        let helpers = helpers(tokens_of(texts), threads);
        let batches = Mutex::new(Batches { texts, vectors, dimensions: self.dimensions() });
        if helpers == 0 {
            return self.run_all(&batches, is_over);
        }
        thread::scope(|scope| {
            let run = || self.run_all(&batches, is_over);
            let builder = || thread::Builder::new().name(NAME.to_owned()).stack_size(STACK_BYTES);
            let spawn = |_| builder().spawn_scoped(scope, run).ok();
            let others: Vec<_> = (0..helpers).map_while(spawn).collect();
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

    /// Run batches until there are no more.
    fn run_all(
        &self,
        batches: &Mutex<Batches<'_>>,
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        loop {
            let next = batches.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((batch, vectors)) = next else { return Ok(()) };
            self.run(batch, vectors, is_over)?;
        }
    }

    fn run(
        &self,
        batch: Batch<'_>,
        vectors: &mut [f32],
        is_over: &dyn Fn() -> bool,
    ) -> Result<(), Error> {
        with_scratch(|scratch| self.kernel.run(&self.model, batch, scratch, vectors, is_over))
    }
}

fn tokens_of(texts: &[&[u32]]) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

fn longest_of(texts: &[&[u32]]) -> usize {
    texts.iter().map(|text| text.len()).max().unwrap_or(0)
}

/// Threads beside the calling one.
fn helpers(tokens: usize, threads: usize) -> usize {
    threads.min(tokens.div_ceil(BATCH_TOKENS)).saturating_sub(1)
}
