use super::*;
use crate::profile::Unwinding;

const VALID: &str = "name = 'n'\n[factors]\nserver = ['13', '18']\nworkload = ['select-only', 'tpcb-like']\n\
                    clients = [1, 2, 4]\n[run]\nseed = 7\nrepeats = 3\n";

fn plan(text: &str) -> Result<Plan, SpecError> {
    Plan::new(&Campaign::parse(text).unwrap(), 1)
}

/// Message, marked text and help for a campaign that parses but can't be planned.
fn rejection(from: &str, to: &str) -> (String, String, String) {
    let text = VALID.replace(from, to);
    assert_ne!(text, VALID);
    let error = plan(&text).unwrap_err();
    (error.message, text[error.at.unwrap()].to_owned(), error.help.unwrap())
}

#[test]
fn cells_are_the_product_and_trials_their_repeats() {
    let plan = plan(VALID).unwrap();
    assert_eq!(plan.cells.len(), 2 * 2 * 3);
    assert_eq!(plan.trials.len(), 2 * 2 * 3 * 3);
    assert_eq!(plan.servers.iter().map(|server| &server.name).collect::<Vec<_>>(), ["13", "18"]);
    assert_eq!(plan.cells[0].to_string(), "13 default select-only scale 1 clients 1 prepared unix 10s");
}

#[test]
fn every_block_contains_every_cell_once_and_blocks_differ() {
    let plan = plan(VALID).unwrap();
    let blocks: Vec<Vec<usize>> =
        plan.trials.chunks(12).map(|b| b.iter().map(|t| t.cell).collect()).collect();
    for block in &blocks {
        let mut sorted = block.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..12).collect::<Vec<_>>());
    }
    assert_ne!(blocks[0], blocks[1]);
}

#[test]
fn threads_follow_from_clients_and_cpus() {
    let threads = |text: &str, processors| {
        let basis = Basis { seed: 1, processors };
        let campaign = Campaign::parse(text).unwrap();
        let plan = Plan::with_workloads(&campaign, basis, &Workloads::default()).unwrap();
        assert_eq!(plan.run.basis(), Basis { seed: 7, processors });
        plan.cells.iter().map(|cell| cell.driver_threads(processors.unwrap_or(1))).collect::<Vec<_>>()
    };
    let text = "name = 'n'\n[factors]\nserver = ['18']\nworkload = ['select-only']\n\
                clients = [1, 3, 4, 16, 64]\n[run]\nseed = 7\n";
    assert_eq!(threads(text, None), [1, 1, 1, 1, 1], "runs of releases that did not record the CPUs");
    assert_eq!(threads(text, Some(1)), [1, 1, 1, 1, 1]);
    assert_eq!(threads(text, Some(2)), [1, 3, 4, 2, 2]);
    assert_eq!(threads(text, Some(16)), [1, 3, 4, 16, 16]);
    assert_eq!(
        threads(&format!("{text}threads = 3\n"), Some(16)),
        [1, 3, 3, 3, 3],
        "never more than clients"
    );
    let pinned = text.replace("clients", "pin = ['p']\nclients") + "[pins.p]\ndriver = '0,4-5'\n";
    assert_eq!(threads(&pinned, Some(16)), [1, 3, 4, 3, 3]);
}

#[test]
fn a_seed_determines_the_order() {
    let first: Vec<usize> = plan(VALID).unwrap().trials[..12].iter().map(|t| t.cell).collect();
    assert_eq!(first, [8, 7, 11, 10, 6, 2, 1, 3, 5, 9, 0, 4]);
}

#[test]
fn sequential_order_repeats_each_cell_in_turn() {
    let plan = plan(&VALID.replace("seed = 7", "order = 'sequential'")).unwrap();
    let head: Vec<_> = plan.trials[..4].iter().map(|t| (t.cell, t.repeat)).collect();
    assert_eq!(head, [(0, 1), (0, 2), (0, 3), (1, 1)]);
    assert_eq!(plan.run.seed, 1, "the drawn seed is recorded");
}

const PAIRED: &str = "name = 'n'\n[factors]\nserver = ['16', '17', '18']\nworkload = ['select-only']\nclients = [1, 4]\n\
                      [run]\norder = 'paired'\nmax_time = '5min'\n";

#[test]
fn each_level_is_paired_with_the_first() {
    let plan = plan(PAIRED).unwrap();
    assert_eq!(plan.comparisons(), [(0, 2), (1, 3), (0, 4), (1, 5)]);
    let sessions: Vec<_> = plan.trials.iter().map(|trial| (trial.repeat, trial.cell)).collect();
    assert_eq!(sessions[..6], [(1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 4)]);
    assert_eq!(sessions.len(), 2 * 4 * 3, "the least number of sessions");
    assert_eq!((plan.cells[0].duration.us(), plan.cells[0].warmup.us()), (750_000, 300_000));
    assert_eq!((plan.run.repeats.min, plan.run.repeats.max), (3, 500));
    assert_eq!(plan.run.max_time, Some(Span::from_us(300_000_000)));
}

#[test]
fn cells_that_can_not_be_paired_are_rejected() {
    let rejected = |from: &str, to: &str| {
        let text = PAIRED.replace(from, to);
        let error = plan(&text).unwrap_err();
        (error.message, text[error.at.unwrap()].to_owned())
    };
    let (message, at) = rejected("['16', '17', '18']", "['18']");
    assert!(message.contains("no other cell to be paired with") && at == "'paired'", "{message} at {at}");
    let (message, _) = rejected("clients =", "kernel = ['6.1']\nclients =");
    assert!(message.contains("on the same kernel"), "{message}");
    let theirs = PAIRED.replace("'16'", "'theirs'") + "[servers.theirs]\ndsn = 'host=db'\n";
    assert!(plan(&theirs).unwrap_err().message.contains("does not own the server \"theirs\""));
    let (message, at) = rejected("'paired'", "'sequential'");
    assert!(message.contains("`max_time`") && at == "'5min'", "{message} at {at}");
    let (message, at) = rejected("order = 'paired'\nmax_time = '5min'", "cpu_decides = true");
    assert!(message.contains("`cpu_decides`") && at == "true", "{message} at {at}");
}

const KERNELS: &str = "name = 'n'\n[factors]\nserver = ['18']\nkernel = ['6.1', '6.6', '6.12']\nacceleration = ['icount']\n\
                       workload = ['select-only']\nclients = [1]\n[run]\norder = 'bisect'\nseed = 3\n";

#[test]
fn kernels_are_bisected_by_trials_one_after_the_other_in_a_drawn_order() {
    let plan = plan(KERNELS).unwrap();
    assert!(!plan.is_in_slices());
    let positions: Vec<u32> = plan.trials.iter().map(|trial| trial.position).collect();
    assert_eq!(positions, [1, 2, 3, 4, 5, 6], "the ends, three times");
    let orders: Vec<[usize; 2]> =
        (1..=40).map(|number| plan.session((0, 2), number).map(|trial| trial.cell)).collect();
    assert!(orders.iter().all(|order| [[0, 2], [2, 0]].contains(order)));
    let first = orders.iter().filter(|order| **order == [0, 2]).count();
    assert!((10..=30).contains(&first), "{first} of 40");
    assert_eq!((plan.cells[0].duration.us(), plan.cells[0].warmup.us()), (10_000_000, 1_000_000));
}

#[test]
fn what_sessions_in_virtual_machines_do_not_measure_is_rejected() {
    let rejected = |from: &str, to: &str| {
        let text = KERNELS.replace(from, to);
        assert_ne!(text, KERNELS);
        let error = plan(&text).unwrap_err();
        (error.message, text[error.at.unwrap()].to_owned())
    };
    let (message, at) = rejected("icount", "tcg");
    assert!(message.contains("never a verdict") && at == "'tcg'", "{message} at {at}");
    let (message, at) = rejected("icount", "none");
    assert!(message.contains("one reboot after the other") && at == "'none'", "{message} at {at}");
    let (message, at) = rejected("seed", "figure = 'throughput'\nseed");
    assert!(message.contains("`icount` do not measure") && at == "'throughput'", "{message} at {at}");
    let (message, at) = rejected("seed", "figure = 'server-cpu'\nseed");
    assert!(message.contains("do not measure the figure `server-cpu`"), "{message} at {at}");
    let (message, _) = rejected("'6.1', ", "'host', '6.1', ");
    assert!(message.contains("`acceleration` has several, too"), "{message}");
    let here = PAIRED.replace("'paired'", "'bisect'\nfigure = 'instructions'").replace("[1, 4]", "[1]");
    let error = plan(&here).unwrap_err();
    assert!(error.message.contains("on the machine itself do not measure"), "{}", error.message);
    plan(&KERNELS.replace("icount", "kvm").replace("seed", "figure = 'latency'\nseed")).unwrap();
    plan(&KERNELS.replace("seed", "figure = 'instructions'\nseed")).unwrap();
}

#[test]
fn values_out_of_range_or_unknown_are_reported_with_those_expected() {
    let (message, at, help) = rejection("[1, 2, 4]", "[1, 0]");
    assert_eq!((message.as_str(), at.as_str()), ("clients = 0 is out of range", "0"));
    assert_eq!(help, "expected a whole number from 1 to 262143");

    let (message, at, help) = rejection("'tpcb-like'", "'tpcc'");
    assert_eq!((message.as_str(), at.as_str()), ("there is no workload \"tpcc\"", "'tpcc'"));
    assert_eq!(help, "expected \"tpcb-like\", \"simple-update\", \"select-only\"");

    let (_, at, _) = rejection("['13', '18']", "[]");
    assert_eq!(at, "[]");
    let (message, ..) = rejection("[1, 2, 4]", "[4, 4]");
    assert!(message.contains("is listed twice"), "{message}");
    for version in ["'8'", "'9'", "'18beta1'", "'18.1.2'", "''"] {
        let (message, at, _) = rejection("'18'", version);
        assert_eq!(at, version);
        assert!(message.contains("is not a PostgreSQL version"), "{message}");
    }
}

#[test]
fn settings_are_named_tables() {
    let with = |table: &str| {
        plan(&format!(
            "{}\n[settings.big]\n{table}\n",
            VALID.replace("clients =", "settings = ['default', 'big']\nclients =")
        ))
    };
    let plan = with("shared_buffers = '1GB'\nfsync = false\nmax_connections = 300").unwrap();
    let big = &plan.cells.iter().find(|cell| cell.settings.name == "big").unwrap().settings;
    assert_eq!(big.values["fsync"], "off");
    assert_eq!(big.values["max_connections"], "300");
    assert!(with("port = 5432").unwrap_err().message.contains("pgdyno itself"));
    assert!(with("x = [1]").unwrap_err().help.unwrap().contains("a string"));
    let (message, _, help) = rejection("clients =", "settings = ['bag']\nclients =");
    assert_eq!(message, "there are no settings \"bag\"");
    assert!(help.contains("[settings.bag]"), "{help}");
}

#[test]
fn more_clients_than_a_server_admits_are_refused() {
    let text = |settings: &str| {
        format!(
            "{}\n[settings.big]\n{settings}\n",
            VALID.replace("[1, 2, 4]", "[4, 100]").replace("clients =", "settings = ['big']\nclients =")
        )
    };
    let error = plan(&text("work_mem = '1MB'")).unwrap_err();
    assert!(error.message.starts_with("100 clients of the workload"), "{}", error.message);
    assert!(error.message.contains("\"big\" is 100"), "{}", error.message);
    assert!(error.help.unwrap().contains("max_connections = 120"));
    assert!(plan(&text("MAX_connections = 100")).is_err());
    plan(&text("max_connections = 101")).unwrap();
    let initdb = "[servers.18]\nversion = '18'\ninitdb = ['-c', 'max_connections=300']\n";
    plan(&text("work_mem = '1MB'").replace("'13', ", "").replace("[settings", &format!("{initdb}[settings")))
        .unwrap();
}

#[test]
fn settings_need_permission_on_a_server_that_pgdyno_does_not_own() {
    let text = |more: &str| {
        format!(
            "{}\n[settings.big]\nwork_mem = '1GB'\n[servers.theirs]\ndsn = 'host=db'\n{more}",
            VALID
                .replace("'13', '18'", "'theirs'")
                .replace("clients =", "settings = ['default', 'big']\nclients =")
        )
    };
    let refused = plan(&text("")).unwrap_err();
    assert!(refused.message.contains("\"big\" can't be set on the server \"theirs\""), "{}", refused.message);
    assert!(refused.help.unwrap().contains("allow_settings = true"));
    assert_eq!(&text("")[refused.at.unwrap()], "theirs");
    plan(&text("allow_settings = true")).unwrap();
    plan(&text("").replace("'default', 'big'", "'default'")).unwrap();
}

const SWEEP: &str =
    "name = 'n'\n[factors]\nserver = ['17', '18']\nworkload = ['select-only']\nclients = [1, 2, 4]\n";

fn names(text: &str) -> Vec<String> {
    plan(text).unwrap().cells.iter().map(ToString::to_string).collect()
}

#[test]
fn zipped_factors_vary_together() {
    let cells = names(&format!("{SWEEP}scale = [10, 20, 40]\nzip = [['clients', 'scale']]\n"));
    assert_eq!(cells.len(), 2 * 3);
    assert!(cells[2].contains("scale 40 clients 4"), "{cells:?}");
    let rejection = |zip: &str, scales: &str| {
        let text = format!("{SWEEP}scale = {scales}\nzip = [{zip}]\n");
        let error = plan(&text).unwrap_err();
        (error.message, text[error.at.unwrap()].to_owned())
    };
    let (message, at) = rejection("['clients', 'scale']", "[10, 20]");
    assert_eq!(at, "'scale'");
    assert!(message.contains("has 2 levels, but what it is zipped with has 3"), "{message}");
    assert!(rejection("['clients', 'clients']", "[1]").0.contains("twice"));
    assert!(rejection("['clients', 'rate']", "[1]").0.contains("not a factor with levels"));
}

#[test]
fn cells_are_excluded_and_included() {
    let cells = names(&format!(
        "{SWEEP}exclude = [{{ server = '17', clients = 4 }}]\n\
         include = [{{ server = '18', workload = 'tpcb-like', clients = 64, rate = 500 }}]\n"
    ));
    assert_eq!(cells.len(), 2 * 3 - 1 + 1);
    assert_eq!(cells[5], "18 default tpcb-like scale 1 clients 64 prepared unix 10s rate 500");
    let text = format!("{SWEEP}exclude = [{{ clients = 5 }}]\n");
    let error = plan(&text).unwrap_err();
    assert_eq!(
        (error.message.as_str(), &text[error.at.unwrap()]),
        ("this excludes no cell", "{ clients = 5 }")
    );
    let error = plan(&format!("{SWEEP}include = [{{ clients = 5 }}]\n")).unwrap_err();
    assert!(error.message.contains("is incomplete"), "{error}");
    let error = plan(&format!("{SWEEP}exclude = [{{ server = '17' }}, {{ server = '18' }}]\n")).unwrap_err();
    assert_eq!(error.message, "no cells remain");
}

#[test]
fn matrices_add_up_and_share_the_common_factors() {
    let plan = plan(&format!(
        "{SWEEP}[[matrix]]\nscale = [1]\n[[matrix]]\nscale = [100]\nclients = [8]\nworkload = ['tpcb-like']\n\
         [[matrix]]\nserver = ['18']\nscale = [1]\n"
    ))
    .unwrap();
    // The third matrix adds no cell to those of the first.
    assert_eq!(plan.cells.len(), 2 * 3 + 2);
    assert_eq!(plan.cells[7].to_string(), "18 default tpcb-like scale 100 clients 8 prepared unix 10s");
    let error = super::Plan::new(
        &Campaign::parse("name = 'n'\n[factors]\nserver = ['18']\n[[matrix]]\nclients = [1]\n").unwrap(),
        1,
    )
    .unwrap_err();
    assert_eq!(error.message, "the factor `workload` is missing");
}

#[test]
fn settings_inherit() {
    let text = format!(
        "{SWEEP}settings = ['big', 'huge']\n[settings.big]\nfsync = false\nwork_mem = '4MB'\n\
         [settings.huge]\ninherits = 'big'\nwork_mem = '1GB'\n"
    );
    let plan = plan(&text).unwrap();
    let huge = &plan.cells.iter().find(|cell| cell.settings.name == "huge").unwrap().settings.values;
    assert_eq!((huge["fsync"].as_str(), huge["work_mem"].as_str()), ("off", "1GB"));
    let circle = text.replace("[settings.big]", "[settings.big]\ninherits = 'huge'");
    assert!(
        super::Plan::new(&Campaign::parse(&circle).unwrap(), 1).unwrap_err().message.contains("themselves")
    );
}

#[test]
fn a_server_has_exactly_one_source() {
    let with = |table: &str| {
        let text = format!("{}\n[servers.mine]\n{table}\n", SWEEP.replace("'17'", "'mine'"));
        plan(&text).map(|plan| plan.servers[0].clone()).map_err(|error| error.message)
    };
    let built =
        with("source = '../pg'\nref = 'master'\nbuild = { system = 'meson', options = ['-Dssl=none'] }");
    let Source::Build(build) = built.unwrap().source else { panic!("no build") };
    assert_eq!((build.git_ref.as_deref(), build.options.len()), (Some("master"), 1));
    let patches = |key: &str| match with(&format!("source = '../pg'\npatch = {key}")).unwrap().source {
        Source::Build(build) => build.patches,
        _ => panic!("no build"),
    };
    assert_eq!(patches("'a.patch'"), [Path::new("a.patch")]);
    assert_eq!(patches("['1.patch', '2.patch']"), [Path::new("1.patch"), Path::new("2.patch")]);
    assert!(with("bin = '/x'\npatch = 'y'").unwrap_err().contains("`patch` requires `source`"));
    assert_eq!(with("version = '9.6'\ninitdb = ['-k']").unwrap().initdb, ["-k"]);
    assert!(with("bin = '/x'\ndsn = 'host=y'").unwrap_err().contains("has no source, or several"));
    assert!(with("").unwrap_err().contains("has no source, or several"));
    assert!(with("bin = '/x'\nref = 'y'").unwrap_err().contains("`ref` requires `source`"));
    for secret in [
        "host=y password = x",
        "host=y oauth_client_secret=x",
        "postgresql://me:x@y/db",
        "postgres://y/db?sslpassword=x",
    ] {
        assert!(
            with(&format!("dsn = '{secret}'")).unwrap_err().contains("a password in a campaign"),
            "{secret}"
        );
    }
    assert!(with("dsn = 'postgresql://me@[::1]:5433/db'").is_ok());
    let cold =
        format!("{}cache = ['cold']\n[servers.mine]\ndsn = 'host=y'\n", SWEEP.replace("'17'", "'mine'"));
    assert!(plan(&cold).unwrap_err().message.contains("needs a restart"));
    assert!(with("dsn = 'host=y'\ninitdb = ['-k']").unwrap_err().contains("`version, bin or source`"));
}

#[test]
fn memory_and_disk_limits_are_factors() {
    let text = format!(
        "{SWEEP}memory = ['none', '512MB']\ndisk = ['none', 'slow']\n\
         [disks.slow]\nread = '100MB/s'\nread_iops = 1000\n"
    );
    let limited = plan(&text).unwrap();
    assert_eq!(limited.cells.len(), 2 * 3 * 4);
    assert_eq!(limited.cells[0], plan(SWEEP).unwrap().cells[0], "without limits a cell is what it was");
    let last = limited.cells.last().unwrap();
    assert!(last.to_string().ends_with("10s memory 512MB disk slow"), "{last}");
    assert_eq!((last.disk.read_bytes_s, last.disk.write_iops), (Some(100 << 20), None));
    let rejection = |from: &str, to: &str| {
        let text = text.replace(from, to);
        let error = Campaign::parse(&text).and_then(|campaign| Plan::new(&campaign, 1)).unwrap_err();
        (error.message, text[error.at.unwrap()].to_owned())
    };
    assert_eq!(rejection("'512MB'", "'512'").1, "'512'");
    assert!(rejection("'512MB'", "'1kB'").0.contains("too little for any server"));
    assert_eq!(
        rejection("'slow']", "'slaw']"),
        ("there is no disk limit \"slaw\"".to_owned(), "'slaw'".to_owned())
    );
    assert_eq!(rejection("100MB/s", "100MB").1, "'100MB'");
    assert!(rejection("1000", "0").0.contains("read_iops = 0"));
    assert!(rejection("'100MB/s'", "'0MB/s'").0.contains("nothing could be read"));
    let text = text.replace("'17'", "'mine'") + "[servers.mine]\ndsn = 'host=y'\n";
    let error = plan(&text).unwrap_err();
    assert!(error.message.contains("needs a server that pgdyno starts"), "{error}");
}

#[test]
fn profiles_are_checked_and_optional() {
    let with = |table: &str| plan(&format!("{SWEEP}{table}"));
    assert_eq!(with("").unwrap().profile, None);
    let default = Profile { hz: 99, callgraph: None, window: None, off_cpu: None };
    assert_eq!(with("[profile]\n").unwrap().profile, Some(default));
    let fp = with("[profile]\ncallgraph = 'fp'\nhz = 49\nwindow = '5s'\n").unwrap().profile.unwrap();
    assert_eq!((fp.hz, fp.callgraph), (49, Some(Unwinding::FramePointers)));
    assert_eq!(fp.window, Some(Span::from_us(5_000_000)));
    for (key, message, help) in [
        ("hz = 0", "hz = 0 is out of range", "from 1 to 10000"),
        ("callgraph = 'lbr'", "there is no call graph \"lbr\"", "\"auto\", \"fp\", \"dwarf\""),
        ("window = '11s'", "a profile of 11s does not fit a measured window of 10s", "at most the shortest"),
        ("window = '1ms'", "too short", "100ms"),
        ("off_cpu = '5s'", "profile of 5s does not fit a measured window of 10s", "at most half"),
    ] {
        let error = with(&format!("[profile]\n{key}\n")).unwrap_err();
        assert!(error.message.contains(message), "{error}");
        assert!(error.help.as_ref().unwrap().contains(help), "{error:?}");
    }
}

#[test]
fn repeats_may_be_adaptive() {
    let repeats =
        |given: &str| plan(&format!("{SWEEP}[run]\nrepeats = {given}\n")).map(|plan| plan.run.repeats);
    assert_eq!(repeats("4").unwrap(), Repeats { min: 4, max: 4, until_ci: None });
    let adaptive = repeats("{ min = 5, max = 20, until_ci = '2%' }").unwrap();
    assert_eq!(adaptive, Repeats { min: 5, max: 20, until_ci: Some(0.02) });
    assert_eq!(repeats("{ min = 30 }").unwrap().max, 30);
    assert!(repeats("{ min = 2 }").unwrap_err().message.contains("repeats.min = 2"));
    assert!(repeats("{ min = 9, max = 8 }").unwrap_err().message.contains("repeats.max = 8"));
    let error = Campaign::parse(&format!("{SWEEP}[run]\nrepeats = {{ until_ci = '200%' }}\n")).unwrap_err();
    assert!(error.help.unwrap().contains("\"2%\""));
}

#[test]
fn the_first_varied_factor_is_compared_by_default() {
    assert_eq!(plan(SWEEP).unwrap().run.compare, Some(Factor::Server));
    let planned = plan(&format!("{SWEEP}[run]\ncompare = 'clients'\n")).unwrap();
    assert_eq!(planned.run.compare, Some(Factor::Clients));
    let error = plan(&format!("{SWEEP}[run]\ncompare = 'scale'\n")).unwrap_err();
    assert!(error.message.contains("one level only"));
}

#[test]
fn a_workload_may_have_its_own_duration() {
    let text = SWEEP.replace("'select-only'", "'select-only', 'long'")
        + "[workloads.long]\nbuiltin = 'select-only'\nduration = '60s'\n";
    let plan = plan(&text).unwrap();
    let lengths: Vec<_> = plan.cells.iter().map(|cell| (cell.duration.us(), cell.warmup.us())).collect();
    assert_eq!(lengths[0], (10_000_000, 1_000_000));
    assert_eq!(lengths[3], (60_000_000, 6_000_000));
}
