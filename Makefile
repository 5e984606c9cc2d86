# Everything is built from source with Go alone; make is here for the names.
# Three to remember: `make run` shows it at work, `make serve` serves, `make test` tests
# all of it.

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILD   := CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION)'

# golangci-lint would change the versions hutch is built with, so it has a
# module file of its own.
LINT := -modfile=.ci/tools.mod golangci-lint

# How long `make soak` gives each fuzz target, and the server with hostile files
# in its folder.
SOAK ?= 10m
SOAK_SERVER ?= 20m

.DELETE_ON_ERROR:
.PHONY: need-go hutch slim javascript run serve tools test check check-format check-tree check-lint check-modules check-locks check-targets \
	bench bench-engine bench-tracker bench-peers bench-documents soak soak-server fmt clean

need-go:
	@command -v go >/dev/null || { echo "hutch: error: no go command on this machine's PATH" >&2; \
		echo 'hutch: hint: install Go 1.26 or later from https://go.dev/dl' >&2; exit 1; }

# The go command decides what is stale, so these are no file targets.
hutch: need-go slim javascript
	@echo 'building bin/hutch $(VERSION)' >&2
	@$(BUILD) -o bin/hutch ./cmd/hutch

# The worker that bin/hutch carries on Linux. What it was built as is written last.
slim: need-go
	@echo 'building the worker that bin/hutch carries; the first time takes a while' >&2
	@rm -f cmd/hutch/slim/built
	@$(BUILD) -o cmd/hutch/slim/hutch-worker ./cmd/hutch-worker
	@echo '$(VERSION)' "$$(go env GOOS) $$(go env GOARCH)" > cmd/hutch/slim/built

# The engine of JavaScript tools, which bin/hutch carries.
javascript: need-go
	@go run ./.ci/javascript

## run: build the tools and the program, give an agent a task, and show what it does
## until the task is in review; ARGS are further flags of the hutch serve it starts
run: tools
	@examples/team/run $(ARGS)

## serve: build the tools and the program, then serve on loopback; ARGS are
## further flags, as in make serve ARGS='--addr 127.0.0.1:9000'
serve: tools
	@exec bin/hutch serve $(ARGS)

## tools: build every guest that changed into tools-wasm and embed them
tools: hutch
	@go run ./.ci/guests
	@echo 'building bin/hutch with these modules in it' >&2
	@$(BUILD) -o bin/hutch ./cmd/hutch

## test: everything, with the race detector. Workers run without it: a worker
## built with it takes ten times as long to compile a guest.
test: tools
	@$(BUILD) -o bin/hutch-worker ./cmd/hutch-worker
	HUTCH_TEST_WORKER=$(CURDIR)/bin/hutch-worker HUTCH_TEST_PROGRAM=$(CURDIR)/bin/hutch \
		go test -race -shuffle=on -timeout 40m ./... ./.ci/guests
	@cd bench && go test ./...
	@cd bench/peers && go test ./...

## check: what must hold before a change goes in. Changes nothing.
check: check-format check-tree check-modules check-locks check-lint check-targets

check-format:
	@echo '==> gofmt'
	@files=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
	if [ -n "$$files" ]; then echo "gofmt would change, see make fmt:"; echo "$$files"; exit 1; fi
	@echo '==> white space'
	@git diff --check $$(git hash-object -t tree /dev/null) -- . ':!*/testdata/*'

check-tree:
	@echo '==> layers'
	@go test -count=1 -run TestLayers ./cmd

check-modules:
	@echo '==> go.mod'
	@go mod tidy -diff
	@cd bench && go mod tidy -diff
	@cd bench/peers && go mod tidy -diff

check-locks:
	@echo '==> lock files'
	@locks=$$(git ls-files '*package-lock.json' '*npm-shrinkwrap.json' '*yarn.lock' '*pnpm-lock.yaml'); \
	if [ -n "$$locks" ] && grep -nE '"?resolved"?:? *"https?:' $$locks; then \
		echo 'lock files name a registry: npm install --omit-lockfile-registry-resolved'; exit 1; fi

# Guests have files that only wasip1 sees, so they are looked at twice. Their
# tests are native.
check-lint:
	@echo '==> vet'
	@go vet ./... ./.ci/guests ./.ci/javascript
	@cd bench && go vet ./...
	@cd bench/peers && go vet ./... && GOOS=wasip1 GOARCH=wasm go vet ./guests/...
	@echo '==> lint'
	@go tool $(LINT) run ./... ./.ci/guests ./.ci/javascript
	@lint=$$(go tool -n $(LINT)) && cd bench/peers && $$lint run ./...
	@GOOS=wasip1 GOARCH=wasm $$(go tool -n $(LINT)) run --tests=false ./guests/...

# Nothing runs there, so that tests at least compile and are vetted.
check-targets:
	@for target in darwin/arm64 windows/amd64; do \
		echo "==> build and vet for $$target"; \
		export CGO_ENABLED=0 GOOS=$${target%/*} GOARCH=$${target#*/}; \
		go build ./... && go vet ./... || exit 1; \
	done

## bench: the figures behind the documents, as a table and in bin/bench.json, then
## those beside other engines. Nested modules, so that what hutch is compared with
## is not built into it.
bench: tools
	@$(BUILD) -o bin/hutch-worker ./cmd/hutch-worker
	@cd bench && go build -ldflags '-X main.version=$(VERSION)' -o ../bin/bench .
	@bin/bench -json bin/bench.json
	@$(MAKE) --no-print-directory bench-peers

## bench-engine: those of the engine alone, and writes their table into
## docs/benchmarks.md
bench-engine: need-go
	@$(BUILD) -o bin/hutch-worker ./cmd/hutch-worker
	@cd bench && go build -ldflags '-X main.version=$(VERSION)' -o ../bin/bench .
	@bin/bench -only 'the engine' -json bin/engine.json -document docs/benchmarks.md

## bench-tracker: those of the tracker alone, and writes their table there too
bench-tracker: need-go
	@$(BUILD) -o bin/hutch-worker ./cmd/hutch-worker
	@cd bench && go build -ldflags '-X main.version=$(VERSION)' -o ../bin/bench .
	@bin/bench -only 'the tracker' -json bin/tracker.json -document docs/benchmarks.md

## bench-peers: the same guests in hutch and in other engines, as a table of ratios
## and in build/bench.json; PEERS are flags, as in make bench-peers PEERS=-quick.
## Wasmtime is among them where there is a C compiler.
bench-peers: need-go
	@cd bench/peers && go build -ldflags '-X main.version=$(VERSION)' -o ../../bin/bench-peers .
	@bin/bench-peers $(PEERS)

## bench-documents: the same, and writes the table into docs/benchmarks.md and its
## summary into README.md
bench-documents:
	@$(MAKE) --no-print-directory bench-peers PEERS='-documents docs/benchmarks.md,README.md $(PEERS)'

## soak: tests at their full length, then every fuzz target for SOAK
soak: soak-server
	HUTCH_SOAK=1 go test -count=1 -run 'E21' ./runtime/worker
	@for package in $$(go list ./...); do \
		for target in $$(go test -list '^Fuzz' $$package | grep '^Fuzz'); do \
			echo "==> $$package $$target, $(SOAK)"; \
			go test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(SOAK) $$package || exit 1; \
		done; \
	done

## soak-server: good calls for SOAK_SERVER, while every hostile module there is
## comes and goes and the policy is edited; then the server is killed, and what it
## kept has to be there. As long, it is killed in the middle of runs, again and again.
## Needs binaryen, which makes random modules.
soak-server: tools
	HUTCH_SOAK=$(SOAK_SERVER) HUTCH_TEST_PROGRAM=$(CURDIR)/bin/hutch \
		go test -count=1 -timeout 2h -run '^TestSoak(Kills)?$$' -v ./cmd/hutch

## fmt: format and order imports; the only target that edits sources
fmt:
	@go tool $(LINT) fmt --enable gofmt,goimports

clean:
	rm -rf bin build tools-wasm/*.wasm tools-wasm/index.json cmd/hutch/slim/built cmd/hutch/slim/hutch-worker cmd/hutch/javascript/qjs.wasm
