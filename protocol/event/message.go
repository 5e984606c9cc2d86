package event

import "github.com/hutch-run/hutch/protocol/chat"

// TextMessageStart begins a message.
type TextMessageStart struct {
	MessageID string    `json:"messageId" is:"id"`
	Role      chat.Role `json:"role,omitempty" is:"one=developer|system|assistant|user"` // empty is assistant
	Name      string    `json:"name,omitempty"`
	Owned
}

// TextMessageContent continues a message.
type TextMessageContent struct {
	MessageID string `json:"messageId" is:"id"`
	Delta     string `json:"delta" is:"required"`
	Owned
}

// TextMessageEnd ends a message.
type TextMessageEnd struct {
	MessageID string `json:"messageId" is:"id"`
	Owned
}

// TextMessageChunk begins and continues a message; the first one has a MessageID.
// [Guard] turns it into the three events above.
type TextMessageChunk struct {
	MessageID string    `json:"messageId,omitempty"`
	Role      chat.Role `json:"role,omitempty" is:"one=developer|system|assistant|user"`
	Delta     string    `json:"delta,omitempty"`
	Name      string    `json:"name,omitempty"`
	Owned
}

// ReasoningStart begins a span in which an agent reasons.
type ReasoningStart struct {
	MessageID string `json:"messageId" is:"id"`
	Owned
}

// ReasoningMessageStart begins a message that is reasoning. Its ids are not those of
// spans, which may be the same.
type ReasoningMessageStart struct {
	MessageID string    `json:"messageId" is:"id"`
	Role      chat.Role `json:"role" is:"required,one=reasoning"`
	Owned
}

// ReasoningMessageContent continues a message that is reasoning.
type ReasoningMessageContent struct {
	MessageID string `json:"messageId" is:"id"`
	Delta     string `json:"delta" is:"required"`
	Owned
}

// ReasoningMessageEnd ends a message that is reasoning.
type ReasoningMessageEnd struct {
	MessageID string `json:"messageId" is:"id"`
	Owned
}

// ReasoningMessageChunk begins and continues a message that is reasoning, as
// [TextMessageChunk] does.
type ReasoningMessageChunk struct {
	MessageID string `json:"messageId,omitempty"`
	Delta     string `json:"delta,omitempty"`
	Owned
}

// ReasoningEnd ends a span.
type ReasoningEnd struct {
	MessageID string `json:"messageId" is:"id"`
	Owned
}

// ReasoningEncryptedValue is reasoning that only its provider can read.
type ReasoningEncryptedValue struct {
	Subtype        string `json:"subtype" is:"required,one=tool-call|message"`
	EntityID       string `json:"entityId" is:"id"` // of the call or the message
	EncryptedValue string `json:"encryptedValue" is:"required"`
	Owned
}

// MessagesSnapshot replaces what a client knows of a conversation: messages that are
// not in it are forgotten. On the wire each has only what AG-UI names.
type MessagesSnapshot struct {
	Messages []chat.Message `json:"messages" is:"required"`
	Base
}

// Type is TEXT_MESSAGE_START.
func (TextMessageStart) Type() Type { return TypeTextMessageStart }

// Type is TEXT_MESSAGE_CONTENT.
func (TextMessageContent) Type() Type { return TypeTextMessageContent }

// Type is TEXT_MESSAGE_END.
func (TextMessageEnd) Type() Type { return TypeTextMessageEnd }

// Type is TEXT_MESSAGE_CHUNK.
func (TextMessageChunk) Type() Type { return TypeTextMessageChunk }

// Type is REASONING_START.
func (ReasoningStart) Type() Type { return TypeReasoningStart }

// Type is REASONING_MESSAGE_START.
func (ReasoningMessageStart) Type() Type { return TypeReasoningMessageStart }

// Type is REASONING_MESSAGE_CONTENT.
func (ReasoningMessageContent) Type() Type { return TypeReasoningMessageContent }

// Type is REASONING_MESSAGE_END.
func (ReasoningMessageEnd) Type() Type { return TypeReasoningMessageEnd }

// Type is REASONING_MESSAGE_CHUNK.
func (ReasoningMessageChunk) Type() Type { return TypeReasoningMessageChunk }

// Type is REASONING_END.
func (ReasoningEnd) Type() Type { return TypeReasoningEnd }

// Type is REASONING_ENCRYPTED_VALUE.
func (ReasoningEncryptedValue) Type() Type { return TypeReasoningEncryptedValue }

// Type is MESSAGES_SNAPSHOT.
func (MessagesSnapshot) Type() Type { return TypeMessagesSnapshot }
