//! The cluster as a client sees it: raw frames over in-memory links, under paused time.

mod support;

mod attach;
