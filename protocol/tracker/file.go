package tracker

import (
	"encoding/base64"
	"encoding/json"
	"time"
)

// AttachmentOut is a file at a task or at a message, without what is in it.
type AttachmentOut struct {
	ID       string `json:"id"`
	Filename string `json:"filename"`
	// MIME is what the content looks like, whatever the upload said.
	MIME      string    `json:"mime"`
	Size      int64     `json:"size"`
	SHA256    string    `json:"sha256"` // hexadecimal
	TaskID    *string   `json:"task_id,omitempty"`
	MessageID *string   `json:"message_id,omitempty"`
	CreatedAt time.Time `json:"created_at"`
}

// UploadFile keeps a file at a task or at a message: one of them, and not both.
type UploadFile struct {
	TaskID    string `json:"-"`
	MessageID string `json:"-"`
	Filename  string `json:"filename"`
	// Content has at most [MaxFile] bytes.
	Content        Base64 `json:"content"`
	IdempotencyKey string `json:"-"`
}

// Base64 are bytes that are base64 in JSON, as RFC 4648 has it (section 4): padded, with
// nothing left over, and a text.
type Base64 []byte

// UnmarshalJSON reads a text or null, which is none.
func (b *Base64) UnmarshalJSON(raw []byte) error {
	var text string
	err := json.Unmarshal(raw, &text)
	if err == nil {
		*b, err = base64.StdEncoding.Strict().DecodeString(text)
	}
	return err
}

// FileOut is a file with what is in it, base64 in JSON.
type FileOut struct {
	Filename string `json:"filename"`
	Content  []byte `json:"content"`
	AttachmentOut
}

// FileQuery asks for the files of a task with those of its messages, of a project, or of
// a message: one of them. The oldest comes first.
type FileQuery struct {
	TaskID, ProjectID, MessageID string
	Paging
}
