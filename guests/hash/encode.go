package main

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strings"

	"github.com/hutch-run/hutch/guests/sdk"
)

var encode = sdk.Define(sdk.Spec{
	Name:  "encode_data",
	Title: "Encode",
	Description: "Writes a text, as UTF-8, or bytes in another form: base64, base64url (without padding), base32, hex, or url " +
		"(percent-encoding, safe in any part of a URL; a space is %20). Returns the encoded text alone. " +
		"decode_data is the way back. None of these hides anything.",
}, encodeData)

type encodeInput struct {
	Data     string `json:"data" doc:"What to encode."`
	Encoding string `json:"encoding" doc:"How data is written now: base64 and hex are decoded first." enum:"text,base64,hex" default:"text"`
	To       string `json:"to" doc:"The form to write." enum:"base64,base64url,base32,hex,url" default:"base64"`
}

func encodeData(_ *sdk.Call, in encodeInput) (string, error) {
	data, err := fromText(in.Data, in.Encoding)
	if err != nil {
		return "", err
	}
	switch in.To {
	case "base64url":
		return base64.RawURLEncoding.EncodeToString(data), nil
	case "base32":
		return base32.StdEncoding.EncodeToString(data), nil
	case "hex":
		return hex.EncodeToString(data), nil
	case "url":
		return strings.ReplaceAll(url.QueryEscape(string(data)), "+", "%20"), nil
	}
	return base64.StdEncoding.EncodeToString(data), nil
}
