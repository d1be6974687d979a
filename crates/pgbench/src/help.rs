//! The text of `pgbench --help`.

use crate::compat::Compat;

pub(crate) fn text(compat: Compat) -> String {
    let exit_on_abort = if compat > Compat::V15 {
        "  --exit-on-abort          end the run as soon as a client is aborted\n"
    } else {
        ""
    };
    let debug_and_database = match compat {
        Compat::V15 => "  -d, --debug              print every step of every client\n",
        _ => {
            "      --debug              print every step of every client\n\
             \x20 -d, --dbname=DBNAME      database to connect to, or a connection string\n"
        }
    };
    format!(
        "pgbench is a benchmarking tool for PostgreSQL.
This one is a part of pgdyno, and behaves as the pgbench of PostgreSQL {major} does.

Usage:
  pgbench [OPTION]... [DBNAME]

Initialization options:
  -i, --initialize         create and fill the tables of the standard scenario
  -I, --init-steps=[dtgGvpf]+ (default \"dtgvp\")
                           run these steps, in this order:
                           d: drop the tables if they exist
                           t: create the tables
                           g: generate data on the client
                           G: generate data in the server
                           v: vacuum the tables
                           p: create the primary keys
                           f: create the foreign keys
  -F, --fillfactor=NUM     fill factor of the tables, in percent
  -n, --no-vacuum          skip step v
  -q, --quiet              report progress every 5 s, not every 100000 rows
  -s, --scale=NUM          number of branches of 100000 accounts (default: 1)
  --foreign-keys           add the step f
  --index-tablespace=TABLESPACE
                           create indexes in this tablespace
  --partition-method=(range|hash)
                           partitioning of pgbench_accounts (default: range)
  --partitions=NUM         partitions of pgbench_accounts (default: 0, none)
  --tablespace=TABLESPACE  create tables in this tablespace
  --unlogged-tables        create unlogged tables

Options to select what to run:
  -b, --builtin=NAME[@W]   add a built-in script with weight W (default: 1)
                           (\"-b list\" lists them)
  -f, --file=FILENAME[@W]  add the script FILENAME with weight W (default: 1)
  -N, --skip-some-updates  same as \"-b simple-update\"
  -S, --select-only        same as \"-b select-only\"

Benchmarking options:
  -c, --client=NUM         number of clients (default: 1)
  -C, --connect            open a new connection for each transaction
  -D, --define=VARNAME=VALUE
                           set a variable of the scripts
  -j, --jobs=NUM           number of threads (default: 1)
  -l, --log                write every transaction to a log file
  -L, --latency-limit=NUM  count transactions that take more than NUM ms as late
  -M, --protocol=simple|extended|prepared
                           how statements are sent (default: simple)
  -n, --no-vacuum          do not vacuum before the run
  -P, --progress=NUM       report progress every NUM seconds
  -r, --report-per-command report latency, failures, retries of each command
  -R, --rate=NUM           start NUM transactions per second
  -s, --scale=NUM          value of :scale, and reported scale, if unknown
  -t, --transactions=NUM   number of transactions of each client (default: 10)
  -T, --time=NUM           seconds to run
  -v, --vacuum-all         also vacuum pgbench_accounts before the run
  --aggregate-interval=NUM log aggregates of NUM seconds, not transactions
{exit_on_abort}  --failures-detailed      report failures by their kind
  --log-prefix=PREFIX      beginning of log files' names (\"pgbench_log\")
  --max-tries=NUM          tries per transaction (default: 1; 0: no limit)
  --progress-timestamp     report progress with Unix times
  --random-seed=SEED       random seed (\"time\", \"rand\", or an unsigned integer)
  --sampling-rate=NUM      share of the transactions to log (0.01 for 1%)
  --show-script=NAME       print a built-in script, then exit
  --verbose-errors         print every error, also those that are retried

Common options:
{debug_and_database}  -h, --host=HOSTNAME      server's host, or directory of its socket
  -p, --port=PORT          server's port
  -U, --username=USERNAME  role to connect as
  -V, --version            print the version, then exit
  -?, --help               print this help, then exit

Not in PostgreSQL's pgbench:
  --compat=15|17|18        pgbench version to emulate (default: 18, or the
                           environment variable PGDYNO_PGBENCH_COMPAT)
  --engine=auto|epoll|uring
                           event loop of the threads (default: auto)

Exit codes: 0 ok; 1 error; 2 a client was aborted, results are incomplete;
130 interrupted, results cover only the part before.
docs/pgbench-differences.md lists the differences and their reasons.

Report bugs to the pgdyno project, not to PostgreSQL's.
",
        major = compat.major()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_too_long_and_each_version_has_its_options() {
        for compat in [Compat::V15, Compat::V17, Compat::V18] {
            let text = text(compat);
            assert!(text.lines().all(|line| line.len() <= 100));
            assert_eq!(text.contains("-d, --debug"), compat == Compat::V15);
            assert_eq!(text.contains("-d, --dbname"), compat != Compat::V15);
            assert_eq!(text.contains("--exit-on-abort"), compat != Compat::V15);
        }
    }
}
