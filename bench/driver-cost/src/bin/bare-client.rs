//! The least that clients with a thread each cost: a load of point lookups with nothing around it.
//!
//! Each thread sends Bind, Execute and Sync of one prepared statement, and receives until the server is ready. It neither
//! measures times nor looks at results, and has no errors to handle but those that end it. A load driver that gives each
//! client a thread of its own can hardly take less CPU time per transaction than that, or give more transactions per second.
//!
//! It is one of the programs that `driver-cost` runs; its report has the lines of pgbench's that matter.

use std::io::{Read, Write, stdout};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use clap::Parser;
use wire::encode;

/// The end of a response: ReadyForQuery, outside of a transaction block.
const READY: &[u8] = b"Z\0\0\0\x05I";

const STATEMENT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";

/// Runs point lookups without anything that a load driver has, in a thread for each client
#[derive(Parser)]
#[command(version, disable_help_flag = true)]
struct Options {
    /// The server's host, or the directory of its socket
    #[arg(short)]
    host: String,
    #[arg(short)]
    port: u16,
    #[arg(short = 'U')]
    user: String,
    #[arg(short)]
    database: String,
    /// pgbench's scale factor
    #[arg(short)]
    scale: u64,
    #[arg(short)]
    clients: u64,
    /// Length of the load, in seconds
    #[arg(short = 'T', conflicts_with = "transactions")]
    seconds: Option<u64>,
    /// Transactions of each client
    #[arg(short)]
    transactions: Option<u64>,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let from = Instant::now();
    let mut threads = Vec::new();
    for client in 0..options.clients {
        let mut connection = Connection::open(&options)?;
        let (seconds, transactions) = (options.seconds, options.transactions);
        let until = seconds.map(|seconds| from + Duration::from_secs(seconds));
        let accounts = 100_000 * options.scale;
        threads.push(thread::spawn(move || connection.run(client, accounts, until, transactions)));
    }
    let connected = Instant::now();
    let mut done = 0;
    for thread in threads {
        match thread.join() {
            Ok(count) => done += count?,
            Err(_) => bail!("a thread has panicked"),
        }
    }
    let tps = done as f64 / connected.elapsed().as_secs_f64();
    writeln!(stdout(), "number of transactions actually processed: {done}\ntps = {tps:.6}")?;
    Ok(())
}

/// A stream of either transport.
trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}

struct Connection {
    stream: Box<dyn Stream>,
    received: Vec<u8>,
}

impl Connection {
    /// Connects to a server that trusts its clients, and prepares the statement.
    fn open(options: &Options) -> Result<Self> {
        let Options { host, port, .. } = options;
        let stream: Box<dyn Stream> = if host.starts_with('/') {
            Box::new(UnixStream::connect(format!("{host}/.s.PGSQL.{port}"))?)
        } else {
            let stream = TcpStream::connect((host.as_str(), *port))?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        };
        let mut connection = Self { stream, received: vec![0; 8192] };
        let mut out = Vec::new();
        let parameters = [("user", &*options.user), ("database", &*options.database)];
        encode::startup(wire::ProtocolVersion::V3_0, parameters, &mut out);
        connection.exchange(&out).context("cannot log in without a password")?;
        out.clear();
        encode::parse("lookup", STATEMENT, &mut out);
        encode::sync(&mut out);
        connection.exchange(&out).context("cannot prepare the statement")?;
        Ok(connection)
    }

    /// Runs transactions. Returns their number.
    fn run(
        &mut self,
        client: u64,
        accounts: u64,
        until: Option<Instant>,
        transactions: Option<u64>,
    ) -> Result<u64> {
        let bind = encode::Bind::new("lookup", 1);
        let mut random = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(client + 1);
        let (mut out, mut done) = (Vec::new(), 0);
        while transactions.is_none_or(|limit| done < limit) && until.is_none_or(|end| Instant::now() < end) {
            // xorshift64
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            out.clear();
            bind.write([1 + random % accounts], &mut out, |account, out| write!(out, "{account}").is_ok());
            encode::execute(&mut out);
            encode::sync(&mut out);
            self.exchange(&out)?;
            done += 1;
        }
        Ok(done)
    }

    /// Sends messages and receives until the server is ready.
    fn exchange(&mut self, messages: &[u8]) -> Result<()> {
        self.stream.write_all(messages)?;
        let mut have = 0;
        loop {
            let received = self.stream.read(&mut self.received[have..])?;
            if received == 0 {
                bail!("the server has closed the connection, or requires a password");
            }
            have += received;
            if self.received[0] == b'E' {
                bail!("the server reports {}", String::from_utf8_lossy(&self.received[..have]));
            }
            if self.received[..have].ends_with(READY) {
                return Ok(());
            }
        }
    }
}
