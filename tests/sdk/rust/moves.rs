//! A session that moves to another node while it is used. GPUREST_URL names the first node, OTHER_NODE the second, GPUREST_CLI what moves it.

use std::process::Command;

use gpurest::{Client, SessionOptions};

const SOURCE: &str = "extern \"C\" __global__ void add(int *x) { atomicAdd(x, 1); }";

#[test]
fn a_session_goes_on_at_the_other_node() {
    let client = Client::open().expect("GPUREST_URL names a service");
    let other = std::env::var("OTHER_NODE").expect("OTHER_NODE names another one");
    let session = client
        .session_with(&SessionOptions::new().name("rust-moves"))
        .unwrap();
    let (module, x) = (
        session.compile(SOURCE).unwrap(),
        session.alloc_from(&[1]).unwrap(),
    );
    let add = module.kernel("add").unwrap();
    add.launch(1, 1, &[&x]).unwrap();

    let moved = Command::new(std::env::var("GPUREST_CLI").expect("GPUREST_CLI names the tool"))
        .args(["session", "move", "rust-moves", &other])
        .output()
        .unwrap();
    assert!(moved.status.success(), "{moved:?}");

    add.launch(1, 1, &[&x]).unwrap();
    assert_eq!(x.to_vec().unwrap(), [3]);
    assert_eq!(session.id(), "rust-moves");
    let there = Client::connect(&other).unwrap();
    let listed = there.request("GET", "/v1/sessions", None).unwrap();
    assert!(listed.contains("rust-moves"), "{listed}");
    drop(module);
    drop(x);
    drop(session);
    let listed = there.request("GET", "/v1/sessions", None).unwrap();
    assert!(!listed.contains("rust-moves"), "{listed}");
}
