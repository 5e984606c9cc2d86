package store

import "syscall"

// networkFilesystem names the network file system that dir is on, "" if it is on
// none that is known, or cannot be told.
func networkFilesystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return ""
	}
	return networkKind(uint32(st.Type))
}

// networkKind names file systems of other machines by the numbers that Linux gives them
// (linux/magic.h, and the kernel's sources of those that are not there).
func networkKind(magic uint32) string {
	switch magic {
	case 0x6969:
		return "nfs"
	case 0x517b, 0xff534d42, 0xfe534d42:
		return "smb"
	case 0x5346414f, 0x6b414653:
		return "afs"
	case 0x73757245:
		return "coda"
	case 0x00c36400:
		return "ceph"
	case 0x0bd00bd0:
		return "lustre"
	case 0x65735546: // sshfs, s3fs and the like; what is local there is no place for locks either
		return "fuse"
	case 0x01021997:
		return "9p"
	case 0x01161970:
		return "gfs2"
	case 0x7461636f:
		return "ocfs2"
	case 0x47504653:
		return "gpfs"
	case 0x19830326:
		return "beegfs"
	case 0x564c:
		return "ncp"
	}
	return ""
}
