//! The site on an address of this machine: its own, which nothing outside can reach, unless another one is asked for.

use crate::error::{Error, Result};
use axum::Router;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use tower_http::services::ServeDir;

/// The port that is tried first, so that a bookmark stays right.
pub const PORT: u16 = 4143;

/// A place where the site will be served.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Takes a port on an address of this machine: `port`, or the usual one, or any if that is taken. `host` is an address or a
    /// name; without one it is the loopback address.
    ///
    /// # Errors
    /// The host is no address of this machine; the port that was asked for is taken; there is no free port.
    pub fn bind(host: Option<&str>, port: Option<u16>) -> Result<Self> {
        let host = host.unwrap_or("127.0.0.1");
        let no_host =
            |error: io::Error| Error::Host { host: host.into(), reason: error.to_string() };
        // An IPv6 address has brackets where a port follows it.
        let name = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let addresses: Vec<IpAddr> =
            (name, 0).to_socket_addrs().map_err(no_host)?.map(|found| found.ip()).collect();
        // The system binds to these, and then no one comes.
        if addresses.iter().any(|ip| ip.is_multicast() || *ip == IpAddr::from(Ipv4Addr::BROADCAST))
        {
            return Err(no_host(io::Error::other("an address of several machines")));
        }
        let at = |port| {
            let addresses: Vec<_> = addresses.iter().map(|ip| SocketAddr::new(*ip, port)).collect();
            TcpListener::bind(&addresses[..])
        };
        let listener = match port {
            Some(port) => at(port),
            None => at(PORT).or_else(|_| at(0)),
        };
        let refuse = |error: io::Error| match error.kind() {
            io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied => {
                Error::Serve { port: port.unwrap_or(PORT), reason: error.to_string() }
            }
            _ => no_host(error),
        };
        let listener = listener.map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        Ok(Self { listener, address })
    }

    /// The address that it is bound to.
    pub fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// The address to open in a browser of this machine.
    pub fn url(&self) -> String {
        url(self.address)
    }

    /// Which others can read the site, if any can.
    pub fn readers(&self) -> Option<String> {
        let port = self.address.port();
        let words = || {
            format!(
                "Everybody who can reach this machine at port {port} can read it, without a password."
            )
        };
        (!self.ip().is_loopback()).then(words)
    }

    /// Serves the files of a folder until the program ends.
    ///
    /// # Errors
    /// The system does not let it.
    pub fn serve(self, site: &Path) -> Result<()> {
        let files = Router::new().fallback_service(ServeDir::new(site));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::from_std(self.listener)?;
            Ok(axum::serve(listener, files).await?)
        })
    }
}

/// The address at which this machine itself reaches what listens at `address`: one that means all of them can't be
/// opened.
pub fn url(address: SocketAddr) -> String {
    let ip = match address.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    format!("http://{}/", SocketAddr::new(ip, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_an_address_or_a_name() {
        for (host, opened, is_open) in [
            (None, "http://127.0.0.1:", false),
            (Some("localhost"), "http://", false),
            (Some("::1"), "http://[::1]:", false),
            (Some("[::1]"), "http://[::1]:", false),
            (Some("0.0.0.0"), "http://127.0.0.1:", true),
            (Some("::"), "http://[::1]:", true),
        ] {
            if host.is_some_and(|host| host.contains("::")) && TcpListener::bind("[::1]:0").is_err()
            {
                continue; // a machine without IPv6
            }
            let server = Server::bind(host, Some(0)).unwrap();
            assert!(server.url().starts_with(opened), "{host:?}: {}", server.url());
            assert_eq!(server.readers().is_some(), is_open, "{host:?}");
        }
    }
}
