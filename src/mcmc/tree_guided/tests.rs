//! Every path of every move over all partitions of a few rows, and the same checks applied to wrong kernels.

mod broken;
mod kernels;
mod oracle;
mod published;
