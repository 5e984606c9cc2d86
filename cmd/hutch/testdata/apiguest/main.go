// Command apiguest is a plugin as others write them, with extism/go-pdk: it reads
// its token from its configuration and calls an API with it. Besides, it looks
// through its own memory for what it should never have held.
package main

import (
	"encoding/json"
	"errors"
	"unsafe"

	"github.com/extism/go-pdk"
)

func main() {}

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(`{"tools":[{"name":"call_api","description":"Calls an API.","inputSchema":{"type":"object"}}]}`)
	return 0
}

type input struct {
	Params struct {
		Arguments struct {
			URL  string `json:"url"`
			Fail bool   `json:"fail"`
			// Disguised is what is searched for, each byte with its bits turned over.
			Disguised []byte `json:"disguised"`
		} `json:"arguments"`
	} `json:"params"`
}

//go:wasmexport call
func call() int32 {
	var in input
	if err := pdk.InputJSON(&in); err != nil {
		pdk.SetError(err)
		return 1
	}
	args := in.Params.Arguments
	token, _ := pdk.GetConfig("token")
	answer := pdk.NewHTTPRequest(pdk.MethodGet, args.URL).SetHeader("Authorization", "Bearer "+token).Send()
	body := string(answer.Body())
	pdk.Log(pdk.LogInfo, "answered "+body)
	if args.Fail {
		pdk.SetError(errors.New("failed on " + body))
		return 1
	}
	said, err := json.Marshal(map[string]any{
		"token": token, "status": answer.Status(), "body": body, "headers": answer.Headers(), "held": held(args.Disguised),
	})
	if err == nil {
		err = pdk.OutputJSON(map[string]any{"content": []map[string]string{{"type": "text", "text": string(said)}}})
	}
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}

// memoryPages is how many pages the module's memory has.
func memoryPages() int32

// held counts where in all of the module's memory the text is.
func held(disguised []byte) (found int) {
	const first, page = 1, 64 << 10 // a slice does not begin at nil
	memory := unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(nil), first)), int(memoryPages())*page-first)
	for at := 0; at+len(disguised) <= len(memory); at++ {
		same := 0
		for same < len(disguised) && memory[at+same] == ^disguised[same] {
			same++
		}
		if same == len(disguised) {
			found++
		}
	}
	return found
}
