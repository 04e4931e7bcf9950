// SPDX-License-Identifier: GPL-2.0-only

//! Macros that declare types, buffers and numbers of libibverbs, and for the tests a table of what
//! was declared.

/// The layout of a type: its size, and the offset and size of each field.
#[cfg(test)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) fields: Vec<(&'static str, usize, usize)>,
}

/// Declares types with the layout of C, and for the tests a function that returns the layouts.
macro_rules! types {
    ($(
        $(#[$attribute:meta])*
        struct $name:ident {
            $($(#[$about:meta])* $visible:vis $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[$attribute])*
            #[repr(C)]
            pub(crate) struct $name {
                $($(#[$about])* $visible $field: $type,)*
            }
        )*

        /// Returns the layouts of the types, without fillers.
        #[cfg(test)]
        pub(crate) fn layouts_of_types() -> Vec<Layout> {
            vec![$(
                Layout {
                    name: stringify!($name),
                    size: size_of::<$name>(),
                    fields: [$(
                        (
                            stringify!($field),
                            std::mem::offset_of!($name, $field),
                            size_of::<$type>(),
                        ),
                    )*]
                    .into_iter()
                    .filter(|(field, ..): &(&str, usize, usize)| !field.starts_with("filler"))
                    .collect(),
                }
            ),*]
        }
    };
}

/// Declares the buffers of commands and of their responses, which libibverbs alone reads and
/// writes, with their sizes in bytes.
macro_rules! buffers {
    ($($name:ident = $size:literal;)*) => {
        $(
            #[doc = concat!("A buffer for a `", stringify!($name), "`.")]
            #[repr(C, align(8))]
            pub(crate) struct $name([u8; $size]);

            impl $name {
                /// The size that libibverbs is told: without padding.
                pub(crate) const SIZE: usize = $size;

                /// Makes an empty one.
                pub(crate) const fn new() -> Self {
                    Self([0; $size])
                }
            }
        )*

        /// Returns the sizes of the buffers.
        #[cfg(test)]
        pub(crate) fn layouts_of_buffers() -> Vec<Layout> {
            vec![$(Layout { name: stringify!($name), size: $name::SIZE, fields: Vec::new() }),*]
        }
    };
}

/// Declares types that this library has only pointers to.
macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[doc = concat!("A `", stringify!($name), "` of libibverbs.")]
            #[repr(C)]
            pub(crate) struct $name {
                nothing: [u8; 0],
                neither_moved_nor_shared: PhantomData<(*mut u8, PhantomPinned)>,
            }
        )*
    };
}

/// Declares numbers, and for the tests a table of them.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        $($(#[$about])* pub(crate) const $name: $type = $value;)*

        /// The numbers by their names.
        #[cfg(test)]
        pub(crate) const NUMBERS: &[(&str, u64)] = &[$((stringify!($name), $name as u64)),*];
    };
}

pub(super) use {
    buffers,
    numbers,
    opaque,
    types, //
};
