//! Fixed and variable length integers, and length-prefixed bytes, as LevelDB writes them.
//!
//! Decoders take a cursor (`&mut &[u8]`), advance it past what they read, and return `None` on
//! bytes that do not decode; the caller knows the file and turns that into a corruption with a
//! name.

/// The longest encoding of a `u32`.
pub(crate) const MAX_VARINT32: usize = 5;

pub(crate) fn put_u32(dst: &mut Vec<u8>, value: u32) {
    dst.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_u64(dst: &mut Vec<u8>, value: u64) {
    dst.extend_from_slice(&value.to_le_bytes());
}

pub(crate) fn put_varint32(dst: &mut Vec<u8>, value: u32) {
    put_varint64(dst, u64::from(value));
}

pub(crate) fn put_varint64(dst: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        dst.push(value as u8 | 0x80);
        value >>= 7;
    }
    dst.push(value as u8);
}

/// Appends the length of `bytes` and `bytes`. The caller has checked that the length fits in 32
/// bits.
pub(crate) fn put_length_prefixed(dst: &mut Vec<u8>, bytes: &[u8]) {
    debug_assert!(u32::try_from(bytes.len()).is_ok());
    put_varint64(dst, bytes.len() as u64);
    dst.extend_from_slice(bytes);
}

pub(crate) fn get_u64(src: &mut &[u8]) -> Option<u64> {
    let (head, rest) = src.split_first_chunk::<8>()?;
    *src = rest;
    Some(u64::from_le_bytes(*head))
}

#[inline]
pub(crate) fn get_varint32(src: &mut &[u8]) -> Option<u32> {
    if let Some((&byte, rest)) = src.split_first()
        && byte < 0x80
    {
        *src = rest;
        return Some(u32::from(byte));
    }
    get_varint(src, MAX_VARINT32).and_then(|value| u32::try_from(value).ok())
}

#[inline]
pub(crate) fn get_varint64(src: &mut &[u8]) -> Option<u64> {
    get_varint(src, 10)
}

fn get_varint(src: &mut &[u8], longest: usize) -> Option<u64> {
    let mut value = 0u64;
    for (index, &byte) in src.iter().take(longest).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if shift == 63 && bits > 1 {
            return None;
        }
        value |= bits << shift;
        if byte < 0x80 {
            *src = &src[index + 1..];
            return Some(value);
        }
    }
    None
}

#[inline]
pub(crate) fn get_length_prefixed<'a>(src: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = get_varint32(src)? as usize;
    let (head, rest) = src.split_at_checked(length)?;
    *src = rest;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip() {
        for shift in 0..64 {
            for value in [(1u64 << shift) - 1, 1 << shift, (1 << shift) + 1] {
                let mut bytes = Vec::new();
                put_varint64(&mut bytes, value);
                assert_eq!(get_varint64(&mut &bytes[..]), Some(value));
                let expected = u32::try_from(value).ok();
                assert_eq!(get_varint32(&mut &bytes[..]), expected);
                assert_eq!(get_varint64(&mut &bytes[..bytes.len() - 1]), None);
            }
        }
    }

    #[test]
    fn overlong_varints_are_refused() {
        assert_eq!(get_varint32(&mut &[0x80, 0x80, 0x80, 0x80, 0x80, 0x01][..]), None);
        assert_eq!(get_varint32(&mut &[0xff, 0xff, 0xff, 0xff, 0x7f][..]), None);
        assert_eq!(get_varint64(&mut &[0xff; 11][..]), None);
        let mut too_wide = [0xff; 10];
        too_wide[9] = 0x02;
        assert_eq!(get_varint64(&mut &too_wide[..]), None);
    }

    #[test]
    fn length_prefixes_are_bounded_by_the_input() {
        let mut bytes = Vec::new();
        put_length_prefixed(&mut bytes, b"key");
        put_length_prefixed(&mut bytes, b"");
        let mut cursor = &bytes[..];
        assert_eq!(get_length_prefixed(&mut cursor), Some(&b"key"[..]));
        assert_eq!(get_length_prefixed(&mut cursor), Some(&b""[..]));
        assert_eq!(get_length_prefixed(&mut cursor), None);
        assert_eq!(get_length_prefixed(&mut &[5, b'a'][..]), None);
    }
}
