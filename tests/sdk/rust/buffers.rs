//! Buffers: typed transfers, copies and fills, against the service that GPUREST_URL names.

use std::fmt::Debug;

use gpurest::{Client, ErrorKind, Plain, Session};

fn with_session(test: impl FnOnce(&Session<'_>)) {
    let client = Client::open().expect("GPUREST_URL names a service");
    test(&client.session().unwrap());
}

/// Written in two ways, read in three.
fn comes_back<T: Plain + Debug + PartialEq>(session: &Session<'_>, values: &[T]) {
    let whole = session.alloc_from(values).unwrap();
    assert_eq!((whole.len(), whole.is_empty()), (values.len(), false));
    assert_eq!(whole.to_vec().unwrap(), values);
    let parts = session.alloc::<T>(values.len()).unwrap();
    let (head, tail) = values.split_at(1);
    parts.write(1, tail).unwrap();
    parts.write(0, head).unwrap();
    let mut read = vec![head[0]; tail.len()];
    parts.read(1, &mut read).unwrap();
    assert_eq!(read, tail);
    parts.read(values.len(), &mut []).unwrap();
}

#[test]
fn elements_of_every_type_come_back() {
    with_session(|session| {
        comes_back(session, &[i8::MIN, -1, i8::MAX]);
        comes_back(session, &[i16::MIN, -1, i16::MAX]);
        comes_back(session, &[i32::MIN, -1, i32::MAX]);
        comes_back(session, &[i64::MIN, -1, (1 << 53) + 1, i64::MAX]);
        comes_back(session, &[i128::MIN, -1, i128::MAX]);
        comes_back(session, &[0, u8::MAX]);
        comes_back(session, &[0, u16::MAX]);
        comes_back(session, &[0, u32::MAX]);
        comes_back(session, &[0, (1 << 53) + 1, u64::MAX]);
        comes_back(session, &[0, u128::MAX]);
        comes_back(session, &[f32::MIN_POSITIVE, -0.0, f32::INFINITY]);
        comes_back(session, &[f64::MIN_POSITIVE, f64::MAX, f64::NEG_INFINITY]);
        comes_back(session, &[[1.5f32, 2.5], [3.5, 4.5]]);
    });
}

#[test]
fn the_bits_of_a_nan_come_back() {
    with_session(|session| {
        let bits = [0x7ff8_0000_dead_beef, 0xfff0_0000_0000_0001u64];
        let values = bits.map(f64::from_bits);
        let back: Vec<u64> = session
            .alloc_from(&values)
            .unwrap()
            .to_vec()
            .unwrap()
            .into_iter()
            .map(f64::to_bits)
            .collect();
        assert_eq!(back, bits);
    });
}

#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Particle {
    place: [f32; 3],
    id: u32,
}
// SAFETY: 16 bytes of numbers, without padding.
unsafe impl Plain for Particle {}

#[test]
fn a_struct_of_numbers_may_be_an_element() {
    with_session(|session| {
        comes_back(
            session,
            &[
                Particle {
                    place: [1.0, 2.0, 3.0],
                    id: 4,
                },
                Particle {
                    place: [0.5; 3],
                    id: u32::MAX,
                },
            ],
        )
    });
}

#[test]
fn a_long_buffer_takes_several_connections() {
    with_session(|session| {
        let values: Vec<u64> = (0..(65u64 << 20) / 8)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15))
            .collect();
        let buffer = session.alloc_from(&values).unwrap();
        assert!(buffer.to_vec().unwrap() == values, "65 MiB come back");
    });
}

#[test]
fn what_does_not_fit_is_refused_and_changes_nothing() {
    with_session(|session| {
        let buffer = session.alloc_from(&[1u32, 2, 3]).unwrap();
        let mut read = [9u32; 2];
        let refused = [
            buffer.write(2, &[7, 7]),
            buffer.write(usize::MAX, &[7]),
            buffer.write(usize::MAX / 4, &[7]),
            buffer.read(2, &mut read),
            buffer.copy_from(2, &buffer, 0..2),
            buffer.copy_from(0, &buffer, 2..4),
            buffer.copy_from(0, &buffer, usize::MAX - 1..usize::MAX),
            #[allow(clippy::reversed_empty_ranges)]
            buffer.copy_from(0, &buffer, 2..1),
        ];
        for result in refused {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::InvalidArgument);
        }
        assert_eq!((buffer.to_vec().unwrap(), read), (vec![1, 2, 3], [9, 9]));
        assert_eq!(
            session.alloc::<u8>(0).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            session.alloc_from::<u8>(&[]).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(
            session.alloc::<u64>(usize::MAX / 4).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert!(session.alloc::<u8>(1 << 60).is_err());
    });
}

#[test]
fn ranges_are_copied_on_the_device() {
    with_session(|session| {
        let from = session.alloc_from(&[1u16, 2, 3, 4]).unwrap();
        let to = session.alloc_from(&[0u16; 5]).unwrap();
        to.copy_from(2, &from, 1..4).unwrap();
        to.copy_from(0, &from, 4..4).unwrap();
        assert_eq!(to.to_vec().unwrap(), [0, 0, 2, 3, 4]);
    });
}

#[test]
fn a_fill_repeats_a_value() {
    fn filled<T: Plain + Debug + PartialEq>(session: &Session<'_>, value: T, before: T) {
        let buffer = session.alloc_from(&[before; 5]).unwrap();
        buffer.fill(value).unwrap();
        assert_eq!(buffer.to_vec().unwrap(), [value; 5]);
    }
    with_session(|session| {
        filled(session, 0x81u8, 0);
        filled(session, -3i16, 0);
        filled(session, f32::MIN_POSITIVE, 0.0);
        filled(session, 0.0f64, 1.0);
        filled(session, u64::MAX, 1);
        filled(session, [1u16, 2], [0; 2]);
        filled(session, [7u8; 3], [0; 3]);
        filled(session, [2.5f32; 6], [0.0; 6]);
        let buffer = session.alloc_from(&[3.0f64]).unwrap();
        let why = buffer.fill(1.0).unwrap_err();
        assert_eq!(
            (why.kind(), buffer.to_vec().unwrap()),
            (ErrorKind::Unsupported, vec![3.0])
        );
        assert!(why.hint().contains("slice"));
    });
}

#[test]
fn a_buffer_of_another_session_is_refused() {
    with_session(|session| {
        let theirs = session.client().session().unwrap();
        let (mine, other) = (
            session.alloc_from(&[1u8]).unwrap(),
            theirs.alloc_from(&[2u8]).unwrap(),
        );
        assert_eq!(
            mine.copy_from(0, &other, 0..1).unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );
        assert_eq!(mine.to_vec().unwrap(), [1]);
    });
}
