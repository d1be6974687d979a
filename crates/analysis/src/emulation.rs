//! What is to be known of figures of emulated kernels, wherever they are shown.

use model::machine::Acceleration;

/// Why there is no verdict on cells that were emulated in real time.
pub(crate) const NO_VERDICT: &str = "emulated in real time: no verdict";

/// What figures are where they were emulated in real time.
const REAL_TIME: &str =
    "acceleration tcg: emulated in real time: no verdict, as the figures depend on the emulating machine";

/// What figures are where instructions were counted.
const PATH_LENGTH: &str = "acceleration icount: time is virtual, and TPS is path length: one instruction takes one nanosecond; \
                           there are no caches and no real I/O, and a change of 1% matters";

/// What is to be known of figures that came by these.
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
