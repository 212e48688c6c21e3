//! Frames: a length, and so many bytes.

use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, BufReader, Read, Write};

/// The most bytes of a frame. The largest case of the contract is far below it.
pub const MOST: usize = 64 << 20;
/// As much as a pipe holds.
const AT_ONCE: usize = 64 << 10;

/// The two ends of a conversation.
pub struct Ends {
    longest: usize,
    reader: Box<dyn Read>,
    writer: Box<dyn Write>,
}

impl Ends {
    /// Reads from the one and writes to the other.
    pub fn new(reader: impl Read + 'static, writer: impl Write + 'static) -> Self {
        let reader = BufReader::with_capacity(AT_ONCE, reader);
        Self { longest: MOST, reader: Box::new(reader), writer: Box::new(writer) }
    }

    /// Refuses longer frames that come from now on.
    pub fn at_most(&mut self, bytes: usize) {
        self.longest = bytes;
    }

    /// Writes a message as one frame.
    ///
    /// # Errors
    /// A pipe that is closed; a message that is too long.
    pub fn send(&mut self, message: &impl Serialize) -> io::Result<()> {
        self.send_bytes(&postcard::to_stdvec(message).map_err(io::Error::other)?)
    }

    /// Writes bytes as one frame.
    pub(crate) fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > MOST {
            return Err(io::Error::other(format!("a message of {} bytes", bytes.len())));
        }
        // At once: by a length that comes alone, the other side would be woken for nothing.
        let length = (bytes.len() as u32).to_le_bytes();
        self.writer.write_all(&[&length[..], bytes].concat())?;
        self.writer.flush()
    }

    /// The bytes of the next frame.
    ///
    /// # Errors
    /// The end of the pipe; a frame that is too long.
    pub fn receive(&mut self) -> io::Result<Vec<u8>> {
        let mut len = [0; 4];
        self.reader.read_exact(&mut len)?;
        let len = u32::from_le_bytes(len) as usize;
        if len > self.longest {
            return Err(io::Error::other(format!(
                "a frame of {len} bytes, and {} are allowed",
                self.longest
            )));
        }
        // Memory grows with what comes, and not with what is announced.
        let mut bytes = Vec::with_capacity(len.min(AT_ONCE));
        let got = (&mut self.reader).take(len as u64).read_to_end(&mut bytes)?;
        if got < len { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(bytes) }
    }
}

/// The value that the bytes are, and nothing after it.
///
/// # Errors
/// Bytes that are none, or that go on.
pub fn whole<T: DeserializeOwned>(bytes: &[u8]) -> io::Result<T> {
    let (value, rest) = postcard::take_from_bytes(bytes).map_err(io::Error::other)?;
    if rest.is_empty() {
        Ok(value)
    } else {
        Err(io::Error::other(format!("{} bytes behind the end", rest.len())))
    }
}
