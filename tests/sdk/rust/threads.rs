//! Objects that threads share, against the service that GPUREST_URL names.

use std::thread;

use gpurest::{Batch, Buffer, Client, ErrorKind, Kernel, Launched, Module, Session, Stream};

const THREADS: i32 = 4;
const ROUNDS: i32 = 20;

#[test]
fn what_the_c_header_calls_thread_safe_is() {
    fn shared<T: Send + Sync>() {}
    shared::<Client>();
    shared::<Session<'_>>();
    shared::<Buffer<'_, f32>>();
    shared::<Module<'_>>();
    shared::<Kernel<'_>>();
    shared::<Stream<'_>>();
    shared::<Launched>();
    shared::<gpurest::Error>();
}

/// Each thread has batches of its own on the session that all share.
#[test]
fn threads_share_a_session() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let session = client.session().unwrap();
    let module = session
        .compile("extern \"C\" __global__ void add(int *x, int by) { atomicAdd(x, by); }")
        .unwrap();
    let (add, total) = (
        module.kernel("add").unwrap(),
        session.alloc_from(&[0]).unwrap(),
    );
    thread::scope(|scope| {
        for id in 1..=THREADS {
            let (session, total) = (&session, &total);
            scope.spawn(move || {
                let own = session.alloc::<i32>(1).unwrap();
                for round in 0..ROUNDS {
                    let (input, mut output) = ([round], [0]);
                    let mut batch: Batch<'_> = session.batch();
                    batch.write(&own, 0, &input).unwrap();
                    batch.launch(&add, 1, 1, &[&own, &id]).unwrap();
                    batch.launch(&add, 1, 1, &[total, &id]).unwrap();
                    batch.read(&own, 0, &mut output).unwrap();
                    batch.submit().unwrap();
                    assert_eq!(output, [round + id]);
                }
            });
        }
    });
    assert_eq!(
        total.to_vec().unwrap(),
        [ROUNDS * THREADS * (THREADS + 1) / 2]
    );
}

#[test]
fn an_error_belongs_to_the_call_that_failed() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let session = client.session().unwrap();
    let buffer = session.alloc_from(&[1u8; 8]).unwrap();
    thread::scope(|scope| {
        for id in 0..THREADS {
            let (session, buffer) = (&session, &buffer);
            scope.spawn(move || {
                for _ in 0..ROUNDS {
                    if id % 2 == 0 {
                        assert_eq!(
                            buffer.read(8, &mut [0]).unwrap_err().kind(),
                            ErrorKind::InvalidArgument
                        );
                    } else {
                        assert_eq!(
                            session.builtin("nothing", "f32", None).unwrap_err().kind(),
                            ErrorKind::NotFound
                        );
                    }
                }
            });
        }
    });
}

/// A buffer may be freed by another thread than the one that made it.
#[test]
fn objects_move_between_threads() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let session = client.session().unwrap();
    let before = session.memory_info().unwrap().allocated_bytes;
    let buffer = session.alloc_from(&[1u8; 4096]).unwrap();
    thread::scope(|scope| {
        scope.spawn(move || {
            buffer.fill(2).unwrap();
            buffer.free().unwrap();
        });
    });
    assert_eq!(session.memory_info().unwrap().allocated_bytes, before);
}
