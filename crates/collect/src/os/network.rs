//! Counters of network interfaces. Source: proc(5), `/proc/net/dev`.

use procfs::net::InterfaceDeviceStatus;
use procfs::prelude::FromBufRead;

use model::metric;

use super::kernel_file::KernelFile;
use crate::Reading;
use crate::root::Root;

/// Datagrams that the kernel dropped since the host booted, as their receivers did not keep up. Source: proc(5), `/proc/net/snmp`
/// and `snmp6`. None if unknown.
pub fn dropped_datagrams() -> Option<u64> {
    let over_ipv4 = procfs::net::snmp().ok()?.udp_rcvbuf_errors;
    // Not every kernel has IPv6.
    Some(over_ipv4 + procfs::net::snmp6().map_or(0, |counters| counters.udp_rcvbuf_errors))
}

/// All interfaces, in one file.
#[derive(Debug)]
pub(super) struct Network {
    file: Option<KernelFile>,
}

impl Network {
    pub(super) fn new(root: &Root) -> Self {
        // Our own network namespace; the file stays open when the thread that opened it ends.
        Self { file: KernelFile::open(root, "proc/self/net/dev") }
    }

    pub(super) fn read(&mut self, into: &mut Reading) -> Option<()> {
        let text = self.file.as_mut()?.text()?;
        let InterfaceDeviceStatus(interfaces) = InterfaceDeviceStatus::from_buf_read(text.as_bytes()).ok()?;
        for (name, is) in &interfaces {
            // Most machines have many that are never used.
            if is.recv_packets == 0 && is.sent_packets == 0 {
                continue;
            }
            let counters = [
                (metric!("net.rx_bytes"), is.recv_bytes),
                (metric!("net.rx_packets"), is.recv_packets),
                (metric!("net.rx_errors"), is.recv_errs),
                (metric!("net.rx_dropped"), is.recv_drop),
                (metric!("net.tx_bytes"), is.sent_bytes),
                (metric!("net.tx_packets"), is.sent_packets),
                (metric!("net.tx_errors"), is.sent_errs),
                (metric!("net.tx_dropped"), is.sent_drop),
            ];
            for (metric, count) in counters {
                into.add(metric, Some(name), count as f64);
            }
        }
        Some(())
    }
}
