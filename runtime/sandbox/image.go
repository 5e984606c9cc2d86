package sandbox

import "bytes"

// image is what an instance's memory holds before a call. Where the system tells
// which pages a call changed, these are copied back; else all are compared.
type image struct {
	bytes []byte // never written
	pages *Pages // nil: all are compared
}

// keepImage keeps what a memory holds, which the memory is mapped to from then on if
// the system is asked for its pages.
func (m *Module) keepImage(memory []byte) (*image, error) {
	if m.pages == nil || len(memory) == 0 {
		return &image{bytes: bytes.Clone(memory)}, nil
	}
	kept, err := m.pages.keep(memory)
	if err != nil {
		return nil, err
	}
	i := &image{bytes: kept, pages: m.pages}
	return i, i.cover(memory)
}

// cover makes a memory that holds anything one whose changed pages are known. It
// holds the image then.
func (i *image) cover(memory []byte) error {
	if i.pages == nil || len(memory) == 0 {
		return nil
	}
	return i.pages.cover(memory)
}

// restore undoes what a call changed in a memory.
func (i *image) restore(memory []byte, m *memory) error {
	if i.pages == nil || len(memory) == 0 {
		restoreChanged(memory, i.bytes)
		return nil
	}
	return i.pages.restore(memory, i.bytes, &m.entries)
}

// compared is how many bytes are compared at a time, and copied if they differ.
const compared = 4 << 10

func restoreChanged(memory, image []byte) {
	for at := 0; at < len(image); at += compared {
		now, then := memory[at:at+compared], image[at:at+compared]
		if !bytes.Equal(now, then) {
			copy(now, then)
		}
	}
}
