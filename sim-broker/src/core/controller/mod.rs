//! The controller of a scalable topic: who is registered, and who reads what.
//!
//! | Module | Owns |
//! |---|---|
//! | [`assignment`] | which consumer reads which segment |

pub mod assignment;
