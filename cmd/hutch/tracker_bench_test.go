package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hutch-run/hutch/protocol/tool"
	"github.com/hutch-run/hutch/protocol/tracker"
	"github.com/hutch-run/hutch/protocol/trackerclient"
	toolswasm "github.com/hutch-run/hutch/tools-wasm"
)

// BenchmarkTrackerWrite changes a task by the shipped tool update_task and by the same
// request over REST, in turn, in one assembled hutch with its database in a file: each is one
// durable change. The third of a round is a call of the same tool that has nothing to change
// and asks for nothing: what its guest takes in a fresh state. The ratio is that of the tool
// to both others together, the median of all rounds.
func BenchmarkTrackerWrite(b *testing.B) {
	cfg, p := newTestConfig(b, nil)
	var err error
	p.shipped, err = toolswasm.Shipped()
	must(b, err)
	if len(p.shipped.Modules()) == 0 {
		b.Skip("no module is built: make tools")
	}
	s := startServer(b, cfg, p, quiet)
	b.Cleanup(func() { s.halt(b) })
	<-s.app.ready
	s.awaitModule(b, "tasks.wasm")
	rest, err := trackerclient.New(s.url+"/api/v1", "", trackerclient.Options{})
	must(b, err)
	b.Cleanup(rest.Close)
	_, err = rest.CreateProject(b.Context(), tracker.CreateProject{Slug: "pumps", Key: "P"})
	must(b, err)
	_, err = rest.CreateTask(b.Context(), tracker.CreateTask{Project: "pumps", Title: "Repair the pump"})
	must(b, err)
	update := func(change map[string]any, refused bool) error {
		change["task_id"] = "P-1"
		raw, err := json.Marshal(change)
		if err != nil {
			return err
		}
		r, err := s.app.tools.Call(b.Context(), tool.Caller{Principal: "local"}, tool.Call{Name: "update_task", Arguments: raw})
		if err == nil && r.IsError != refused {
			err = fmt.Errorf("update_task answers %+v", r)
		}
		return err
	}
	for range 10 { // its module is compiled, and its worker started
		must(b, update(map[string]any{}, true))
	}
	took := map[string]times{}
	measure := func(what string, do func() error) time.Duration {
		began := time.Now()
		err := do()
		all := time.Since(began)
		must(b, err)
		took[what] = append(took[what], all)
		return all
	}
	var ratios times // thousandths
	for i := 0; b.Loop(); i++ {
		title := func(by string) string { return fmt.Sprint("Repair the pump, ", by, " ", i) }
		byTool := measure("tool", func() error { return update(map[string]any{"title": title("tool")}, false) })
		byRest := measure("rest", func() error {
			_, err := rest.UpdateTask(b.Context(), "P-1", tracker.UpdateTask{Title: tracker.Some(title("rest"))})
			return err
		})
		fresh := measure("fresh", func() error { return update(map[string]any{}, true) })
		ratios = append(ratios, 1000*byTool/(byRest+fresh))
	}
	for what, all := range took {
		b.ReportMetric(us(all.at(50)), what+"-p50-us")
	}
	b.ReportMetric(float64(ratios.at(50))/1000, "ratio")
	b.ReportMetric(0, "ns/op")
}
