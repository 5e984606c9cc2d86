// Command extismhost runs testdata/apiguest as its own kit's host does, for each URL
// of a JSON list, with 127.0.0.1 as the one allowed host, and prints what the guest
// answers or, where the call failed, an empty text.
//
//	extismhost api.wasm < urls.json > answers.json
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"os"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
)

func main() {
	log.SetFlags(0)
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal("extismhost: ", err)
	}
}

func run(ctx context.Context, path string) error {
	var urls []string
	if err := json.NewDecoder(os.Stdin).Decode(&urls); err != nil {
		return err
	}
	manifest := extism.Manifest{Wasm: []extism.Wasm{extism.WasmFile{Path: path}}, AllowedHosts: []string{"127.0.0.1"}}
	plugin, err := extism.NewCompiledPlugin(ctx, manifest, extism.PluginConfig{EnableWasi: true}, nil)
	if err != nil {
		return err
	}
	answers := make([]string, len(urls))
	for i, url := range urls {
		p, err := plugin.Instance(ctx, extism.PluginInstanceConfig{ModuleConfig: wazero.NewModuleConfig()})
		if err != nil {
			return err
		}
		status, out, err := p.CallWithContext(ctx, "call", fmt.Appendf(nil, `{"params":{"arguments":{"url":%q,"disguised":"/w=="}}}`, url))
		if err == nil && status == 0 {
			answers[i] = string(out)
		}
		if err := p.Close(ctx); err != nil {
			return err
		}
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}
