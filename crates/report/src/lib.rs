//! Output for people and programs: text for a terminal, Markdown, CSV and JSON, the page as one file, the live server,
//! and tables and metrics for other programs. Its values are those of the crate `analysis`.

pub mod ab;
mod answers;
mod background;
pub mod bisect;
pub mod bundles;
mod cache_paths;
mod chart;
mod ci;
pub mod compare;
pub mod datasets;
pub mod doctor;
pub mod explain;
pub mod export_files;
pub mod export_tables;
mod file;
pub mod fleet;
pub mod history;
mod html;
pub mod imports;
mod json;
pub mod kernels;
pub mod monitoring;
pub mod noise;
mod own_figures;
mod paired;
mod phases;
pub mod plan;
pub mod power;
pub mod profile;
pub mod publish;
pub mod replay;
mod scalability;
#[cfg(test)]
mod schemas;
mod scripts;
pub mod serve;
pub mod servers;
pub mod show;
mod spans;
mod tables;
mod text_width;
mod timeline;

pub use chart::Terminal;
pub use ci::Undecided;
pub use file::{FileError, MAX_DETAIL_BYTES, ReportFile, file};
pub use html::html;
pub use json::{json, json_pretty};
pub use spans::gantt;
pub use tables::tables;
pub use text_width::one_line;
pub use timeline::timeline;
