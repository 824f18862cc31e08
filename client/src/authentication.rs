//! How a client shows who it is (error-model §2: Authentication).

use std::fmt;

use crate::core::error::Error;

/// Credentials, shown on every connection and whenever a broker asks for fresh ones (error-model §2, wire-protocol §10).
pub trait Authentication: Send + Sync + 'static {
    /// The method's name, as the broker's configuration has it.
    fn method(&self) -> &str;

    /// The credentials as they are now. Called from tasks that must not wait: fetch credentials beforehand.
    ///
    /// # Errors
    /// When there are none; connecting fails with it.
    fn data(&self) -> Result<Vec<u8>, Error>;
}

/// A token, such as a JSON web token, as Pulsar's method `token` takes it (error-model §2).
pub struct TokenAuthentication(Box<dyn Fn() -> Result<String, Error> + Send + Sync>);

impl TokenAuthentication {
    /// One token for the life of the client.
    pub fn new(token: impl Into<String>) -> Self {
        let token = token.into();
        TokenAuthentication::supplied(move || Ok(token.clone()))
    }

    /// A token that changes: this is asked for it whenever one is needed.
    pub fn supplied(supplier: impl Fn() -> Result<String, Error> + Send + Sync + 'static) -> Self {
        TokenAuthentication(Box::new(supplier))
    }
}

impl Authentication for TokenAuthentication {
    fn method(&self) -> &str {
        "token"
    }

    fn data(&self) -> Result<Vec<u8>, Error> {
        (self.0)().map(String::into_bytes)
    }
}

/// Shows no token.
impl fmt::Debug for TokenAuthentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenAuthentication").finish_non_exhaustive()
    }
}
