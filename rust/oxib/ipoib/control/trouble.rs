// SPDX-License-Identifier: GPL-2.0-only

//! Log messages of something that is tried repeatedly: one when it fails first, and one when it
//! works again.

use kernel::prelude::*;

/// Last failure of something that is tried, as far as the administrator knows.
#[derive(Default)]
pub(in crate::ipoib) struct Trouble(Option<Error>);

/// News of it for the administrator.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::ipoib) enum News {
    /// The first failure, or one for another reason than before.
    Fails(Error),
    /// Success after one or more failures.
    Over,
}

impl Trouble {
    /// Returns whether the last try failed.
    pub(in crate::ipoib) fn has_failed(&self) -> bool {
        self.0.is_some()
    }

    /// Notes the result of a try. Returns the news in it, if there is any.
    pub(in crate::ipoib) fn note<T>(&mut self, result: &Result<T>) -> Option<News> {
        let before = self.0;
        self.0 = result.as_ref().err().copied();
        match (before, self.0) {
            (before, Some(error)) if before != Some(error) => Some(News::Fails(error)),
            (Some(_), None) => Some(News::Over),
            _ => None,
        }
    }
}

#[kernel::prelude::kunit_tests(oxib_trouble)]
mod tests {
    use super::*;

    #[test]
    fn each_is_told_once() {
        let mut trouble = Trouble::default();
        for (result, news) in [
            (Ok(()), None),
            (Err(EIO), Some(News::Fails(EIO))),
            (Err(EIO), None),
            (Err(ENOMEM), Some(News::Fails(ENOMEM))),
            (Err(ENOMEM), None),
            (Ok(()), Some(News::Over)),
            (Ok(()), None),
            (Err(EIO), Some(News::Fails(EIO))),
        ] {
            assert_eq!(trouble.note(&result), news);
            assert_eq!(trouble.has_failed(), result.is_err());
        }
    }
}
