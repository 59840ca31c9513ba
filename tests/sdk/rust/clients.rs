//! Clients, sessions and what is released, against the service that GPUREST_URL names.

use std::time::Duration;

use gpurest::{Client, ErrorKind, Options, SessionOptions};

fn client() -> Client {
    Client::open().expect("GPUREST_URL names a service")
}

#[test]
fn a_client_knows_its_service() {
    let client = client();
    assert!(client.server_version().contains("\"server\""));
    let devices = client.devices().unwrap();
    let first = devices.first().expect("there is a device");
    assert_eq!(first.id, format!("{}:0", first.backend));
    assert!(
        first.memory_total_bytes >= first.memory_free_bytes
            && first.warp_size > 0
            && first.max_threads_per_block >= 1
    );
    assert!(client
        .request("GET", "/v1/limits", None)
        .unwrap()
        .starts_with('{'));
    assert_eq!(gpurest::library_version(), env!("CARGO_PKG_VERSION"));
}

#[test]
fn an_unreachable_service_is_named() {
    let why = Options::new()
        .url("http://127.0.0.1:1")
        .max_retries(0)
        .open()
        .unwrap_err();
    assert_eq!(
        (why.kind(), why.http_status(), why.code()),
        (ErrorKind::Connect, None, "")
    );
    assert!(
        why.to_string().contains("127.0.0.1:1") && why.to_string().ends_with(why.hint()),
        "{}",
        why
    );
    assert!(!why.is_fatal_for_session());
    assert_eq!(
        Client::connect("ftp://127.0.0.1").unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn wrong_options_are_refused_without_a_panic() {
    let wrong = [
        Options::new().url("http://127.0.0.1\0"),
        Options::new().token("a\0b"),
        Options::new().connect_timeout(Duration::ZERO),
        Options::new().idle_timeout(Duration::from_secs(u64::MAX)),
        Options::new().max_retries(u32::MAX),
        Options::new().max_connections(0),
        Options::new().bulk_connections(17),
    ];
    for options in wrong {
        assert_eq!(
            options.open().unwrap_err().kind(),
            ErrorKind::InvalidArgument,
            "{:?}",
            options
        );
    }
    let why = Options::new()
        .token_file("/nowhere/token")
        .open()
        .unwrap_err();
    assert_eq!(why.kind(), ErrorKind::Unauthorized);
    assert!(why.message().contains("/nowhere/token"), "{}", why);
    assert!(!format!("{:?}", Options::new().token("secret")).contains("secret"));
}

#[test]
fn the_library_takes_all_options() {
    let url = std::env::var("GPUREST_URL").unwrap();
    let options = Options::new()
        .url(url)
        .token("")
        .connect_timeout(Duration::from_secs(60))
        .idle_timeout(Duration::from_secs(120));
    let client = options
        .max_retries(3)
        .max_connections(2)
        .bulk_connections(2)
        .use_libcurl(true)
        .open()
        .unwrap();
    assert_eq!(
        client
            .session()
            .unwrap()
            .alloc_from(&[7u8])
            .unwrap()
            .to_vec()
            .unwrap(),
        [7]
    );
}

#[test]
fn a_refusal_of_the_service_has_all_its_parts() {
    let client = client();
    let why = client
        .request(
            "PUT",
            "/v1/sessions/rust-refused",
            Some("{\"memory_limit\": 1.5}"),
        )
        .unwrap_err();
    assert_eq!(
        (why.kind(), why.http_status(), why.code()),
        (ErrorKind::InvalidArgument, Some(400), "invalid_field")
    );
    assert_eq!(why.pointer(), "/memory_limit");
    assert!(!why.message().is_empty() && !why.request_id().is_empty() && !why.is_retryable());
    assert_eq!(
        client
            .request("GET", "/v1/sessions/nobody", None)
            .unwrap_err()
            .kind(),
        ErrorKind::SessionLost
    );
    assert_eq!(
        client.request("GET\0", "/", None).unwrap_err().kind(),
        ErrorKind::InvalidArgument
    );
}

#[test]
fn dropping_releases_at_the_service() {
    let client = client();
    let path;
    {
        let session = client.session().unwrap();
        path = format!("/v1/sessions/{}", session.id());
        let count = |what: &str, field: &str| {
            client
                .request("GET", &format!("{path}/{what}"), None)
                .unwrap()
                .matches(field)
                .count()
        };
        let buffer = session.alloc::<u64>(100).unwrap();
        let module = session
            .compile("extern \"C\" __global__ void nothing() {}")
            .unwrap();
        assert_eq!(
            (
                count("buffers", "\"size\""),
                count("modules", "\"compile_ms\"")
            ),
            (1, 1)
        );
        buffer.free().unwrap();
        drop(session.alloc_from(&[1u8]).unwrap());
        drop(module);
        assert_eq!(
            (
                count("buffers", "\"size\""),
                count("modules", "\"compile_ms\"")
            ),
            (0, 0)
        );
    }
    assert_eq!(
        client.request("GET", &path, None).unwrap_err().code(),
        "session_not_found"
    );
}

#[test]
fn a_session_that_is_kept_is_joined_by_its_name() {
    let client = client();
    let options = SessionOptions::new()
        .name("rust-kept")
        .idle_timeout(Duration::from_secs(60))
        .fault_domain("train")
        .fault_domain_optional(true)
        .memory_limit(1 << 20);
    {
        let kept = client.session_with(&options.clone().keep(true)).unwrap();
        assert_eq!(kept.memory_info().unwrap().limit_bytes, Some(1 << 20));
        let why = kept.alloc::<u8>(2 << 20).unwrap_err();
        assert!(
            matches!(why.kind(), ErrorKind::Limit | ErrorKind::OutOfDeviceMemory),
            "{:?}",
            why
        );
    }
    let path = "/v1/sessions/rust-kept";
    let info = client.request("GET", path, None).unwrap();
    assert!(info.contains("\"fault_domain\":{\"name\":\"train\""), "{}", info);
    let other = client
        .session_with(&options.clone().memory_limit(2 << 20))
        .unwrap_err();
    assert_eq!(other.code(), "spec_conflict");
    drop(client.session_with(&options).unwrap());
    assert_eq!(
        client.request("GET", path, None).unwrap_err().code(),
        "session_not_found"
    );
}

#[test]
fn wrong_session_options_are_refused() {
    let client = client();
    let wrong = [
        SessionOptions::new().name("Not A Name"),
        SessionOptions::new().name("a\0"),
        SessionOptions::new().idle_timeout(Duration::from_millis(1)),
        SessionOptions::new().lease(Duration::from_millis(1)),
        SessionOptions::new().idle_timeout(Duration::from_secs(1 << 32)),
    ];
    for options in wrong {
        assert_eq!(
            client.session_with(&options).unwrap_err().kind(),
            ErrorKind::InvalidArgument,
            "{:?}",
            options
        );
    }
    assert_eq!(
        client
            .session_with(&SessionOptions::new().device("cpu:99"))
            .unwrap_err()
            .kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn memory_is_counted_and_trimmed() {
    let client = client();
    let session = client.session().unwrap();
    let buffer = session.alloc::<f64>(1 << 16).unwrap();
    let info = session.memory_info().unwrap();
    assert!(
        info.allocated_bytes >= 8 << 16 && info.peak_bytes >= info.allocated_bytes,
        "{:?}",
        info
    );
    drop(buffer);
    session.sync().unwrap();
    let after = session.memory_trim().unwrap();
    assert!(
        after.allocated_bytes < info.allocated_bytes && after.peak_bytes >= info.allocated_bytes,
        "{:?}",
        after
    );
    let anew = session.memory_reset_peak().unwrap();
    assert_eq!(anew.peak_bytes, anew.allocated_bytes);
}

#[test]
fn a_session_is_saved_to_a_file_and_made_again() {
    let client = client();
    let file = std::env::temp_dir().join(format!("gpurest-rust-{}.tar", std::process::id()));
    let session = client.session().unwrap();
    let buffer = session.alloc_from(&[1u32, 2, 3]).unwrap();
    assert_eq!(buffer.to_vec().unwrap(), [1, 2, 3]);
    session.save(&file).unwrap();
    let again = client.load_session(&file, &SessionOptions::new()).unwrap();
    assert_ne!(again.id(), session.id());
    let listed = client
        .request("GET", &format!("/v1/sessions/{}/buffers", again.id()), None)
        .unwrap();
    assert!(listed.contains("\"size\":12"), "{listed}");
    std::fs::write(&file, b"no snapshot").unwrap();
    let why = client
        .load_session(&file, &SessionOptions::new())
        .unwrap_err();
    assert_eq!(why.kind(), ErrorKind::InvalidArgument, "{why}");
    std::fs::remove_file(&file).unwrap();
}

#[test]
fn a_session_hibernates_until_it_is_used_or_woken() {
    let client = client();
    let session = client.session().unwrap();
    let buffer = session.alloc_from(&vec![7u8; 4 << 20]).unwrap();
    assert_eq!(session.info().unwrap().state, "ready");
    let asleep = session.hibernate().unwrap();
    assert_eq!(
        (asleep.state.as_str(), asleep.id),
        ("hibernated", session.id())
    );
    assert_eq!(session.info().unwrap().state, "hibernated");
    assert_eq!(buffer.to_vec().unwrap(), vec![7u8; 4 << 20]);
    assert_eq!(session.info().unwrap(), session.wake().unwrap());
}
