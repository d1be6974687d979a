//! Provided buffers, of which the kernel chooses one for each receive.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::io;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU16, Ordering};

use io_uring::Submitter;
use io_uring::types::BufRingEntry;

/// Size of one buffer, in bytes; larger responses use several.
pub(super) const BUFFER: usize = 1024;

/// Alignment of the ring, and of the buffers: a page.
const PAGE: usize = 4096;

/// A ring of free buffers, shared with the kernel, which takes them and gets them back by [`put`](Self::put).
pub(super) struct Buffers {
    ring: NonNull<BufRingEntry>,
    buffers: NonNull<u8>,
    count: u16,
    tail: u16,
    leaked: bool,
}

impl Buffers {
    /// Registers two buffers for each of `sockets`, at least 64 and at most 4096.
    pub(super) fn register(submitter: &Submitter<'_>, group: u16, sockets: usize) -> io::Result<Self> {
        let count = (sockets * 2).next_power_of_two().clamp(64, 4096) as u16;
        let mut buffers = Self {
            ring: allocate(ring_layout(count)?).cast(),
            buffers: allocate(layout(count)?),
            count,
            tail: 0,
            leaked: false,
        };
        let address = buffers.ring.as_ptr() as u64;
        // Safety: the ring has `count` entries, is aligned to a page, and lives until the io_uring is gone.
        unsafe { submitter.register_buf_ring_with_flags(address, count, group, 0)? };
        for buffer in 0..count {
            buffers.put(buffer);
        }
        Ok(buffers)
    }

    /// The bytes that the kernel has written into a buffer.
    #[inline]
    pub(super) fn get(&self, buffer: u16, length: usize) -> &[u8] {
        let start = usize::from(buffer % self.count) * BUFFER;
        debug_assert!(length <= BUFFER);
        // Safety: within the allocation, which is initialised, and not used by the kernel until `put`.
        unsafe { std::slice::from_raw_parts(self.buffers.as_ptr().add(start), length) }
    }

    /// Gives a buffer to the kernel.
    #[inline]
    pub(super) fn put(&mut self, buffer: u16) {
        // Safety: within the ring, at an entry that the kernel does not read before the tail is moved beyond it.
        unsafe {
            let entry = &mut *self.ring.as_ptr().add(usize::from(self.tail & (self.count - 1)));
            entry.set_addr(self.buffers.as_ptr().add(usize::from(buffer % self.count) * BUFFER) as u64);
            entry.set_len(BUFFER as u32);
            entry.set_bid(buffer);
        }
        self.tail = self.tail.wrapping_add(1);
        // Safety: the tail lies in the ring's first entry, and the kernel only reads it.
        let tail = unsafe { &*BufRingEntry::tail(self.ring.as_ptr()).cast::<AtomicU16>() };
        tail.store(self.tail, Ordering::Release);
    }

    /// Never frees the memory.
    pub(super) fn leak(&mut self) {
        self.leaked = true;
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        if self.leaked {
            return;
        }
        if let (Ok(ring), Ok(buffers)) = (ring_layout(self.count), layout(self.count)) {
            // Safety: allocated with these layouts, and the io_uring that used them is gone.
            unsafe {
                dealloc(self.ring.as_ptr().cast(), ring);
                dealloc(self.buffers.as_ptr(), buffers);
            }
        }
    }
}

fn ring_layout(count: u16) -> io::Result<Layout> {
    page_aligned(usize::from(count) * size_of::<BufRingEntry>())
}

fn layout(count: u16) -> io::Result<Layout> {
    page_aligned(usize::from(count) * BUFFER)
}

fn page_aligned(size: usize) -> io::Result<Layout> {
    Layout::from_size_align(size, PAGE).map_err(io::Error::other)
}

fn allocate(layout: Layout) -> NonNull<u8> {
    // Safety: no layout is empty.
    NonNull::new(unsafe { alloc_zeroed(layout) }).unwrap_or_else(|| handle_alloc_error(layout))
}
