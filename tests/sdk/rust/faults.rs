//! Faults, deadlines and resets, against the service that GPUREST_URL names.

use std::time::Duration;

use gpurest::{Client, ErrorKind, Shape};

const SOURCE: &str = "extern \"C\" __global__ void put(int *x, int value) { *x = value; }
extern \"C\" __global__ void endless(volatile int *x) { while (*x == 0) {} }";

#[test]
fn a_fault_costs_one_session_its_contents_and_no_other() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let (session, neighbour) = (client.session().unwrap(), client.session().unwrap());
    let theirs = neighbour.alloc_from(&[5]).unwrap();
    let (module, x) = (
        session.compile(SOURCE).unwrap(),
        session.alloc_from(&[1]).unwrap(),
    );
    let put = module.kernel("put").unwrap();
    let why = put.launch(1, 1, &[&8u64, &1]).unwrap_err();
    assert_eq!(
        (why.kind(), why.code(), why.is_fatal_for_session()),
        (ErrorKind::Cuda, "kernel_fault", true)
    );
    assert_eq!(
        put.launch(1, 1, &[&x, &1]).unwrap_err().kind(),
        ErrorKind::SessionLost
    );
    assert_eq!(x.to_vec().unwrap_err().kind(), ErrorKind::SessionLost);
    assert_eq!(theirs.to_vec().unwrap(), [5]);

    session.reset().unwrap();
    assert_eq!(x.to_vec().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(x.free().unwrap_err().kind(), ErrorKind::InvalidArgument);
    let y = session.alloc_from(&[0]).unwrap();
    assert!(put.launch(1, 1, &[&y, &1]).is_err());
    let again = session.compile(SOURCE).unwrap();
    again
        .kernel("put")
        .unwrap()
        .launch(1, 1, &[&y, &7])
        .unwrap();
    assert_eq!(y.to_vec().unwrap(), [7]);
}

#[test]
fn a_kernel_past_its_deadline_is_stopped() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let session = client.session().unwrap();
    let module = session.compile(SOURCE).unwrap();
    let x = session.alloc_from(&[0]).unwrap();
    let shape = Shape::new(1, 1).timeout(Duration::from_millis(200));
    let why = module
        .kernel("endless")
        .unwrap()
        .launch_with(&shape, &[&x])
        .unwrap_err();
    assert_eq!(
        (why.kind(), why.is_fatal_for_session()),
        (ErrorKind::Timeout, true)
    );
    session.reset().unwrap();
    assert_eq!(session.alloc_from(&[3]).unwrap().to_vec().unwrap(), [3]);
}
