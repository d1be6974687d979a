//! Pure statistics over samples: no I/O, no randomness that is not seeded, every method with its source.
//!
//! A sample is usually the throughput of the runs of one cell: the run is the replicate.

mod sample;

pub use sample::Sample;
