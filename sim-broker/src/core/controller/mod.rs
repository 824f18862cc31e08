//! The controller of a scalable topic: who is registered, and who reads what.
//!
//! | Module | Owns |
//! |---|---|
//! | [`assignment`] | which consumer reads which segment |
//! | [`groups`] | registrations with their grace periods, and what each group has read to the end |
//!
//! The commands, timers and pushes that go with them are in the cluster's `controllers`.

pub mod assignment;
pub mod groups;
