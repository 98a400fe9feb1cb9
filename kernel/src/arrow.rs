//! Messages as Arrow columns, handed out by the Arrow C data interface and its PyCapsules.

use crate::arrow_c::{array_of, schema_of};
use crate::frame::*;
use crate::layout::ATTRIBUTE_KEY;
use crate::message::{headers_of, priority_of};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::sync::Arc;

pub const COLUMNS: [&str; 7] =
    ["partition", "sequence", "timestamp", "key", "headers", "priority", "payload"];

/// A batch has no more rows than this, even if all its payloads are empty.
const ROWS_MAX: usize = 1 << 20;

/// One array: its type, its buffers and its children.
pub struct Column {
    pub format: &'static str,
    pub name: &'static str,
    pub nullable: bool,
    pub length: usize,
    pub null_count: usize,
    pub buffers: Vec<Option<Vec<u8>>>,
    pub children: Vec<Column>,
}

impl Column {
    fn fixed(format: &'static str, name: &'static str, length: usize, values: Vec<u8>) -> Column {
        let buffers = vec![None, Some(values)];
        Column {
            format,
            name,
            nullable: true,
            length,
            null_count: 0,
            buffers,
            children: Vec::new(),
        }
    }
}

/// Bytes of varying length, as offsets and data.
#[derive(Default)]
struct Bytes {
    ends: Vec<i32>,
    data: Vec<u8>,
}

impl Bytes {
    fn with_capacity(items: usize, bytes: usize) -> Bytes {
        Bytes { ends: Vec::with_capacity(items), data: Vec::with_capacity(bytes) }
    }

    #[inline]
    fn push(&mut self, value: &[u8]) {
        self.data.extend_from_slice(value);
        self.ends.push(self.data.len() as i32);
    }

    fn column(self, format: &'static str, name: &'static str, nullable: bool) -> Column {
        let offsets = std::iter::once(0).chain(self.ends.iter().copied());
        let offsets = offsets.flat_map(i32::to_le_bytes).collect();
        let length = self.ends.len();
        let buffers = vec![None, Some(offsets), Some(self.data)];
        Column { format, name, nullable, length, null_count: 0, buffers, children: Vec::new() }
    }
}

/// Collects messages column by column.
pub struct Builder {
    wanted: [bool; COLUMNS.len()],
    order: Vec<usize>,
    partition: i32,
    /// Of payloads and attributes together, whether they are wanted or not.
    bytes: usize,
    sequences: Vec<i64>,
    timestamps: Vec<i64>,
    payloads: Bytes,
    keys: Bytes,
    key_is_there: Vec<bool>,
    header_names: Bytes,
    header_values: Bytes,
    header_ends: Vec<i32>,
    priorities: Vec<u8>,
}

impl Builder {
    pub fn new(columns: &[String], partition: i32, bytes_max: usize) -> PyResult<Builder> {
        if bytes_max == 0 || bytes_max > i32::MAX as usize / 2 {
            return Err(PyValueError::new_err("bytes_max is between 1 and 1 GiB"));
        }
        let mut wanted = [false; COLUMNS.len()];
        let mut order = Vec::new();
        for name in columns {
            let Some(index) = COLUMNS.iter().position(|column| column == name) else {
                let known = COLUMNS.join(", ");
                return Err(PyValueError::new_err(format!(
                    "no column {name:?}; there are {known}"
                )));
            };
            if std::mem::replace(&mut wanted[index], true) {
                return Err(PyValueError::new_err(format!("column {name:?} is asked for twice")));
            }
            order.push(index);
        }
        let items = (bytes_max / 64).clamp(16, 1 << 16);
        Ok(Builder {
            wanted,
            order,
            partition,
            bytes: 0,
            sequences: Vec::with_capacity(items),
            timestamps: Vec::with_capacity(items),
            payloads: Bytes::with_capacity(items, bytes_max.min(64 << 20)),
            keys: Bytes::default(),
            key_is_there: Vec::new(),
            header_names: Bytes::default(),
            header_values: Bytes::default(),
            header_ends: Vec::new(),
            priorities: Vec::new(),
        })
    }

    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Whether one more message may follow: the first always may. Attributes count too, since the
    /// columns made of them must not outgrow Arrow's 32-bit offsets either.
    #[inline]
    pub fn has_room(&self, frame: &Frame<'_>, bytes_max: usize) -> bool {
        self.is_empty()
            || (self.bytes + content_bytes(frame) <= bytes_max && self.sequences.len() < ROWS_MAX)
    }

    #[inline]
    pub fn push(&mut self, sequence: u64, frame: &Frame<'_>) {
        self.sequences.push(sequence as i64);
        self.timestamps.push(frame.head.timestamp.div_euclid(1000));
        self.bytes += content_bytes(frame);
        if self.wanted[6] {
            self.payloads.push(frame.payload());
        }
        if self.wanted[3] || self.wanted[4] || self.wanted[5] {
            self.push_attributes(frame.attributes());
        }
    }

    fn push_attributes(&mut self, attributes: &[u8]) {
        let key = attribute(attributes, ATTRIBUTE_KEY);
        self.key_is_there.push(key.is_some());
        self.keys.push(key.unwrap_or_default());
        for (name, value) in headers_of(attributes) {
            self.header_names.push(name);
            self.header_values.push(value);
        }
        self.header_ends.push(self.header_names.ends.len() as i32);
        self.priorities.push(priority_of(attributes));
    }

    pub fn finish(mut self) -> Batch {
        let length = self.sequences.len();
        let order = std::mem::take(&mut self.order);
        let children = order.into_iter().map(|index| self.column(index, length)).collect();
        let buffers = vec![None];
        let whole = Column {
            format: "+s",
            name: "",
            nullable: false,
            length,
            null_count: 0,
            buffers,
            children,
        };
        Batch { whole: Arc::new(whole) }
    }

    fn column(&mut self, index: usize, length: usize) -> Column {
        let name = COLUMNS[index];
        match name {
            "partition" => {
                let values = self.partition.to_le_bytes().repeat(length);
                Column::fixed("i", name, length, values)
            }
            "sequence" => Column::fixed("l", name, length, words(&self.sequences)),
            "timestamp" => Column::fixed("tsu:UTC", name, length, words(&self.timestamps)),
            "key" => self.key_column(),
            "headers" => self.headers_column(length),
            "priority" => Column::fixed("c", name, length, std::mem::take(&mut self.priorities)),
            _ => std::mem::take(&mut self.payloads).column("z", name, true),
        }
    }

    fn key_column(&mut self) -> Column {
        let mut valid = vec![0; self.key_is_there.len().div_ceil(8)];
        for (index, there) in self.key_is_there.iter().enumerate() {
            valid[index / 8] |= u8::from(*there) << (index % 8);
        }
        let mut column = std::mem::take(&mut self.keys).column("z", "key", true);
        column.null_count = self.key_is_there.iter().filter(|there| !**there).count();
        column.buffers[0] = Some(valid);
        column
    }

    fn headers_column(&mut self, length: usize) -> Column {
        let names = std::mem::take(&mut self.header_names).column("u", "key", false);
        let values = std::mem::take(&mut self.header_values).column("u", "value", true);
        let entries = Column {
            format: "+s",
            name: "entries",
            nullable: false,
            length: names.length,
            null_count: 0,
            buffers: vec![None],
            children: vec![names, values],
        };
        let offsets = std::iter::once(0).chain(self.header_ends.iter().copied());
        let offsets = offsets.flat_map(i32::to_le_bytes).collect();
        Column {
            format: "+m",
            name: "headers",
            nullable: true,
            length,
            null_count: 0,
            buffers: vec![None, Some(offsets)],
            children: vec![entries],
        }
    }
}

fn content_bytes(frame: &Frame<'_>) -> usize {
    frame.attributes().len() + frame.payload().len()
}

fn words(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Messages as one Arrow record batch; any library that speaks Arrow's PyCapsules takes it as it
/// is.
#[pyclass(frozen, module = "penstock._kernel")]
pub struct Batch {
    whole: Arc<Column>,
}

#[pymethods]
impl Batch {
    fn __len__(&self) -> usize {
        self.whole.length
    }

    /// The batch as a struct array, for whoever calls `pyarrow.record_batch(batch)` or the like.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        // A consumer may ask for another schema; the interface allows to answer with one's own.
        let _ = requested_schema;
        let (schema, array) = (schema_of(&self.whole), array_of(&self.whole));
        let schema = PyCapsule::new_with_value_and_destructor(
            py,
            schema,
            c"arrow_schema",
            |mut schema, _| schema.end(),
        )?;
        let array =
            PyCapsule::new_with_value_and_destructor(py, array, c"arrow_array", |mut array, _| {
                array.end()
            })?;
        Ok((schema, array))
    }
}
