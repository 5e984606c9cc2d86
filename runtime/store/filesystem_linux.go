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

// networkKind names the network file systems by the numbers that Linux gives them
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
	}
	return ""
}
