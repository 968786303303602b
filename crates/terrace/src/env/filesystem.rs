//! The abilities of file systems. Any thread may call.

use std::os::fd::AsFd;

/// File systems whose files another machine or process may shorten under a mapping, which kills the
/// reader.
#[cfg(target_os = "linux")]
const REMOTE: &[u32] = &[
    0x0000_6969, // NFS
    0x0000_517b, // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB 2
    0x6573_5546, // FUSE
    0x5346_414f, // AFS
    0x7375_7245, // Coda
    0x00c3_6400, // Ceph
    0x0102_1997, // 9P
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x7461_636f, // OCFS2
    0x0116_1970, // GFS2
    0x0000_564c, // NCP
];

/// Whether mapping a finished file for reading is safe. Unknown file systems are taken for local
/// ones.
#[cfg(target_os = "linux")]
pub(super) fn may_map_tables(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file).is_ok_and(|info| !REMOTE.contains(&(info.f_type as u32)))
}

/// Whether mapping a finished file for reading is safe: on local file systems.
#[cfg(any(
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "openbsd"
))]
pub(super) fn may_map_tables(file: impl AsFd) -> bool {
    rustix::fs::fstatfs(file)
        .is_ok_and(|info| u64::from(info.f_flags) & libc::MNT_LOCAL as u64 != 0)
}

/// Whether mapping a finished file for reading is safe. Not known here.
#[cfg(not(any(
    target_os = "linux",
    target_vendor = "apple",
    target_os = "freebsd",
    target_os = "dragonfly",
    target_os = "openbsd"
)))]
pub(super) fn may_map_tables(_: impl AsFd) -> bool {
    false
}
