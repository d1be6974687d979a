//! Progress on standard error: a bar on a terminal, plain lines elsewhere.

mod bisection;
mod campaign;
mod load;
mod preparation;
mod session;

pub(crate) use campaign::CampaignProgress;
pub(crate) use load::LoadProgress;
pub(crate) use preparation::PreparationProgress;
