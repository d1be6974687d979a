//! Any connection string is resolved or refused, and a login accepts or refuses any response of a server.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{ConnectParams, Given, Handshake, Transport};

fuzz_target!(|data: (&str, &str, u8, &[u8])| {
    let (conninfo, variable, piece, bytes) = data;
    let mut given = Given::default();
    given.set("dbname", conninfo);
    // No file is read: there is neither a home directory nor a service file.
    let environment = |name: &str| match name {
        "PGOPTIONS" | "PGHOST" | "PGPORT" | "PGSSLMODE" | "PGTARGETSESSIONATTRS" => Some(variable.to_owned()),
        _ => None,
    };
    if !conninfo.contains("service") && !conninfo.contains("ssl") && !conninfo.contains("passfile") {
        let _ = ConnectParams::resolve(&given, &environment);
    }
    let params = ConnectParams::new("/tmp", 5432, "me", "bench", Some("secret".to_owned()));
    let mut out = Vec::new();
    let Ok(mut handshake) = Handshake::start(&params, 0, Transport::Unix, None, &mut out) else { return };
    for piece in bytes.chunks(usize::from(piece).max(1)) {
        out.clear();
        match handshake.feed(piece, &mut out) {
            Ok((taken, established)) => {
                assert!(taken <= piece.len());
                if established.is_some() {
                    return;
                }
            }
            Err(_) => return,
        }
    }
});
