//! The reference client as an adapter: it proves that a run through the protocol and one in process agree.

use std::io;
use std::rc::Rc;

use stc_adapter_protocol::session::PROTOCOL_VERSION;
use stc_adapter_protocol::{Capability, Initialized, Sdk};

use super::server;
use crate::client::reference::{Deviant, ReferenceFactory};
use crate::run::ClientFactory as _;

/// Serves standard input and output until standard input ends.
///
/// # Errors
/// Those of [`server::serve`].
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
    server::serve(io::stdin(), io::stdout(), identity, Box::new(make))
}
