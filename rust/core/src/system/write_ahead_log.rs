//! The write-ahead log of `SQLite`: distinguishes commits lost to damage from a tail cut off.
//!
//! A log is read up to the first frame that is not right. After a power cut that is where the last
//! transaction was being written. But a transaction is on the disk before the next one begins
//! (`synchronous=FULL`), so where a right frame follows the end of the transaction that the wrong
//! one belongs to, it was whole once. The format is section 4 of `SQLite`'s fileformat2.

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;
const MAGIC: u32 = 0x377f_0682;
const FIRST_VERSION: u32 = 3_007_000;

/// The loss of a damaged log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The first frame that is not right, from 1.
    pub frame: usize,
    /// Smallest number of commits that end at it or after it.
    pub commits: usize,
}

/// Committed frames that can no longer be read; `None` if the log is whole, or cut off at its end.
pub fn lost(log: &[u8]) -> Option<Lost> {
    let log = Log::read(log)?;
    let frames = log.frames.len() / log.frame_size;
    let wrong = (0..frames).find(|at| !log.is_right(*at))?;
    let mut commits = (wrong..frames).filter(|at| log.is_of_this_log(*at) && log.is_commit(*at));
    let first = commits.next()?;
    if first + 1 == frames || !log.is_right(first + 1) {
        return None;
    }
    Some(Lost { frame: wrong + 1, commits: 1 + commits.filter(|at| log.is_right(*at)).count() })
}

struct Log<'log> {
    header: &'log [u8],
    frames: &'log [u8],
    frame_size: usize,
    is_big_endian: bool,
}

impl<'log> Log<'log> {
    fn read(log: &'log [u8]) -> Option<Self> {
        let (header, frames) = log.split_at_checked(HEADER)?;
        let magic = word(header, 0);
        let page_size = word(header, 8) as usize;
        if magic & !1 != MAGIC || word(header, 4) != FIRST_VERSION || !is_page_size(page_size) {
            return None;
        }
        let frame_size = FRAME_HEADER + page_size;
        let log = Self { header, frames, frame_size, is_big_endian: magic & 1 == 1 };
        let is_right = log.sum([0, 0], &header[..24]) == [word(header, 24), word(header, 28)];
        is_right.then_some(log)
    }

    fn frame(&self, at: usize) -> &'log [u8] {
        &self.frames[at * self.frame_size..(at + 1) * self.frame_size]
    }

    fn is_of_this_log(&self, at: usize) -> bool {
        self.frame(at)[8..16] == self.header[16..24]
    }

    fn is_commit(&self, at: usize) -> bool {
        word(self.frame(at), 4) != 0
    }

    /// Whether a frame's checksum follows from that of the frame before it.
    fn is_right(&self, at: usize) -> bool {
        let frame = self.frame(at);
        let before = match at {
            0 => [word(self.header, 24), word(self.header, 28)],
            _ => sum_of(self.frame(at - 1)),
        };
        let sum = self.sum(self.sum(before, &frame[..8]), &frame[FRAME_HEADER..]);
        self.is_of_this_log(at) && word(frame, 0) != 0 && sum == sum_of(frame)
    }

    fn sum(&self, mut sum: [u32; 2], bytes: &[u8]) -> [u32; 2] {
        for pair in bytes.chunks_exact(8) {
            let pair = [0, 4].map(|at| {
                let value = word(pair, at);
                if self.is_big_endian { value } else { value.swap_bytes() }
            });
            sum[0] = sum[0].wrapping_add(pair[0]).wrapping_add(sum[1]);
            sum[1] = sum[1].wrapping_add(pair[1]).wrapping_add(sum[0]);
        }
        sum
    }
}

fn is_page_size(size: usize) -> bool {
    size.is_power_of_two() && (512..=65536).contains(&size)
}

fn sum_of(frame: &[u8]) -> [u32; 2] {
    [word(frame, 16), word(frame, 20)]
}

/// Big-endian, as all numbers of the log are.
fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
