//! Notes on figures of emulated kernels, for all outputs that show them.

use model::machine::Acceleration;

/// Note on figures that were emulated in real time.
const REAL_TIME: &str =
    "acceleration tcg: emulated in real time: no verdict, as the figures depend on the emulating machine";

/// Note on figures with counted instructions.
const PATH_LENGTH: &str = "acceleration icount: time is virtual: one instruction takes one nanosecond; instructions per \
                           transaction are path length; there are no caches and no real I/O, and a change of 1% matters";

/// Notes on figures with these accelerations.
pub fn notes(accelerations: impl IntoIterator<Item = Acceleration>) -> Vec<&'static str> {
    let mut notes: Vec<&'static str> = Vec::new();
    for acceleration in accelerations {
        let note = match acceleration {
            Acceleration::None | Acceleration::Kvm => continue,
            Acceleration::Tcg => REAL_TIME,
            Acceleration::Icount => PATH_LENGTH,
        };
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
    notes
}
