//! What may be done on which file system. Any thread may call.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;

/// File systems whose files another machine or process may shorten under a mapping, which kills the
/// reader.
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

/// File systems on which writing zeros reserves blocks that a later store through a mapping uses.
/// Where a store needs new blocks, as it does under copy-on-write, a full disk would kill the
/// process (SIGBUS).
///
/// XFS is not one of them: a store to a page that was written back fails after the file system has
/// shut down, and so does a store to a file that `cp` has reflinked when the disk is full. Both
/// kill the process.
const IN_PLACE: &[u32] = &[
    0x0000_ef53, // ext2, ext3, ext4
    0x0102_1994, // tmpfs
];

/// Whether a store of eight unaligned bytes is one instruction, which a mapped log needs.
const STORES_ARE_WHOLE: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// Whether mapping a finished file for reading is safe. Unknown file systems are taken for local
/// ones.
pub(super) fn may_map_tables(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|info| !REMOTE.contains(&(info.f_type as u32)))
}

/// Whether a log may be appended to through a mapping. On unknown file systems it may not.
pub(super) fn may_map_logs(file: impl AsFd) -> bool {
    STORES_ARE_WHOLE && fstatfs(file).is_ok_and(|info| IN_PLACE.contains(&(info.f_type as u32)))
}
