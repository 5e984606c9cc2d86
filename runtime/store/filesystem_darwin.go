package store

import "syscall"

// mntLocal marks a local file system (sys/mount.h).
const mntLocal = 0x1000

// networkFilesystem names the network file system that dir is on, "" if it is on
// none, or cannot be told.
func networkFilesystem(dir string) string {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil || st.Flags&mntLocal != 0 {
		return ""
	}
	var kind []byte
	for _, c := range st.Fstypename {
		if c == 0 {
			break
		}
		kind = append(kind, byte(c))
	}
	return string(kind)
}
