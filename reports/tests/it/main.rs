//! Tests of the report model and its writers, from outside.

#[cfg(test)]
mod files;
#[cfg(test)]
mod formats;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod page;
#[cfg(test)]
mod requirements;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod score;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod verdicts;
