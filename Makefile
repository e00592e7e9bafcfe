# make            build bin/broker
# make run        build it and run it with the demo provider
# make test       every test, race detector on
# make lint       gofmt, go vet, staticcheck, and the analyzers of the C sources
# make firmware   the device library, its samples and its board images
# make fuzz       30 s for each fuzz target of the device library
# make bench      benchmarks
# make clean      remove what make built

GO          ?= go
VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.0
BENCH       ?= .
BROKER      := bin/broker

.DEFAULT_GOAL := build
.PHONY: build run test lint firmware fuzz bench clean

# The tag leaves out the command library's manual page generator.
build:
	$(GO) build -trimpath -tags urfave_cli_no_docs -ldflags "-s -w -X main.release=$(VERSION)" -o $(BROKER) ./cmd/broker

# make run ARGS="--port 3001"
run: build
	./$(BROKER) run --demo $(ARGS)

# The end-to-end tests install their Node packages by themselves, into the
# user's cache directory. Without node, npm, curl or nginx they are skipped, unless
# CI=true. -count=1: a cached result does not know what a child process read.
test:
	$(MAKE) -C firmware test test-target size
	$(GO) test -race -count=1 -timeout 15m ./...

lint:
	@unformatted=$$(gofmt -l .) && if [ -n "$$unformatted" ]; then echo "not formatted with gofmt:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(MAKE) -C firmware lint

firmware:
	$(MAKE) -C firmware all

fuzz:
	$(MAKE) -C firmware fuzz TIME=30

# make bench BENCH=Splice
bench:
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem ./...

clean:
	rm -rf bin
	$(MAKE) -C firmware clean
