//! Write-ahead logs: what is lost is within the log, and nothing of a log that is whole.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mnemic_core::system::write_ahead_log::lost;

const HEADER: usize = 32;
const FRAME: usize = 24 + 512;

/// The checksum of section 4.2 of SQLite's fileformat2, of numbers in little-endian order.
fn sum(mut sum: [u32; 2], bytes: &[u8]) -> [u32; 2] {
    for pair in bytes.as_chunks::<4>().0.as_chunks::<2>().0 {
        let [one, other] = pair.map(u32::from_le_bytes);
        sum[0] = sum[0].wrapping_add(one).wrapping_add(sum[1]);
        sum[1] = sum[1].wrapping_add(other).wrapping_add(sum[0]);
    }
    sum
}

fn put(bytes: &mut [u8], sum: [u32; 2]) {
    bytes[..4].copy_from_slice(&sum[0].to_be_bytes());
    bytes[4..8].copy_from_slice(&sum[1].to_be_bytes());
}

/// Give the header, and the frames, so many, the salt and the checksums that they should have.
fn mend(log: &mut [u8], frames: usize) {
    let (header, rest) = log.split_at_mut(HEADER);
    header[..12].copy_from_slice(&[0x37, 0x7f, 6, 0x82, 0, 0x2d, 0xe2, 0x18, 0, 0, 2, 0]);
    let mut before = sum([0, 0], &header[..24]);
    put(&mut header[24..], before);
    for frame in rest.chunks_exact_mut(FRAME).take(frames) {
        frame[3] |= 1;
        frame[8..16].copy_from_slice(&header[16..24]);
        before = sum(sum(before, &frame[..8]), &frame[24..]);
        put(&mut frame[16..], before);
    }
}

fuzz_target!(|given: (u8, u8, &[u8])| {
    let (frames, place, bytes) = given;
    let _ = lost(bytes);
    let mut log = bytes.repeat(4);
    if log.len() < HEADER {
        return;
    }
    let whole = (log.len() - HEADER) / FRAME;
    mend(&mut log, usize::from(frames));
    let found = lost(&log);
    assert!(found.is_none_or(|lost| (1..=whole).contains(&lost.frame) && lost.commits > 0));
    assert!(found.is_none() || usize::from(frames) < whole);
    mend(&mut log, whole);
    assert_eq!(lost(&log), None);
    let at = HEADER + usize::from(place) * 8;
    if let Some(byte) = log.get_mut(at) {
        *byte ^= 1;
        assert!(lost(&log).is_none_or(|lost| lost.frame == (at - HEADER) / FRAME + 1));
    }
});
