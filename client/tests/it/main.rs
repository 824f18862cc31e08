//! The client against the simulated cluster, over links in memory and under paused time.

mod classic;
mod consuming;
mod producing;
mod resilience;
mod support;
