//! Batches, against the service that GPUREST_URL names.

use std::mem;
use std::time::Duration;

use gpurest::{Client, ErrorKind, Kernel, Session, Shape};

const ADD: &str = "extern \"C\" __global__ void add(int *x, int by) { x[threadIdx.x] += by; printf(\"+%d\", by); }";

fn with_add(test: impl FnOnce(&Session<'_>, Kernel<'_>)) {
    let client = Client::open().expect("GPUREST_URL names a service");
    let session = client.session().unwrap();
    let module = session.compile(ADD).unwrap();
    test(&session, module.kernel("add").unwrap());
}

#[test]
fn operations_are_done_in_order() {
    with_add(|session, add| {
        let (x, y) = (
            session.alloc::<i32>(4).unwrap(),
            session.alloc::<i32>(4).unwrap(),
        );
        let (input, mut first, mut second) = ([1, 2, 3, 4], [0; 4], [0; 2]);
        let (second_of_x, ten) = (x.at(1), 10);
        let mut batch = session.batch();
        assert!(batch.is_empty());
        batch.timeout(Duration::from_secs(60)).unwrap();
        batch.write(&x, 0, &input).unwrap();
        batch.launch(&add, 1, 1, &[&second_of_x, &ten]).unwrap();
        batch.fill(&y, 7).unwrap();
        batch.copy(&y, 1, &x, 1..3).unwrap();
        batch
            .launch_with(&add, &Shape::new(1, 4), &[&y, &1i32])
            .unwrap();
        batch.read(&x, 0, &mut first).unwrap();
        batch.read(&y, 1, &mut second).unwrap();
        assert_eq!(batch.len(), 7);
        let launched = batch.submit().unwrap();
        let printed: Vec<_> = launched.iter().map(|one| one.output()).collect();
        assert_eq!(
            (first, second, printed),
            (
                [1, 12, 3, 4],
                [13, 4],
                vec!["+10".to_owned(), "+1+1+1+1".to_owned()]
            )
        );
        assert_eq!(y.to_vec().unwrap(), [8, 13, 4, 8]);
    });
}

#[test]
fn the_service_may_store_it() {
    with_add(|session, add| {
        let x = session.alloc_from(&[1]).unwrap();
        let mut read = [0];
        let mut batch = session.batch();
        batch.launch(&add, 1, 1, &[&x, &5]).unwrap();
        batch.read(&x, 0, &mut read).unwrap();
        let launched = batch.submit_background().unwrap();
        assert_eq!(
            (read, launched.len(), launched[0].output()),
            ([6], 1, "+5".to_owned())
        );

        let mut batch = session.batch();
        batch.launch(&add, 1, 1, &[&8u64, &1]).unwrap(); // 8 is no address
        let why = batch.submit_background().unwrap_err();
        assert_eq!(
            (why.kind(), why.is_fatal_for_session()),
            (ErrorKind::Cuda, true)
        );
    });
}

#[test]
fn nothing_happens_before_it_is_submitted() {
    with_add(|session, add| {
        let x = session.alloc_from(&[0]).unwrap();
        let mut batch = session.batch();
        batch.launch(&add, 1, 1, &[&x, &1]).unwrap();
        add.launch(1, 1, &[&x, &10]).unwrap(); // at once, although there is a batch
        assert_eq!(x.to_vec().unwrap(), [10]);
        batch.submit().unwrap();
        assert_eq!(x.to_vec().unwrap(), [11]);

        let mut dropped = session.batch();
        dropped.fill(&x, 0).unwrap();
        drop(dropped);
        assert_eq!(x.to_vec().unwrap(), [11]);
        assert_eq!(session.batch().submit().unwrap().len(), 0);
    });
}

/// A leak on purpose, which test_crate.py does not run under valgrind.
#[test]
fn a_forgotten_batch_does_nothing() {
    with_add(|session, add| {
        let x = session.alloc_from(&[1]).unwrap();
        let mut forgotten = session.batch();
        forgotten.fill(&x, 0).unwrap();
        mem::forget(forgotten);
        add.launch(1, 1, &[&x, &1]).unwrap();
        assert_eq!(x.to_vec().unwrap(), [2]);
    });
}

#[test]
fn a_batch_that_is_refused_here_names_the_operation_and_does_nothing() {
    with_add(|session, add| {
        let x = session.alloc_from(&[5, 5]).unwrap();
        let mut read = [9; 3];
        let mut batch = session.batch();
        batch.fill(&x, 0).unwrap();
        batch.read(&x, 0, &mut read).unwrap();
        let why = batch.submit().unwrap_err();
        assert_eq!(why.kind(), ErrorKind::InvalidArgument);
        assert!(
            why.message().starts_with("operation 1 of the batch: "),
            "{}",
            why
        );

        let mut batch = session.batch();
        batch
            .launch_with(
                &add,
                &Shape::new(1, 1).timeout(Duration::from_secs(1)),
                &[&x, &1],
            )
            .unwrap();
        assert_eq!(batch.submit().unwrap_err().kind(), ErrorKind::Unsupported);
        let mut batch = session.batch();
        batch.launch(&add, 1, 1, &[&x]).unwrap();
        assert_eq!(
            batch.submit().unwrap_err().kind(),
            ErrorKind::InvalidArgument
        );

        let mut batch = session.batch();
        assert!(batch.launch(&add, 0, 1, &[&x, &1]).is_err());
        assert!(batch.write(&x, usize::MAX, &[1]).is_err());
        assert!(batch.timeout(Duration::ZERO).is_err());
        assert!(batch.is_empty());
        drop(batch);
        assert_eq!((x.to_vec().unwrap(), read), (vec![5, 5], [9; 3])); // and calls work at once again
    });
}

#[test]
fn a_batch_has_at_most_so_many_operations() {
    with_add(|session, _| {
        let x = session.alloc_from(&[1u8]).unwrap();
        let mut batch = session.batch();
        for _ in 0..5000 {
            batch.fill(&x, 2).unwrap();
        }
        assert_eq!(batch.submit().unwrap_err().kind(), ErrorKind::Limit);
        assert_eq!(x.to_vec().unwrap(), [1]);
    });
}

#[test]
fn a_batch_whose_kernel_faults_ends_the_session() {
    with_add(|session, add| {
        let x = session.alloc_from(&[1]).unwrap();
        let mut read = [9];
        let mut batch = session.batch();
        batch.launch(&add, 1, 1, &[&8u64, &1]).unwrap(); // 8 is no address
        batch.read(&x, 0, &mut read).unwrap();
        let why = batch.submit().unwrap_err();
        assert_eq!(why.kind(), ErrorKind::Cuda);
        assert!(why.is_fatal_for_session());
        assert_eq!(
            session.batch().submit().map(drop).unwrap_err().kind(),
            ErrorKind::SessionLost
        );
    });
}
