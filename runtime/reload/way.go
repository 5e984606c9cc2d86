package reload

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// interest says which names of a watched folder matter.
type interest struct {
	all   bool // it is a tool folder
	names map[string]bool
}

// maxLinks bounds the symlinks on the way to a folder, like the kernel does.
const maxLinks = 40

// interests returns what has to be watched to notice soon that a tool folder
// changes, or that its path leads to another: the folder itself and the one that it
// is in, and the folder of each symlink on the way. Of a missing folder it is the
// nearest one above that is there. A real folder further up that is renamed waits for
// the rescan. Paths are real ones, so that a folder has one name.
func interests(folders []*folder) map[string]interest {
	found := map[string]interest{}
	for _, f := range folders {
		real, whole := walk(f.path, func(dir, name string) {
			on := found[dir]
			if on.names == nil {
				on.names = map[string]bool{}
			}
			on.names[name] = true
			found[dir] = on
		})
		if whole {
			on := found[real]
			on.all = true
			found[real] = on
		}
	}
	return found
}

// walk follows path and tells what it depends on: where its last name lies, and
// each symlink. It returns the real path, and whether there is such a folder; if
// not, the first name that is missing was told.
func walk(path string, depends func(dir, name string)) (real string, whole bool) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", false
	}
	volume := filepath.VolumeName(path)
	at, left := volume+string(filepath.Separator), split(path[len(volume):])
	for links := 0; len(left) > 0; {
		name := left[0]
		left = left[1:]
		if name == "." {
			continue
		}
		if name == ".." { // of a symlink's target; what it goes up from is real
			at = filepath.Dir(at)
			continue
		}
		fi, err := os.Lstat(filepath.Join(at, name))
		link := err == nil && fi.Mode()&fs.ModeSymlink != 0
		if link || len(left) == 0 || errors.Is(err, fs.ErrNotExist) {
			depends(at, name)
		}
		if !link {
			if err != nil {
				return "", false
			}
			at = filepath.Join(at, name)
			continue
		}
		target, err := os.Readlink(filepath.Join(at, name))
		if links++; err != nil || links > maxLinks {
			return "", false
		}
		if filepath.IsAbs(target) {
			volume := filepath.VolumeName(target)
			at, target = volume+string(filepath.Separator), target[len(volume):]
		}
		left = append(split(target), left...)
	}
	fi, err := os.Stat(at)
	return at, err == nil && fi.IsDir()
}

// split returns the names that a path goes through.
func split(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r < 0x80 && os.IsPathSeparator(uint8(r)) })
}
