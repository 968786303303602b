//! Decodes snappy as far as it is wanted.
//!
//! The stream is a varint of the decoded length, then elements: literals, and copies of what was
//! decoded before (`format_description.txt` of snappy has the encoding). A search for one key needs
//! the elements up to its entry alone ([decision 33](../../../../docs/decisions/0033-snappy.md)).

use crate::base::coding::get_varint32;

type Result<T> = std::result::Result<T, &'static str>;

pub(super) const DAMAGED: &str = "its snappy data is damaged";

/// A copy makes no more than 64 bytes out of three, a literal none that it does not have.
const MAX_RATIO: usize = 22;
/// Bytes that the longest copy makes. Elements of up to so many are moved as if they had as many,
/// where there is room.
const WIDE: usize = 64;

/// The decoded length that `compressed` says it has, and the elements. No stream of that size can
/// make more than what passes.
pub(super) fn split_header(compressed: &[u8]) -> Result<(usize, &[u8])> {
    let mut elements = compressed;
    let length = get_varint32(&mut elements).ok_or(DAMAGED)? as usize;
    if length > compressed.len().saturating_mul(MAX_RATIO) {
        return Err("its snappy header claims more than can be");
    }
    Ok((length, elements))
}

/// A stream and what was decoded of it.
pub(super) struct SnappyDecoder<'a> {
    /// Elements that were not decoded yet.
    elements: &'a [u8],
    /// As long as all that the stream makes. Behind `decoded` the bytes are arbitrary.
    output: &'a mut [u8],
    decoded: usize,
    /// How many elements that was; those that take their time count fourfold.
    effort: usize,
}

impl<'a> SnappyDecoder<'a> {
    /// Decodes `elements` into `output`, which is as long as [`split_header`] says.
    pub(super) fn new(elements: &'a [u8], output: &'a mut [u8]) -> Self {
        SnappyDecoder { elements, output, decoded: 0, effort: 0 }
    }

    /// All bytes that the stream makes, of which those before `end` are decoded.
    #[inline]
    pub(super) fn up_to(&mut self, end: usize) -> Result<&[u8]> {
        if self.decoded < end {
            self.decode(end)?;
        }
        Ok(self.output)
    }

    /// Decodes all. Returns how many elements it was, of which those that take their time count
    /// fourfold.
    pub(super) fn finish(mut self) -> Result<usize> {
        self.decode(usize::MAX)?;
        if self.elements.is_empty() { Ok(self.effort) } else { Err(DAMAGED) }
    }

    /// How many bytes were decoded.
    pub(super) fn decoded(&self) -> usize {
        self.decoded
    }

    /// Decodes elements until those bytes before `end`, or all, are there.
    fn decode(&mut self, end: usize) -> Result<()> {
        let output = &mut *self.output;
        let end = end.min(output.len());
        let (mut elements, mut at, mut effort) = (self.elements, self.decoded, self.effort);
        while at < end {
            effort += 1;
            if let Some(window) = elements.first_chunk::<{ 1 + WIDE }>()
                && output.len() - at >= WIDE
                && let Some((size, length)) = put_wide(output, at, window)
            {
                (elements, at) = (elements.get(size..).unwrap_or_default(), at + length);
                continue;
            }
            effort += 3;
            let (&tag, rest) = elements.split_first().ok_or(DAMAGED)?;
            let short = usize::from(tag >> 2);
            let (length, offset, rest) = match tag & 3 {
                0 => {
                    let (length, rest) = literal_length(short, rest)?;
                    let (literal, rest) = rest.split_at_checked(length).ok_or(DAMAGED)?;
                    let target = output.get_mut(at..).and_then(|target| target.get_mut(..length));
                    target.ok_or(DAMAGED)?.copy_from_slice(literal);
                    (elements, at) = (rest, at + length);
                    continue;
                }
                1 => {
                    let (&low, rest) = rest.split_first().ok_or(DAMAGED)?;
                    (4 + (short & 7), usize::from(tag >> 5) << 8 | usize::from(low), rest)
                }
                2 => {
                    let (&offset, rest) = rest.split_first_chunk().ok_or(DAMAGED)?;
                    (1 + short, usize::from(u16::from_le_bytes(offset)), rest)
                }
                _ => {
                    let (&offset, rest) = rest.split_first_chunk().ok_or(DAMAGED)?;
                    (1 + short, u32::from_le_bytes(offset) as usize, rest)
                }
            };
            put_copy(output, at, length, offset)?;
            (elements, at) = (rest, at + length);
        }
        (self.elements, self.decoded, self.effort) = (elements, at, effort);
        Ok(())
    }
}

/// Puts what the first element of `window` makes at `at`, and arbitrary bytes behind it. Returns
/// the bytes that the element takes and makes; `None` if it is long, far, periodic or damaged.
#[inline(always)]
fn put_wide(output: &mut [u8], at: usize, window: &[u8; 1 + WIDE]) -> Option<(usize, usize)> {
    let [tag, ref literal @ ..] = *window;
    let short = usize::from(tag >> 2);
    if tag & 3 == 0 {
        *output.get_mut(at..)?.first_chunk_mut()? = *literal;
        return (short < 60).then_some((2 + short, 1 + short));
    }
    let low = usize::from(literal[0]);
    let (size, length, offset) = if tag & 3 == 1 {
        (2, 4 + (short & 7), usize::from(tag >> 5) << 8 | low)
    } else {
        (3, 1 + short, usize::from(literal[1]) << 8 | low)
    };
    if tag & 3 == 3 || length > offset {
        return None;
    }
    let from = *output.get(at.checked_sub(offset)?..)?.first_chunk::<WIDE>()?;
    *output.get_mut(at..)?.first_chunk_mut()? = from;
    Some((size, length))
}

/// The length of a literal whose tag has `short`, and what is behind the bytes that say it.
#[inline]
fn literal_length(short: usize, rest: &[u8]) -> Result<(usize, &[u8])> {
    if short < 60 {
        return Ok((short + 1, rest));
    }
    let (bytes, rest) = rest.split_at_checked(short - 59).ok_or(DAMAGED)?;
    let length = bytes.iter().rev().fold(0, |length, &byte| length << 8 | usize::from(byte));
    Ok((length.saturating_add(1), rest))
}

/// Puts at `at` the `length` bytes that begin `offset` before, some of which may be among those
/// that it puts there.
fn put_copy(output: &mut [u8], mut at: usize, length: usize, mut offset: usize) -> Result<()> {
    let from = at.checked_sub(offset).filter(|_| offset > 0).ok_or(DAMAGED)?;
    let end = at + length;
    if end > output.len() {
        return Err(DAMAGED);
    }
    while at < end {
        // As many bytes as there are from there on: the next piece can have twice as many.
        let piece = offset.min(end - at);
        output.copy_within(from..from + piece, at);
        (at, offset) = (at + piece, offset + piece);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;

    fn decode(compressed: &[u8], steps: &mut Random) -> Result<Vec<u8>> {
        let (length, elements) = split_header(compressed)?;
        let mut output = vec![1; length];
        let mut decoder = SnappyDecoder::new(elements, &mut output);
        let mut end = 0;
        while end < length && steps.below(10) > 0 {
            end += steps.below(300);
            decoder.up_to(end)?;
        }
        decoder.finish().map(|_| output)
    }

    /// Bytes of which some were there before, at distances of all kinds.
    fn repetitive(random: &mut Random) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..random.below(40) {
            let most = [8, 100, 5000][random.below(3)];
            let count = 1 + random.below(most);
            if bytes.is_empty() || random.below(2) == 0 {
                bytes.extend(random.bytes(count, 256));
            } else {
                let farthest = [8, 70, 70_000][random.below(3)];
                let offset = 1 + random.below(bytes.len().min(farthest));
                (0..count).for_each(|_| bytes.push(bytes[bytes.len() - offset]));
            }
        }
        bytes
    }

    #[test]
    fn streams_are_decoded_in_steps_as_the_library_does_at_once() {
        for seed in 1..=2000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let bytes = repetitive(&mut random);
            let compressed = snap::raw::Encoder::new().compress_vec(&bytes).expect("fits");
            assert_eq!(decode(&compressed, &mut random), Ok(bytes.clone()), "seed {seed}");

            let (length, elements) = split_header(&compressed).expect("sound");
            let mut output = vec![1; length];
            let mut decoder = SnappyDecoder::new(elements, &mut output);
            let end = random.below(length + 1);
            assert_eq!(decoder.up_to(end).map(|all| &all[..end]), Ok(&bytes[..end]));
            let decoded = decoder.decoded();
            assert!(decoded >= end, "seed {seed}");
            assert_eq!(output[..decoded], bytes[..decoded], "seed {seed}");
        }
    }

    /// Streams of no encoder, and damaged ones, are what the library says they are.
    #[test]
    fn streams_of_any_bytes_are_what_the_library_takes_them_for() {
        let (mut sound, mut refused) = (0, 0);
        for seed in 1..=200_000u64 {
            let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            let mut stream = if random.below(4) == 0 {
                snap::raw::Encoder::new().compress_vec(&repetitive(&mut random)).expect("fits")
            } else {
                elements(&mut random)
            };
            for _ in 0..random.below(3) {
                if !stream.is_empty() && random.below(3) == 0 {
                    let at = random.below(stream.len());
                    stream[at] = random.below(256) as u8;
                }
            }
            let expected = split_header(&stream).ok().and_then(|(length, _)| {
                let mut output = vec![0; length];
                let written = snap::raw::Decoder::new().decompress(&stream, &mut output).ok()?;
                Some(output[..written].to_vec())
            });
            sound += usize::from(expected.is_some());
            refused += usize::from(expected.is_none());
            assert_eq!(decode(&stream, &mut random).ok(), expected, "seed {seed}: {stream:?}");
        }
        assert!(sound > 10_000 && refused > 10_000, "{sound} sound, {refused} refused");
    }

    /// A stream of elements of every kind, most of them possible, and a length that is about
    /// theirs.
    fn elements(random: &mut Random) -> Vec<u8> {
        let (mut stream, mut made) = (Vec::new(), 0);
        for _ in 0..random.below(12) {
            let too_far = random.below(2);
            let offset = 1 + random.below(made.max(1) + too_far);
            match random.below(4) {
                0 => {
                    let (count, bytes) = (1 + random.below(100), random.below(4));
                    let length = (count - 1).to_le_bytes();
                    if bytes == 0 && count <= 60 {
                        stream.push(((count - 1) << 2) as u8);
                    } else {
                        stream.push(((60 + bytes) << 2) as u8);
                        stream.extend_from_slice(&length[..=bytes]);
                    }
                    stream.extend(random.bytes(count, 256));
                    made += count;
                }
                1 => {
                    let count = random.below(8);
                    stream.push(((offset >> 8 & 7) << 5 | count << 2 | 1) as u8);
                    stream.push(offset as u8);
                    made += count + 4;
                }
                kind => {
                    let count = random.below(64);
                    stream.push((count << 2 | kind) as u8);
                    stream.extend_from_slice(&offset.to_le_bytes()[..2 * (kind - 1)]);
                    made += count + 1;
                }
            }
        }
        let mut all = Vec::new();
        let off_by = random.below(20).saturating_sub(18);
        crate::base::coding::put_varint32(&mut all, (made + off_by) as u32);
        all.extend(stream);
        all
    }
}
