//! Every path of every move over all partitions of a few rows, and what the same checks say of kernels that are wrong.

mod broken;
mod kernels;
mod oracle;
mod published;
