package store

import "testing"

func TestNetworkKinds(t *testing.T) {
	for magic, want := range map[uint32]string{
		0x6969: "nfs", 0x517b: "smb", 0xff534d42: "smb", 0xfe534d42: "smb", 0x5346414f: "afs", 0x6b414653: "afs",
		0x73757245: "coda", 0x00c36400: "ceph", 0x0bd00bd0: "lustre",
		0x65735546: "fuse", 0x01021997: "9p", 0x01161970: "gfs2", 0x7461636f: "ocfs2", 0x47504653: "gpfs", 0x19830326: "beegfs", 0x564c: "ncp",
		0xef53: "", 0x58465342: "", 0x9123683e: "", 0x01021994: "", 0x794c7630: "", // ext4, xfs, btrfs, tmpfs, overlay
	} {
		if got := networkKind(magic); got != want {
			t.Errorf("%#x: %q, want %q", magic, got, want)
		}
	}
}
