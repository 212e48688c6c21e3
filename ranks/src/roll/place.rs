//! Where a roll is kept, and how a rank and its keeper verify each other.
//!
//! Neither sends the word that both know, because some other program on this or another machine may listen at one of
//! the addresses. Each sends a number never used before, and the other answers with a digest of word and number.

use super::{Answer, Said, send};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::fmt::{self, Display, Formatter};
use std::io::{self, BufRead, BufReader, Read};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::str::FromStr;
use std::time::{Duration, Instant};

/// How long the two may take to verify each other.
pub(super) const INTRODUCTION: Duration = Duration::from_secs(10);
/// Bytes of a message in which they do.
const SHORT: usize = 4096;

/// Where the roll of a run is kept, and the word that lets in: `WORD@HOST@ADDRESS,ADDRESS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    word: String,
    /// The keeper's.
    host: String,
    /// One for each network that the keeper's host is in. A rank of another host reaches it through one of them.
    pub(super) addresses: Vec<SocketAddr>,
}

impl Display for Place {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let addresses: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        write!(f, "{}@{}@{}", self.word, self.host, addresses.join(","))
    }
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<&str> = text.split('@').collect();
        let parsed = match parts[..] {
            [word, host, addresses] => {
                let addresses = addresses.split(',').map(str::parse).collect::<Result<_, _>>().ok();
                addresses.map(|addresses| Self { word: word.into(), host: host.into(), addresses })
            }
            _ => None,
        };
        parsed.ok_or_else(|| format!("expected WORD@HOST@ADDRESS,ADDRESS, got {text:?}"))
    }
}

impl Place {
    /// A new word, for a keeper that listens on this port: on this host's loopback, and `everywhere` on its networks, too.
    pub(super) fn new(port: u16, everywhere: bool) -> io::Result<Self> {
        let mut ips = vec![IpAddr::from(Ipv4Addr::LOCALHOST)];
        if everywhere {
            let of_networks = if_addrs::get_if_addrs()?.into_iter().map(|interface| interface.ip());
            ips.extend(of_networks.filter(|ip| ip.is_ipv4() && !ip.is_loopback()));
        }
        let addresses = ips.into_iter().map(|ip| SocketAddr::new(ip, port)).collect();
        Ok(Self { word: once()?, host: host(), addresses })
    }

    /// Whether the keeper is on this host.
    pub(crate) fn is_here(&self) -> bool {
        self.host == host()
    }

    /// A connection to the keeper, over which it has let in rank `rank`.
    ///
    /// # Errors
    /// No address answers within `limit`.
    pub(crate) fn join(&self, rank: usize, limit: Duration) -> io::Result<BufReader<TcpStream>> {
        let mut last = io::Error::from(io::ErrorKind::AddrNotAvailable);
        // Each host has a loopback of its own.
        for address in self.addresses.iter().filter(|at| at.ip().is_loopback() == self.is_here()) {
            match self.try_join(address, rank, limit.min(INTRODUCTION)) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn try_join(
        &self,
        address: &SocketAddr,
        rank: usize,
        limit: Duration,
    ) -> io::Result<BufReader<TcpStream>> {
        let other = || io::Error::other("what listens there keeps no roll, or another run's");
        let stream = TcpStream::connect_timeout(address, limit)?;
        stream.set_nodelay(true)?;
        let (mut from, until, mine) = (BufReader::new(stream), Instant::now() + limit, once()?);
        let Some(Answer::Who(theirs)) = receive_by(&mut from, until) else { return Err(other()) };
        let (proof, once) = (self.proof("rank", &theirs), mine.clone());
        let process = std::process::id();
        send(from.get_ref(), &Said::Here { proof, once, rank, process, host: host() })?;
        match receive_by(&mut from, until) {
            Some(Answer::Welcome(proof)) if proof == self.proof("keeper", &mine) => {
                from.get_ref().set_read_timeout(None).map(|()| from)
            }
            _ => Err(other()),
        }
    }

    /// Proof that its sender knows the word, now.
    pub(super) fn proof(&self, who: &str, once: &str) -> String {
        hex(&Sha256::digest(format!("{who} {once} {}", self.word)))
    }
}

/// A number that was never used before.
pub(super) fn once() -> io::Result<String> {
    let mut bytes = [0; 16];
    std::fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hex(&bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads a short message that is complete by then, however slowly its bytes come.
pub(super) fn receive_by<M: for<'a> Deserialize<'a>>(
    from: &mut BufReader<TcpStream>,
    until: Instant,
) -> Option<M> {
    let mut line = Vec::new();
    while !line.ends_with(b"\n") && line.len() < SHORT {
        let left = until.checked_duration_since(Instant::now())?;
        from.get_ref().set_read_timeout(Some(left.max(Duration::from_millis(1)))).ok()?;
        let bytes = from.fill_buf().ok().filter(|bytes| !bytes.is_empty())?;
        let end = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        line.extend(&bytes[..end]);
        from.consume(end);
    }
    serde_json::from_slice(&line).ok()
}

/// The name of this host.
pub(crate) fn host() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}
