// Command pdkguest is a plugin as others write them, with extism/go-pdk: the
// same file runs under extism/go-sdk and in the v1 dialect, and must answer the
// same.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/extism/go-pdk"
)

func main() {}

//go:wasmexport describe
func describe() int32 {
	pdk.OutputString(`{"tools":[{"name":"echo","description":"echoes","inputSchema":{"type":"object"}}]}`)
	return 0
}

type request struct {
	Params struct {
		Name      string `json:"name"`
		Arguments struct {
			Text string `json:"text"`
			N    int    `json:"n"`
		} `json:"arguments"`
	} `json:"params"`
}

//go:wasmexport call
func call() int32 {
	var r request
	if err := pdk.InputJSON(&r); err != nil {
		pdk.SetError(err)
		return 1
	}
	tool, ok := tools[r.Params.Name]
	if !ok {
		pdk.SetErrorString("no tool " + r.Params.Name)
		return 1
	}
	return tool(r.Params.Arguments.Text, r.Params.Arguments.N)
}

var tools = map[string]func(text string, n int) int32{
	"echo":   func(string, int) int32 { pdk.Output(pdk.Input()); return 0 },
	"twice":  twice,
	"binary": binary,
	"config": config,
	"vars":   vars,
	"log":    log,
	"error":  func(text string, n int) int32 { pdk.SetError(errors.New(text)); return int32(n) },
	"empty":  func(string, int) int32 { return 0 },
	"silent": func(_ string, n int) int32 { return int32(n) },
	"memory": memory,
	"churn":  churn,
	"panic":  func(text string, _ int) int32 { panic(text) },
	"exit":   func(_ string, n int) int32 { os.Exit(n); return 0 },
	"print":  func(text string, _ int) int32 { fmt.Println(text); fmt.Fprintln(os.Stderr, text); return 0 },
	"sleep":  func(_ string, n int) int32 { time.Sleep(time.Duration(n) * time.Millisecond); return 0 },
	"http":   http,
	"json":   func(text string, n int) int32 { return report(pdk.OutputJSON(map[string]any{"text": text, "n": n})) },
}

func report(err error) int32 {
	if err != nil {
		pdk.SetError(err)
		return 1
	}
	return 0
}

// twice sets the output two times; the last one counts.
func twice(text string, _ int) int32 {
	pdk.OutputString("first")
	pdk.OutputString(text)
	return 0
}

func binary(_ string, n int) int32 {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7)
	}
	pdk.Output(b)
	return 0
}

func config(key string, _ int) int32 {
	value, ok := pdk.GetConfig(key)
	pdk.OutputString(fmt.Sprintf("%q %v", value, ok))
	return 0
}

// vars sets, overwrites, reads and removes variables.
func vars(text string, n int) int32 {
	var out []string
	show := func() { out = append(out, fmt.Sprintf("%q %d", pdk.GetVar("text"), pdk.GetVarInt("n"))) }
	show()
	pdk.SetVar("text", []byte("other"))
	pdk.SetVar("text", []byte(text))
	pdk.SetVarInt("n", n)
	show()
	pdk.RemoveVar("text")
	show()
	pdk.OutputString(strings.Join(out, ", "))
	return 0
}

func log(text string, n int) int32 {
	for level := pdk.LogDebug; level <= pdk.LogError; level++ {
		pdk.Log(level, "log: "+text)
	}
	for i := range n {
		pdk.Log(pdk.LogInfo, fmt.Sprintf("log: %d", i))
	}
	pdk.OutputString("logged")
	return 0
}

// memory finds blocks by their offsets.
func memory(text string, n int) int32 {
	block := pdk.AllocateString(text)
	found := pdk.FindMemory(block.Offset())
	unknown := pdk.FindMemory(block.Offset() + 1)
	none := pdk.FindMemory(0)
	empty := pdk.Allocate(0)
	freed := pdk.Allocate(n)
	freed.Free()
	freed.Free()
	gone := pdk.FindMemory(freed.Offset())
	pdk.OutputString(fmt.Sprintf("%q %d %d %d %d", found.ReadBytes(), unknown.Length(), none.Length(), empty.Offset(), gone.Length()))
	return 0
}

// churn has n blocks of 700 KB, one after the other.
func churn(_ string, n int) int32 {
	data := bytes.Repeat([]byte("x"), 700_000)
	for range n {
		block := pdk.AllocateBytes(data)
		if !bytes.Equal(block.ReadBytes(), data) {
			pdk.SetErrorString("a block lost its bytes")
			return 1
		}
		block.Free()
	}
	pdk.OutputString("churned")
	return 0
}

func http(url string, _ int) int32 {
	r := pdk.NewHTTPRequest(pdk.MethodPost, url).SetHeader("X-Test", "a").SetBody([]byte("body\xff")).Send()
	b, err := json.Marshal(map[string]any{"status": r.Status(), "headers": r.Headers(), "body": string(r.Body())})
	pdk.Log(pdk.LogInfo, "log: got it")
	pdk.Output(b)
	return report(err)
}
