//! A reader accepts or refuses any bytes from a server, with the same result however they are split into pieces.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::{Event, ProtocolError, Reader};

/// Events that a reader returns for some pieces, and its error.
fn read<'a>(mode: u8, pieces: impl Iterator<Item = &'a [u8]>) -> (Vec<Event>, Option<ProtocolError>) {
    let mut reader = Reader::default();
    reader.pipeline(mode & 1 != 0);
    reader.collect(mode & 2 != 0);
    if mode & 4 != 0 {
        reader.collect_all_rows(true);
    }
    reader.keep_notices(mode & 8 != 0);
    let mut events = Vec::new();
    for mut piece in pieces {
        while !piece.is_empty() {
            match reader.next(piece) {
                Ok((taken, event)) => {
                    assert!(taken <= piece.len() && (event.is_some() || taken == piece.len()));
                    piece = &piece[taken..];
                    for result in reader.results() {
                        let _ = result.columns().count();
                        let _ = result.last_row().map(|row| row.count());
                    }
                    if matches!(event, Some(Event::Ready(_))) {
                        reader.clear();
                    }
                    while reader.take_notice().is_some() {}
                    if let Some(error) = reader.take_error() {
                        let _ = error.libpq_text(Some("select 1"));
                    }
                    events.extend(event);
                }
                Err(error) => return (events, Some(error)),
            }
        }
    }
    (events, None)
}

fuzz_target!(|data: (u8, u8, &[u8])| {
    let (mode, piece, bytes) = data;
    let whole = read(mode, std::iter::once(bytes));
    let pieces = read(mode, bytes.chunks(usize::from(piece).max(1)));
    assert_eq!(whole, pieces);
});
