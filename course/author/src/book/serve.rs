//! The site on this machine's own address. Nothing outside can reach it.

use crate::error::{Error, Result};
use axum::Router;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
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
    /// Takes a port on the loopback address: this one, or the usual one, or any if that is taken.
    ///
    /// # Errors
    /// The port that was asked for is taken; there is no free port.
    pub fn bind(port: Option<u16>) -> Result<Self> {
        let at = |port| TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = match port {
            Some(port) => at(port),
            None => at(PORT).or_else(|_| at(0)),
        };
        let refuse = |error: std::io::Error| Error::Serve {
            port: port.unwrap_or(PORT),
            reason: error.to_string(),
        };
        let listener = listener.map_err(refuse)?;
        listener.set_nonblocking(true).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        Ok(Self { listener, address })
    }

    /// The address to open in a browser.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
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
