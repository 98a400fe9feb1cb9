//! The two structs of the Arrow C data interface, filled from columns that they keep alive.

use crate::arrow::Column;
use std::ffi::{c_char, c_void, CString};
use std::ptr::null_mut;
use std::sync::Arc;

const NULLABLE: i64 = 2;

#[repr(C)]
pub struct CSchema {
    format: *const c_char,
    name: *const c_char,
    metadata: *const c_char,
    flags: i64,
    n_children: i64,
    children: *mut *mut CSchema,
    dictionary: *mut CSchema,
    release: Option<unsafe extern "C" fn(*mut CSchema)>,
    private: *mut c_void,
}

#[repr(C)]
pub struct CArray {
    length: i64,
    null_count: i64,
    offset: i64,
    n_buffers: i64,
    n_children: i64,
    buffers: *mut *const c_void,
    children: *mut *mut CArray,
    dictionary: *mut CArray,
    release: Option<unsafe extern "C" fn(*mut CArray)>,
    private: *mut c_void,
}

// SAFETY: both own what they point to, and that never changes until it is released.
unsafe impl Send for CSchema {}
// SAFETY: as above.
unsafe impl Send for CArray {}

/// What a schema struct points to.
struct SchemaParts {
    format: CString,
    name: CString,
    children: Vec<*mut CSchema>,
}

/// What an array struct points to; `_whole` keeps the buffers of every child alive.
struct ArrayParts {
    _whole: Arc<Column>,
    buffers: Vec<*const c_void>,
    children: Vec<*mut CArray>,
}

/// A type name or column name of ours as C wants it; none of them holds a zero.
fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

pub fn schema_of(column: &Column) -> CSchema {
    let children = column.children.iter().map(|child| Box::into_raw(Box::new(schema_of(child))));
    let mut parts = Box::new(SchemaParts {
        format: c_string(column.format),
        name: c_string(column.name),
        children: children.collect(),
    });
    CSchema {
        format: parts.format.as_ptr(),
        name: parts.name.as_ptr(),
        metadata: std::ptr::null(),
        flags: if column.nullable { NULLABLE } else { 0 },
        n_children: parts.children.len() as i64,
        children: parts.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_schema),
        private: Box::into_raw(parts).cast(),
    }
}

pub fn array_of(whole: &Arc<Column>) -> CArray {
    array_in(whole, whole)
}

fn array_in(column: &Column, whole: &Arc<Column>) -> CArray {
    let pointer = |buffer: &Option<Vec<u8>>| match buffer {
        Some(bytes) => bytes.as_ptr().cast(),
        None => std::ptr::null(),
    };
    let children =
        column.children.iter().map(|child| Box::into_raw(Box::new(array_in(child, whole))));
    let mut parts = Box::new(ArrayParts {
        _whole: whole.clone(),
        buffers: column.buffers.iter().map(pointer).collect(),
        children: children.collect(),
    });
    CArray {
        length: column.length as i64,
        null_count: column.null_count as i64,
        offset: 0,
        n_buffers: parts.buffers.len() as i64,
        n_children: parts.children.len() as i64,
        buffers: parts.buffers.as_mut_ptr(),
        children: parts.children.as_mut_ptr(),
        dictionary: null_mut(),
        release: Some(release_array),
        private: Box::into_raw(parts).cast(),
    }
}

impl CSchema {
    /// Releases it, unless a consumer took it over and left this struct empty.
    pub fn end(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: made by `schema_of` and not released yet.
            unsafe { release(self) };
        }
    }
}

impl CArray {
    /// As for a schema.
    pub fn end(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: made by `array_of` and not released yet.
            unsafe { release(self) };
        }
    }
}

unsafe extern "C" fn release_schema(schema: *mut CSchema) {
    // SAFETY: the interface calls this once with a struct that `schema_of` filled.
    unsafe {
        let parts = Box::from_raw((*schema).private.cast::<SchemaParts>());
        for child in &parts.children {
            Box::from_raw(*child).end();
        }
        (*schema).release = None;
    }
}

unsafe extern "C" fn release_array(array: *mut CArray) {
    // SAFETY: the interface calls this once with a struct that `array_of` filled.
    unsafe {
        let parts = Box::from_raw((*array).private.cast::<ArrayParts>());
        for child in &parts.children {
            Box::from_raw(*child).end();
        }
        (*array).release = None;
    }
}
