//! The command that measures a trial's cell again: its run, continued with more repeats of that cell.

use model::factor::Factor;
use model::record::Trial;
use model::spec::{Campaign, Matrix};

use crate::layout::plan;

/// `pgdyno resume --run ID --set FACTOR=LEVEL … --set repeats=N` with each factor that the campaign varies, except the one
/// that it compares by: a side measured again alone would be compared with trials of another time. `None` if the trial was
/// imported, or the campaign can't be narrowed this way.
pub(super) fn rerun(trial: &Trial) -> Option<String> {
    if trial.imported.is_some() {
        return None;
    }
    let campaign = Campaign::parse(&trial.run.campaign_toml).ok()?;
    let plan = plan(&[trial])?;
    let matrices: Vec<&Matrix> = campaign.matrix.iter().map(|matrix| matrix.get_ref()).collect();
    // `--set` changes only the levels of factors in a matrix.
    if matrices.iter().any(|matrix| !matrix.include.is_empty() || !matrix.exclude.is_empty()) {
        return None;
    }
    let mut factors = Factor::varied(&plan.cells);
    // Zipped lists keep equal lengths.
    let zips =
        std::iter::once(&campaign.factors).chain(matrices.iter().copied()).flat_map(|matrix| &matrix.zip);
    for zipped in zips.flat_map(|zip| zip.get_ref()).filter_map(|name| name.get_ref().parse::<Factor>().ok())
    {
        if !factors.contains(&zipped) {
            factors.push(zipped);
        }
    }
    factors.retain(|factor| Some(*factor) != plan.run.compare);
    let mut settings = Vec::new();
    for factor in factors {
        let level = factor.known_level(&trial.cell).filter(|level| !level.contains(','))?;
        settings.push(format!("{}={level}", factor.name()));
        // A factor of only some matrices is fixed for the others too.
        let those_with = matrices.iter().filter(|matrix| matrix.has(factor)).count();
        if (1..matrices.len()).contains(&those_with) && !campaign.factors.has(factor) {
            let is_number = factor.is_number() && level.parse::<f64>().is_ok();
            let level = if is_number { level } else { format!("{level:?}") };
            settings.push(format!("factors.{}=[{level}]", factor.name()));
        }
    }
    let common = &campaign.factors;
    for (name, is_empty) in [("include", common.include.is_empty()), ("exclude", common.exclude.is_empty())] {
        if !is_empty {
            settings.push(format!("factors.{name}=[]"));
        }
    }
    settings.push(format!("repeats={}", 2 * plan.run.repeats.max));
    let mut command = format!("pgdyno resume --run {}", trial.run.id);
    for setting in settings {
        command += &format!(" --set {}", quoted(&setting));
    }
    Some(command)
}

/// Quotes a word for a shell, if necessary.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_./:=,+-@%".contains(c);
    match word.chars().all(is_plain) && !word.starts_with('-') {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
