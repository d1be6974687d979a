//! Messages of the guest to the host, over a serial port.

use std::io::{self, Read, Write};

/// Maximum payload of a frame in bytes; longer ones are split.
pub(crate) const MAX_BYTES: usize = 64 << 10;

/// Message of the guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// Its first process runs.
    Up,
    /// Sign of life.
    Alive,
    /// Current step.
    Step(String),
    /// A PostgreSQL server in it accepts connections.
    Ready,
    /// An interval of a load, as JSON.
    Interval(Vec<u8>),
    /// Standard output of a command.
    Stdout(Vec<u8>),
    /// Standard error of a command.
    Stderr(Vec<u8>),
    /// Part of a file: its path and bytes.
    File(String, Vec<u8>),
    /// The job failed, with this cause.
    Failed(String),
    /// The job is done, with the exit code of a command.
    Exit(u8),
}

impl Frame {
    fn parts(&self) -> (u8, Vec<u8>) {
        let text = |text: &String| text.as_bytes().to_vec();
        match self {
            Self::Up => (b'U', Vec::new()),
            Self::Alive => (b'A', Vec::new()),
            Self::Step(what) => (b'S', text(what)),
            Self::Ready => (b'R', Vec::new()),
            Self::Interval(json) => (b'I', json.clone()),
            Self::Stdout(bytes) => (b'O', bytes.clone()),
            Self::Stderr(bytes) => (b'E', bytes.clone()),
            Self::File(path, bytes) => (b'F', [path.as_bytes(), b"\0", bytes].concat()),
            Self::Failed(why) => (b'W', text(why)),
            Self::Exit(code) => (b'X', vec![*code]),
        }
    }

    /// Writes the frame in one piece.
    ///
    /// # Errors
    /// Writing fails, or the payload is too long.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let (kind, payload) = self.parts();
        let length = u32::try_from(payload.len()).map_err(io::Error::other)?;
        let mut bytes = vec![kind];
        bytes.extend(length.to_le_bytes());
        bytes.extend(payload);
        to.write_all(&bytes)?;
        to.flush()
    }

    /// Reads a frame; none at the end of the input, even within a frame.
    ///
    /// # Errors
    /// Reading fails, or the input is not a frame.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        match Self::read_whole(from) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
            read => read.map(Some),
        }
    }

    fn read_whole(from: &mut impl Read) -> io::Result<Self> {
        let mut head = [0; 5];
        from.read_exact(&mut head)?;
        let [kind, length @ ..] = head;
        let length = u32::from_le_bytes(length) as usize;
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        if length > 2 * MAX_BYTES {
            return Err(wrong(format!("a frame of {length} bytes")));
        }
        let mut payload = vec![0; length];
        from.read_exact(&mut payload)?;
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Ok(match kind {
            b'U' => Self::Up,
            b'A' => Self::Alive,
            b'S' => Self::Step(text(payload)),
            b'R' => Self::Ready,
            b'I' => Self::Interval(payload),
            b'O' => Self::Stdout(payload),
            b'E' => Self::Stderr(payload),
            b'F' => {
                let end = payload.iter().position(|byte| *byte == 0);
                let end = end.ok_or_else(|| wrong("a file without a path".to_owned()))?;
                let bytes = payload.split_off(end + 1);
                payload.truncate(end);
                Self::File(text(payload), bytes)
            }
            b'W' => Self::Failed(text(payload)),
            b'X' => Self::Exit(payload.first().copied().unwrap_or_default()),
            other => return Err(wrong(format!("a frame of the unknown kind {other}"))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_frames_are_read_and_invalid_ones_refused() {
        let all = [
            Frame::Up,
            Frame::Alive,
            Frame::Step("starting".to_owned()),
            Frame::Ready,
            Frame::Interval(b"{}".to_vec()),
            Frame::Stdout(vec![0, 1, 255]),
            Frame::Stderr(Vec::new()),
            Frame::File("a/b".to_owned(), vec![0, 7]),
            Frame::Failed("why".to_owned()),
            Frame::Exit(3),
        ];
        let mut bytes = Vec::new();
        for frame in &all {
            frame.write(&mut bytes).unwrap();
        }
        let mut rest = bytes.as_slice();
        for frame in all {
            assert_eq!(Frame::read(&mut rest).unwrap(), Some(frame));
        }
        assert_eq!(Frame::read(&mut rest).unwrap(), None);
        assert!(Frame::read(&mut b"?\0\0\0\0".as_slice()).is_err());
        assert!(Frame::read(&mut b"O\xff\xff\xff\xff".as_slice()).is_err());
        assert_eq!(Frame::read(&mut b"O\x05\0\0\0ab".as_slice()).unwrap(), None, "it was cut off");
    }
}
