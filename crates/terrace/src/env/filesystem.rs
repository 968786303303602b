//! What may be done on which file system. Any thread may call.

use std::os::fd::AsFd;

use rustix::fs::fstatfs;

/// File systems whose files another machine or process may shorten under a mapping, which kills the reader.
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

/// Whether mapping a finished file for reading is safe. Unknown file systems are taken for local ones.
pub(super) fn may_map_tables(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|info| !REMOTE.contains(&(info.f_type as u32)))
}
