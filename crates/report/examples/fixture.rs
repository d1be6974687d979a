//! Writes the tests' view to the directory where the page's own tests expect it:
//! `cargo run -p report --example fixture -- web/test-results`.
//!
//! `report.html` is the report, `scans.html` one on scans, `kernels.html` one with many columns, two scales and a history, `emulated.html` one on
//! kernels in virtual machines;
//! `view.ts`, `scans.ts`, `kernels.ts`, `emulated.ts` and `histories.ts` are the same data and `details.ts` trials in
//! detail: the type checker compares all of them with `web/src/data/`.

#[path = "../../analysis/tests/fixture/bundles.rs"]
mod bundles;
#[path = "../../analysis/tests/fixture/mod.rs"]
mod fixture;

use std::path::{Path, PathBuf};
use std::{env, fs};

use analysis::history::{HistoryAxis, Request, history};
use analysis::metric::Metric;
use analysis::overview::{read, view::View};
use analysis::select::{RunSelection, Selector};
use analysis::trial::{Detail, Points, detail};
use bundles::{Bundles, cell, record};
use model::environment::{KernelConfig, KernelFacts};
use model::record::Log;
use report::history::Document;
use report::{html, json, json_pretty};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env::args_os().nth(1).unwrap_or_else(|| "web/test-results".into()));
    fs::create_dir_all(&folder)?;
    let whole: Vec<Detail> =
        fixture::detailed::trials().iter().map(|record| detail(record, Points::All)).collect();
    for (page, name, view, details) in
        [("report", "view", fixture::view(), &whole[..]), ("scans", "scans", fixture::scans(), &[])]
    {
        fs::write(folder.join(page).with_extension("html"), html(&view, &[], details)?)?;
        fs::write(folder.join(name).with_extension("ts"), typed(name, &view))?;
    }
    kernels(&folder)?;
    let emulated = read(&bundles::virtual_machines().store, &RunSelection::Latest)?;
    fs::write(folder.join("emulated.html"), html(&emulated, &[], &[])?)?;
    fs::write(folder.join("emulated.ts"), typed("emulated", &emulated))?;
    let thinned = fixture::detailed::trials().into_iter().map(|record| detail(&record, Points::AtMost(20)));
    let all: Vec<String> = whole.iter().cloned().chain(thinned).map(|detail| json(&detail)).collect();
    let typed = format!(
        "import type {{ Detail }} from '../src/data/generated/detail';\n\n/** Complete, then downsampled. */\n\
         export const details: Detail[] = [{}];\n",
        all.join(",\n")
    );
    Ok(fs::write(folder.join("details.ts"), typed)?)
}

fn typed(name: &str, view: &View) -> String {
    let json = json_pretty(view);
    format!(
        "import type {{ View }} from '../src/data/generated/view';\n\nexport const {name}: View = {json};\n"
    )
}

/// The kernels of 2016 at two scales and two numbers of clients, on a machine of 16 GiB.
fn kernels(folder: &Path) -> Result<(), Failure> {
    let mut bundles = Bundles::new();
    for line in include_str!("../../stats/tests/data/kernels-2016-read-only.csv").lines().skip(1) {
        let [kernel, scale @ ("30" | "1500"), _, _, clients @ ("4" | "16"), tps] =
            line.split(',').collect::<Vec<_>>()[..]
        else {
            continue;
        };
        let mut cell = cell("9.5", clients.parse()?);
        cell.scale = scale.parse()?;
        cell.kernel = Some(kernel.to_owned());
        let mut record = record(cell, tps.parse()?);
        record.trial.database_bytes =
            record.trial.cell.scale.known().map(|scale| u64::from(*scale) * 15_500_000);
        record.environment.memory_bytes = Some(16 << 30);
        record.environment.kernel = Some(format!("Linux {kernel}"));
        let command_line = format!("BOOT_IMAGE=/boot/vmlinuz-{kernel} root=/dev/sda1 ro quiet");
        record.environment.kernel_command_line = Some(command_line);
        // As if configured alike except for the age of their machines.
        let (hz, module) = if kernel.starts_with('2') { (1000, "ata_piix") } else { (250, "ahci") };
        record.environment.kernel_facts = KernelFacts {
            config: Some(KernelConfig {
                source: format!("/boot/config-{kernel}"),
                sha256: format!("{hz:0>64}"),
            }),
            modules: Some(["ext4", module].map(|name| (name.to_owned(), String::new())).into()),
            tainted: Some(0),
            scheduler: Some("CFS".to_owned()),
            preemption: Some("voluntary".to_owned()),
            hz: Some(hz),
        };
        let config =
            format!("CONFIG_HZ={hz}\nCONFIG_EXT4_FS=m\nCONFIG_IDE={}\n", if hz == 250 { "n" } else { "y" });
        record.logs = vec![Log { name: "kernel-config".to_owned(), text: config }];
        bundles.write(record);
    }
    let view = read(&bundles.store, &RunSelection::Latest)?;
    let request = Request {
        metric: Metric::Tps,
        over: HistoryAxis::Kernel,
        selector: Selector::default(),
        control: None,
        without: Vec::new(),
        gates: Vec::new(),
        newest: None,
        repository: None,
    };
    let histories = [Document::new(&history(&bundles.store, &request)?)];
    fs::write(folder.join("kernels.html"), html(&view, &histories, &[])?)?;
    fs::write(folder.join("kernels.ts"), typed("kernels", &view))?;
    let histories = format!(
        "import type {{ History }} from '../src/data/generated/history';\n\nexport const histories: History[] = {};\n",
        serde_json::to_string_pretty(&histories)?
    );
    Ok(fs::write(folder.join("histories.ts"), histories)?)
}
