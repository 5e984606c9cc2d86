package main

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/hutch-run/hutch/guests/sdk"
)

var decode = sdk.Define(sdk.Spec{
	Name:  "decode_data",
	Title: "Decode",
	Description: "Reads base64, base64url, base32, hex or percent-encoded (url) data. Returns the text if the bytes are UTF-8, and the " +
		"bytes in base64 if they are not. White space is skipped and padding may be missing, except in url, where + stays a +.",
}, decodeData)

type decodeInput struct {
	Data string `json:"data" doc:"What to decode."`
	From string `json:"from" doc:"The form it is in." enum:"base64,base64url,base32,hex,url" default:"base64"`
}

type decodeOutput struct {
	Text   *string `json:"text,omitempty" doc:"The bytes as text; absent if they are no UTF-8."`
	Base64 *string `json:"base64,omitempty" doc:"The bytes in base64; absent if there is a text."`
	Bytes  int     `json:"bytes" doc:"How many bytes it is."`
}

func decodeData(_ *sdk.Call, in decodeInput) (decodeOutput, error) {
	data, err := fromText(in.Data, in.From)
	if err != nil {
		return decodeOutput{}, err
	}
	out := decodeOutput{Bytes: len(data)}
	if utf8.Valid(data) {
		text := string(data)
		out.Text = &text
	} else {
		b64 := base64.StdEncoding.EncodeToString(data)
		out.Base64 = &b64
	}
	return out, nil
}
