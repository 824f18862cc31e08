//! The reference client as an adapter: it proves that a run through the protocol and one in process agree.

use std::env;
use std::io;
use std::net::TcpStream;
use std::rc::Rc;

use stc_adapter_protocol::session::PROTOCOL_VERSION;
use stc_adapter_protocol::{Capability, Initialized, Sdk};

use super::server;
use crate::client::reference::{Deviant, ReferenceFactory};
use crate::run::ClientFactory as _;

/// Where a suite waits that was started with `--attach`, as the skeletons have it too.
const CONNECT: &str = "STC_CONNECT";

/// Serves standard input and output until standard input ends, or the suite that waits at `STC_CONNECT`.
///
/// # Errors
/// Those of [`server::serve`], and when nobody waits there.
pub fn serve(deviant: Option<Deviant>) -> io::Result<()> {
    let factory = ReferenceFactory { deviant };
    let info = factory.info();
    let identity = Initialized {
        protocol_version: PROTOCOL_VERSION,
        sdk: Sdk { name: info.name, version: info.version },
        // What it lacks, it says operation by operation.
        capabilities: Capability::ALL.to_vec(),
    };
    let make = move |start: &stc_adapter_protocol::StartScenario| Rc::clone(&factory.outside(start.seed));
    let Ok(address) = env::var(CONNECT) else {
        return server::serve(io::stdin(), io::stdout(), identity, Box::new(make));
    };
    let failed = |e: io::Error| io::Error::new(e.kind(), format!("{CONNECT}={address}: {e}"));
    let stream = TcpStream::connect(&address).map_err(failed)?;
    stream.set_nodelay(true)?;
    server::serve(stream.try_clone()?, stream, identity, Box::new(make))
}
