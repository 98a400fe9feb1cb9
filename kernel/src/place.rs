//! Where a tailer stands, and what may keep it from the next message.

use crate::cursor::Cursor;
use crate::region::Region;
use crate::segment::Segment;
use pyo3::prelude::*;
use std::sync::Arc;

/// A cursor and the segment it is in.
pub struct Place {
    pub segment: Py<Segment>,
    pub region: Arc<Region>,
    pub cursor: Cursor,
}

impl Place {
    /// The same place, to come back to.
    pub fn copy(&self, py: Python<'_>) -> Place {
        Place {
            segment: self.segment.clone_ref(py),
            region: self.region.clone(),
            cursor: self.cursor.clone(),
        }
    }
}

/// Why the next message could not be had at once.
#[derive(Clone, Copy)]
pub enum Trouble {
    End,
    Damage(&'static str),
    Unknown(usize),
    /// It is there, but does not fit with what was read before.
    TooMuch,
    /// An earlier read has left an error to be raised.
    Pending,
}
