# make run     the main job: builds, checks and decides the examples, and starts the demo
# make test    all tests, with what they need

.DEFAULT_GOAL := build
.PHONY: build playground run setup test long stress fuzz lint bench generate update release ci

BIN ?= bin

build: ## bin/agf-validate and bin/assent, static: they run in any Linux and in an empty image
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o $(BIN)/ ./cmd/...

playground: ## bin/playground: a page that checks, decides, compares and asks in the browser; static files
	go run ./clients/playground/site -out $(BIN)/playground

DESK := examples/trading-desk

run: build ## checks and decides the examples, then starts the demo service; DEMO="--once --auto-approve" answers by itself
	$(BIN)/agf-validate --policies $(DESK)/policies $(DESK)
	$(BIN)/assent decide --agent $(DESK)/agent.agf.yaml --policies $(DESK)/policies --call $(DESK)/calls.jsonl \
		| sed -E 's/^\{"outcome":"([a-z]+)","message":"(([^"\\]|\\.)*)".*/\1  \2/'
	$(BIN)/assent demo $(DEMO)

setup: ## PostgreSQL, Chromium and npm for the tests, where they are missing
	.ci/setup

test: setup ## everything that a change has to pass: build, lint, all tests, the clients for Python and TypeScript; six minutes on two cores
	.ci/test

long: setup ## everything that takes longer, part after part, with a table at the end; PARTS="kills walks" runs some
	.ci/long $(PARTS)

stress: setup ## `make test` RUNS times (20) while four busy loops take the processors
	.ci/stress $(RUNS)

fuzz: ## every fuzz target for FUZZTIME (5s)
	.ci/fuzz

lint: ## gofmt, vet and staticcheck
	.ci/lint

bench: ## ratios to the peers and to hand-written Go
	$(MAKE) -C bench bench

generate: ## pages made from code: docs/rules and docs/design/001-semantics.md
	.ci/generate

update: generate ## accept new golden files; read the difference before you commit it
	@for p in $$(git grep -l internal/golden -- '*_test.go' | xargs -n 1 dirname | sort -u); do \
		echo "go -C $$p test . -update"; go -C $$p test . -update || exit 1; done

ci: ## what continuous integration runs: make test, and a piece of make long that the commit chooses
	.ci/run

release: ## everything that people install, for VERSION, in dist: archives, wheels, npm, deb, rpm, image, checksums; KEY=FILE signs
	cd deploy/release && go run . --root ../.. --out $(abspath dist) --version "$(VERSION)" $(if $(KEY),--key $(abspath $(KEY)))
