//! Numbers that stand for objects of the SDK. Whoever makes the object chooses the number, and none is used twice.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(pub u64);
    )*};
}

handles! {
    /// A client object of the SDK.
    ClientId;
    /// A producer.
    ProducerId;
    /// A consumer of any kind.
    ConsumerId;
    /// A transaction.
    TransactionId;
    /// An asynchronous send whose outcome is still to be asked for.
    TicketId;
}
